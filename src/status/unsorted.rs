//! The status names that stand on no list, as `status` shows them: a few with the line that maps each, and how many more there
//! are. Relies on the ledger for what came; promises that a service with hundreds of names leaves the report short. Pure.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::invoice::status::{Status, StatusLists};
use crate::ledger::Overview;

/// Names listed. Each line has a whole list of the config in it.
const LISTED: usize = 20;

/// A status name that stands on no list.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Unsorted {
    pub(crate) status: String,
    /// How many events brought it.
    pub(crate) events: u64,
    /// What sorts it as paid, under `[statuses]`.
    pub(crate) line: String,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Names {
    /// Those with the most events, at most [`LISTED`].
    pub(super) shown: Vec<Unsorted>,
    /// Further ones, at least: the ledger notes no name beyond a bound.
    pub(super) more: u64,
}

impl Names {
    /// Those that the present lists do not have.
    pub(super) fn of(overview: &Overview, lists: &StatusLists) -> Self {
        let stands_nowhere =
            |name: &str| Status::new(name).is_some_and(|status| lists.sort(&status).is_none());
        let met = overview.unsorted.iter();
        let mut met: Vec<_> = met.filter(|(name, _)| stands_nowhere(name)).collect();
        met.sort_by_key(|(_, events)| std::cmp::Reverse(*events));
        let unlisted = met.len().saturating_sub(LISTED);
        let shown = met.into_iter().take(LISTED).map(|(name, events)| Unsorted {
            status: name.clone(),
            events: *events,
            line: line(name, lists),
        });
        let unlisted = u64::try_from(unlisted).unwrap_or(u64::MAX);
        Self {
            shown: shown.collect(),
            more: unlisted.saturating_add(u64::from(overview.unsorted_others > 0)),
        }
    }
}

fn line(name: &str, lists: &StatusLists) -> String {
    // A list of JSON strings is a TOML array as well.
    let paid = lists.paid.iter().map(String::as_str);
    let list: Value = paid.chain([name]).collect();
    let list = list.to_string().replace("\",\"", "\", \"");
    format!("paid = {list}  # or failed, reversed, open, under [statuses]")
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;
    use super::*;
    use crate::config::Settings;

    #[test]
    fn a_name_is_told_until_a_list_has_it() {
        let overview = Overview {
            unsorted: vec![("HELD \"x\"".to_owned(), 3), ("done".to_owned(), 1)],
            ..Overview::default()
        };
        let mut settings = Settings::default();
        settings.statuses.paid = vec!["paid".to_owned()];
        settings.statuses.failed = vec!["done".to_owned()];
        let told = report(&overview, &settings);
        let [name] = told.unsorted.as_slice() else {
            panic!("{told:?}");
        };
        assert_eq!(name.events, 3);
        assert_eq!(
            name.line,
            r#"paid = ["paid", "HELD \"x\""]  # or failed, reversed, open, under [statuses]"#
        );
        assert!(told.needs_person);
        settings.statuses.open.push("HELD \"x\"".to_owned());
        assert!(!report(&overview, &settings).needs_person);
    }

    /// 300 names made a status of 18 KB.
    #[test]
    fn hundreds_of_names_leave_the_report_short() {
        let met = (0..300_u64).map(|number| (format!("step-{number:03}"), number));
        let overview = Overview {
            unsorted: met.collect(),
            unsorted_others: 7,
            ..Overview::default()
        };
        let told = report(&overview, &Settings::default());
        assert_eq!((told.unsorted.len(), told.more_unsorted), (LISTED, 281));
        let most = told.unsorted.first().expect("listed");
        assert_eq!(most.status, "step-299", "the one with the most events");
        let [need] = told.needs.as_slice() else {
            panic!("{told:?}");
        };
        assert!(need.told.contains("296 more names"), "{}", need.told);
        let json = serde_json::to_string(&told).expect("plain data");
        assert!(json.len() < 6_000, "{}", json.len());
    }
}
