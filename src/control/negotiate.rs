//! What a client would rather have: `Accept` (RFC 9110, section 12.5.1) and `Prefer` (RFC 7240), from all lines of the header.
//! Pure. What is in neither's form is passed over, as both wish.

use super::stream::EVENT_STREAM;

/// What everybody gets who does not ask for another form.
const JSON: &str = "application/json";

/// Whether events are wanted as they happen: server-sent events are liked better than JSON, or as much and named. The form
/// whose end never comes is nobody's for having said nothing.
pub(super) fn wants_stream<'a>(lines: impl Iterator<Item = &'a str>) -> bool {
    let ranges: Vec<(String, u16)> = lines
        .flat_map(|line| split(line, ','))
        .filter_map(range)
        .collect();
    let (stream, json) = (liked(&ranges, EVENT_STREAM), liked(&ranges, JSON));
    let is_named = ranges.iter().any(|(range, _)| range == EVENT_STREAM);
    stream > json || is_named && stream > 0 && stream == json
}

/// How much a form is liked, in thousandths: by the range that names it most closely.
fn liked(ranges: &[(String, u16)], form: &str) -> u16 {
    let kind = form.split('/').next().unwrap_or_default();
    let of = |wanted: &str| {
        let named = ranges.iter().filter(|(range, _)| range == wanted);
        named.map(|(_, quality)| *quality).max()
    };
    of(form)
        .or_else(|| of(&format!("{kind}/*")))
        .or_else(|| of("*/*"))
        .unwrap_or_default()
}

/// One range of media types, in small letters, and its quality. Its other parameters make it no other form here.
fn range(text: &str) -> Option<(String, u16)> {
    let mut parts = split(text, ';');
    let range = parts.next()?.to_ascii_lowercase();
    let weight = parts
        .filter_map(|part| part.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    let quality = match weight {
        Some((_, text)) => quality(text.trim())?,
        None => 1000,
    };
    Some((range, quality))
}

/// A quality in thousandths: `0`, `0.5`, `1.000`.
fn quality(text: &str) -> Option<u16> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_sound = part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit());
    let part: u16 = format!("{part:0<3}").parse().ok().filter(|_| is_sound)?;
    match whole {
        "0" => Some(part),
        "1" if part == 0 => Some(1000),
        _ => None,
    }
}

/// The seconds of `wait=20` among the preferences; the others, and parameters of this one, are not ours. The first counts.
pub(super) fn preferred_wait<'a>(lines: impl Iterator<Item = &'a str>) -> Option<u64> {
    lines
        .flat_map(|line| split(line, ','))
        .filter_map(|one| split(one, ';').next())
        .filter_map(|one| one.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("wait"))
        .and_then(|(_, value)| {
            let value = value.trim().trim_matches('"');
            let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            // One that is too long for us is a long one.
            is_number.then(|| value.parse().unwrap_or(u64::MAX))
        })
}

/// The parts between separators that stand in no quoted string, without the space around them.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |letter: char| {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => return letter == separator && !quoted,
        }
        false
    })
    .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_for_those_who_like_it_best() {
        for (lines, wanted) in [
            (&[][..], false),
            (&[""], false),
            (&["text/event-stream"], true),
            (&["Text/Event-Stream ; charset=utf-8"], true),
            (&["*/*"], false),
            (&["text/*"], true),
            (&["text/event-stream, */*"], true),
            (&["application/json, text/event-stream"], true),
            (&["application/json", "text/event-stream"], true),
            (&["application/json, text/event-stream;q=0"], false),
            (&["application/json, text/event-stream;q=0.9"], false),
            (&["application/json;q=0.1, text/event-stream; Q=0.2"], true),
            (&["text/event-stream;q=0, text/*"], false),
            (&["text/event-streams"], false),
            (&["application/x;a=\"text/event-stream\""], false),
            (&["application/x;a=\",text/event-stream\""], false),
            (&["text/event-stream;q=2"], false),
            (&["text/event-stream;q=x"], false),
        ] {
            let told = wants_stream(lines.iter().copied());
            assert_eq!(told, wanted, "{lines:?}");
        }
    }

    #[test]
    fn a_wait_is_found_among_the_preferences() {
        for (lines, wanted) in [
            (&[][..], None),
            (&["wait=20"], Some(20)),
            (&["respond-async, WAIT = \"5\""], Some(5)),
            (&["respond-async", "wait=3"], Some(3)),
            (&["wait=3;foo=bar"], Some(3)),
            (&["foo; wait=9, wait=4"], Some(4)),
            (&["foo=\"a, wait=9\", wait=4"], Some(4)),
            (&["wait=3, wait=4"], Some(3)),
            (&["wait=99999999999999999999"], Some(u64::MAX)),
            (&["wait=-1"], None),
            (&["wait=+1"], None),
            (&["wait"], None),
            (&["waiting=1"], None),
        ] {
            let told = preferred_wait(lines.iter().copied());
            assert_eq!(told, wanted, "{lines:?}");
        }
    }
}
