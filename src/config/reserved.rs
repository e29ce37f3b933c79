//! Names under the prefix `TILLD_` that are no settings: a hook that calls `tilld` hands them on, and tests set the rest.
//! They are neither read nor reported as unknown, and no setting may ever bear one of them (a test of this module).

/// The prefix of variables that are read as settings.
pub(super) const PREFIX: &str = "TILLD_";

/// The variables a hook is started with, and the switches of the test suite.
pub const RESERVED: &[&str] = &[
    "TILLD_EVENT",
    "TILLD_EVENT_ID",
    "TILLD_ATTEMPT",
    "TILLD_REPLAY",
    "TILLD_SOURCE",
    "TILLD_ORDER_ID",
    "TILLD_INVOICE_ID",
    "TILLD_REF",
    "TILLD_STATUS",
    "TILLD_PREVIOUS_STATUS",
    "TILLD_OUTCOME",
    "TILLD_AMOUNT",
    "TILLD_AGREED_AMOUNT",
    "TILLD_CURRENCY",
    "TILLD_MODE",
    "TILLD_OCCURRED_AT",
    "TILLD_PAYLOAD_FILE",
    "TILLD_NO_SKIP",
    "TILLD_SEED",
    "TILLD_UPDATE",
];

/// True for a variable that is no setting although it has the prefix.
pub fn is_reserved(variable: &str) -> bool {
    RESERVED.contains(&variable)
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

    #[test]
    fn every_variable_of_the_hook_contract_is_reserved() {
        for name in crate::hook::payload::VARIABLES {
            assert!(is_reserved(name), "{name}");
        }
    }
}
