//! Telling somebody that a delivery was given up: whose delivery that is, what it says, and under which names. Pure.
//!
//! It is owed like everything else, as a delivery of the same event, to a hook named after the one that gave up. What it
//! tells is an occasion of its own, with its own kind and id: a program that acts on the event itself must never take the
//! one for the other, and a receiver that drops what it has seen must drop neither.

/// The name under which the settings have it, and by which the program knows itself.
pub const ON_ABANDONED: &str = "on_abandoned";

/// The kind such an occasion is told with, in the place of an event's kind.
pub const KIND: &str = "abandoned";

/// As much of the end of what the last attempt wrote to its standard error is told along, in bytes: the lines that say
/// why. All of it stands in `delivery show`.
pub const STDERR_TAIL: usize = 2048;

/// A delivery that was given up, as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// The hook that was to have it.
    pub hook: String,
    /// The event's id, the one the hook was told.
    pub event_id: String,
    /// The attempts made, the last included.
    pub attempts: u32,
    /// When the last one ended, milliseconds since 1970.
    pub at_ms: i64,
    /// How it ended.
    pub result: String,
    /// The end of what it wrote to its standard error.
    pub stderr: String,
}

impl GivenUp {
    /// The id of the occasion: the same in every attempt to tell it, another one when the delivery is given up again.
    pub fn id(&self) -> String {
        let Self {
            hook,
            event_id,
            attempts,
            ..
        } = self;
        format!("{event_id}-{KIND}-{hook}-{attempts}")
    }
}

/// The hook name of the delivery that tells that `hook` gave up; `None` when it was itself one that tells: nobody is told
/// of that.
pub fn teller_of(hook: &str) -> Option<String> {
    let is_teller = told_of(hook).is_some() || hook == ON_ABANDONED;
    (!is_teller).then(|| format!("{ON_ABANDONED}:{hook}"))
}

/// The hook whose giving up a delivery with this hook name tells. No configured name has a colon.
pub fn told_of(hook: &str) -> Option<&str> {
    hook.strip_prefix(ON_ABANDONED)?.strip_prefix(':')
}

/// The name in the settings of the hook behind a delivery's hook name.
pub fn configured(hook: &str) -> &str {
    told_of(hook).map_or(hook, |_| ON_ABANDONED)
}

/// The end of an output, as text.
pub fn tail(output: &[u8]) -> String {
    let from = output.len().saturating_sub(STDERR_TAIL);
    let end = output.get(from..).unwrap_or_default();
    // Cut at a letter: what is left of one that began before is dropped.
    let broken = end
        .iter()
        .take(3)
        .take_while(|byte| **byte & 0xC0 == 0x80)
        .count();
    let skipped = if from == 0 { 0 } else { broken };
    String::from_utf8_lossy(end.get(skipped..).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_and_the_one_that_tells_of_it_are_told_apart() {
        assert_eq!(teller_of("fulfil").as_deref(), Some("on_abandoned:fulfil"));
        assert_eq!(told_of("on_abandoned:fulfil"), Some("fulfil"));
        assert_eq!(configured("on_abandoned:fulfil"), ON_ABANDONED);
        for teller in ["on_abandoned:fulfil", ON_ABANDONED] {
            assert_eq!(teller_of(teller), None, "{teller}");
        }
        for own in ["fulfil", "on_abandoned-2", ON_ABANDONED] {
            assert_eq!((told_of(own), configured(own)), (None, own));
        }
    }

    #[test]
    fn the_tail_is_short_text_whatever_was_written() {
        assert_eq!(tail(b"no stock\n"), "no stock\n");
        assert_eq!(tail(b"\xff\x80"), "\u{fffd}\u{fffd}");
        let long = "я".repeat(STDERR_TAIL);
        assert_eq!(tail(long.as_bytes()), "я".repeat(STDERR_TAIL / 2));
        let odd = format!("{long}x");
        assert_eq!(tail(odd.as_bytes()).len(), STDERR_TAIL - 1);
    }

    #[test]
    fn the_id_is_the_events_no_more_and_changes_with_every_giving_up() {
        let once = GivenUp {
            hook: "fulfil".to_owned(),
            event_id: "0199-e".to_owned(),
            attempts: 12,
            at_ms: 0,
            result: "exit 1".to_owned(),
            stderr: String::new(),
        };
        let again = GivenUp {
            attempts: 13,
            ..once.clone()
        };
        assert_eq!(once.id(), "0199-e-abandoned-fulfil-12");
        assert_ne!(once.id(), again.id());
    }
}
