//! The scenarios that are brought along: what a merchant may be afraid of, from the simplest to all at once.

/// Their names and texts, in the order in which they are listed.
pub(super) const ALL: [(&str, &str); 13] = [
    ("happy", include_str!("named/happy.toml")),
    ("lost", include_str!("named/lost.toml")),
    ("twice", include_str!("named/twice.toml")),
    ("out-of-order", include_str!("named/out-of-order.toml")),
    ("late-payment", include_str!("named/late-payment.toml")),
    ("underpaid", include_str!("named/underpaid.toml")),
    ("overpaid", include_str!("named/overpaid.toml")),
    ("forged", include_str!("named/forged.toml")),
    ("cancelled", include_str!("named/cancelled.toml")),
    ("no-requisites", include_str!("named/no-requisites.toml")),
    ("slow-or-torn", include_str!("named/slow-or-torn.toml")),
    ("crash", include_str!("named/crash.toml")),
    (
        "everything-at-once",
        include_str!("named/everything-at-once.toml"),
    ),
];

/// The text of the one with this name.
pub(super) fn find(name: &str) -> Option<&'static str> {
    let found = ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::super::format;
    use super::*;

    #[test]
    fn each_is_one_and_is_told_in_a_line() {
        for (name, text) in ALL {
            let scenario = format::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!((10..=90).contains(&scenario.summary.len()), "{name}");
            assert!(
                scenario.steps.iter().all(|step| step.line.is_some()),
                "{name}"
            );
        }
    }
}
