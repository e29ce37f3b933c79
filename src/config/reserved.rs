//! Names under the prefix `TILLD_` that are no settings: a hook that calls `tilld` hands them on, and tests and benches set the rest.
//! They are neither read nor reported as unknown, and no setting may ever bear one of them (a test of this module).

use crate::hook::payload::{ALARM_VARIABLES, VARIABLES};

/// The prefix of variables that are read as settings.
pub(super) const PREFIX: &str = "TILLD_";

/// The switches of the test suite and of the benches. `TILLD_FAULTS` and `TILLD_JOURNAL` are heard by builds with
/// debug assertions alone.
const SWITCHES: [&str; 13] = [
    "TILLD_FAULTS",
    "TILLD_FOLLOWERS",
    "TILLD_INVOICES",
    "TILLD_JOURNAL",
    "TILLD_KILLS",
    "TILLD_NOTIFICATIONS",
    "TILLD_NO_SKIP",
    "TILLD_ORDERS",
    "TILLD_PROGRAM",
    "TILLD_RUNS",
    "TILLD_SEED",
    "TILLD_SEEDS",
    "TILLD_UPDATE",
];

/// Every variable that has the prefix and is no setting: those a hook is started with, and the switches of tests and
/// benches.
pub fn reserved() -> impl Iterator<Item = &'static str> {
    let of_alarms = ALARM_VARIABLES.into_iter();
    let of_alarms = of_alarms.filter(|name| !VARIABLES.contains(name));
    VARIABLES.into_iter().chain(of_alarms).chain(SWITCHES)
}

/// True for a variable that is no setting although it has the prefix.
pub fn is_reserved(variable: &str) -> bool {
    reserved().any(|name| name == variable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys::{known, variable_of};

    #[test]
    fn no_setting_bears_a_reserved_name() {
        let mut names = Vec::new();
        known().walk(&mut |key, _| names.push(variable_of(key)));
        assert!(names.len() > 40, "the keys were walked");
        for name in names {
            assert!(!is_reserved(&name), "{name}");
        }
    }
}
