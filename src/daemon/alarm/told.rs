//! What the program of `[attention]` is told: a JSON document as a hook gets one, and some variables. Pure. Holds no
//! requisites and no secret: words, counts and order ids.

use std::ffi::OsString;
use std::path::Path;

use serde::Serialize;

use crate::hook::payload::ALARM_VARIABLES;
use crate::hook::process::Told;
use crate::invoice::moment::Moment;
use crate::status::{Need, Reason};
use crate::telemetry::escape;

/// The version of the document's shape, as of a hook's.
const SCHEMA: u32 = 1;
/// Characters of a variable: many orders may stand under one word.
const LONGEST_LINE: usize = 2_000;
/// The kind of what is told, where a hook reads the kind of its event.
const KIND: &str = "attention";

/// One alarm.
pub(super) struct Alarm {
    /// Its word.
    pub(super) word: Reason,
    /// What stands under it.
    pub(super) needs: Vec<Need>,
    /// When it was found, milliseconds since 1970.
    pub(super) at_ms: i64,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    kind: &'static str,
    reason: Reason,
    at: &'a str,
    attempt: u32,
    needs: &'a [Need],
}

/// What is told in this attempt, which is 1-based.
pub(super) fn told(alarm: &Alarm, attempt: u32) -> Told {
    let at = Moment::from_ms(alarm.at_ms).to_string();
    let document = Document {
        schema: SCHEMA,
        kind: KIND,
        reason: alarm.word,
        at: &at,
        attempt,
        needs: &alarm.needs,
    };
    let mut text = serde_json::to_string(&document).expect("texts and numbers serialise");
    text.push('\n');
    let needs = || alarm.needs.iter();
    let values = [
        KIND.to_owned(),
        attempt.to_string(),
        alarm.word.to_string(),
        line(needs().map(|need| need.told.as_str())),
        line(needs().flat_map(|need| need.advice.iter().map(String::as_str))),
        at,
    ];
    Told {
        document: text,
        variables: Box::new(move |file: &Path| {
            let mut values = values.into_iter().map(OsString::from);
            // The path comes last.
            let named =
                ALARM_VARIABLES.map(|name| (name, values.next().unwrap_or_else(|| file.into())));
            named.to_vec()
        }),
    }
}

/// Sentences as one line that a shell, a mail or a messenger may show.
fn line<'a>(sentences: impl Iterator<Item = &'a str>) -> String {
    let sentences: Vec<&str> = sentences.collect();
    let all = sentences.join("; ");
    escape(&all).chars().take(LONGEST_LINE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_and_the_variables_say_the_same() {
        let need = Need::reversed(&["A-1".to_owned()]);
        let (message, advice) = (need.told.clone(), need.advice.join("; "));
        let alarm = Alarm {
            word: Reason::Reversed,
            needs: vec![need],
            at_ms: 1_795_860_120_004,
        };
        let Told {
            document,
            variables,
        } = told(&alarm, 2);
        assert!(
            document.starts_with(
                r#"{"schema":1,"kind":"attention","reason":"reversed","at":"2026-11-28T10:02:00.004Z","attempt":2,"needs":[{"reason":"reversed","told":"#
            ),
            "{document}"
        );
        assert!(
            document.ends_with('\n') && document.contains(r#""orders":["A-1"]"#),
            "{document}"
        );
        let variables = variables(Path::new("/tmp/payload.json"));
        let told: Vec<(&str, &str)> = variables
            .iter()
            .map(|(name, value)| (*name, value.to_str().unwrap_or_default()))
            .collect();
        assert_eq!(
            told,
            [
                ("TILLD_EVENT", "attention"),
                ("TILLD_ATTEMPT", "2"),
                ("TILLD_ALERT", "reversed"),
                ("TILLD_MESSAGE", message.as_str()),
                ("TILLD_ADVICE", advice.as_str()),
                ("TILLD_OCCURRED_AT", "2026-11-28T10:02:00.004Z"),
                ("TILLD_PAYLOAD_FILE", "/tmp/payload.json"),
            ]
        );
    }
}
