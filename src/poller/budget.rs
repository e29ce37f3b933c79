//! How many invoices are asked about now, and which. Pure. Fair between classes, so that many old and hopeless invoices
//! never starve a young one, and the other way round.

use crate::invoice::silence::Heard;

/// Invoices younger than this are young, milliseconds: the customer is likely still at the till.
const YOUNG_MS: i64 = 1_800_000;

/// Who goes before whom within one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Doubt, a second poll, or a nudge: money may hang on it.
    Urgent,
    /// Opened within the last half hour.
    Young,
    /// All else.
    Old,
}

/// The class of an invoice.
pub(crate) fn class(heard: &Heard, now_ms: i64) -> Class {
    let nudged = heard
        .nudged_ms
        .is_some_and(|nudged| heard.asked_ms.is_none_or(|asked| asked < nudged));
    if heard.doubt || heard.pending_since_ms.is_some() || nudged {
        Class::Urgent
    } else if now_ms.saturating_sub(heard.created_ms) < YOUNG_MS {
        Class::Young
    } else {
        Class::Old
    }
}

/// Chooses up to `room` of the due ones: one of each class in turn, the longest due of its class first. The indexes point
/// into `due`, which is ordered by due time.
pub(crate) fn choose(due: &[Class], room: usize) -> Vec<usize> {
    let of = |class: Class| {
        due.iter()
            .enumerate()
            .filter(move |(_, c)| **c == class)
            .map(|(at, _)| at)
    };
    let (mut urgent, mut young, mut old) = (of(Class::Urgent), of(Class::Young), of(Class::Old));
    let mut chosen = Vec::with_capacity(room.min(due.len()));
    while chosen.len() < room {
        let round: Vec<usize> = [urgent.next(), young.next(), old.next()]
            .into_iter()
            .flatten()
            .collect();
        if round.is_empty() {
            break;
        }
        chosen.extend(round);
    }
    chosen.truncate(room);
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_class_starves_another() {
        let mut due = vec![Class::Old; 100];
        due.extend([Class::Young, Class::Urgent, Class::Young]);
        assert_eq!(choose(&due, 4), [101, 100, 0, 102]);
        assert_eq!(choose(&due, 2), [101, 100]);
        assert_eq!(choose(&[Class::Old, Class::Old], 5), [0, 1]);
        assert!(choose(&[], 5).is_empty());
    }
}
