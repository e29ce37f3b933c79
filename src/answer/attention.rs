//! Why a person must look at an invoice, in plain sentences: one for each word the ledger keeps.

use super::invoice::{named, reported, sum};
use crate::ledger::InvoiceRow;

/// One sentence for each reason, led by the ledger's word for it. Not escaped.
pub(crate) fn sentences(row: &InvoiceRow) -> Vec<String> {
    let told = |word: &String| match sentence(word, row) {
        Some(sentence) => format!("{word}: {sentence}"),
        None => word.clone(),
    };
    row.attention.iter().map(told).collect()
}

fn sentence(word: &str, row: &InvoiceRow) -> Option<String> {
    let agreed = sum(&row.amount_agreed, &row.currency_agreed);
    let sentence = match word {
        "unsorted_status" => unsorted(row.status.as_deref().unwrap_or_default()),
        "mismatch" => format!(
            "the service calls it paid with {} where {agreed} was agreed; no `paid` hook runs for it, \
             unless `tilld invoice accept-amount {}` takes that sum as agreed",
            reported(row),
            named(row)
        ),
        "amount_differs" => format!(
            "the service opened it with {} where {} was asked for; a payment will show as `mismatch`, \
             unless `tilld invoice accept-amount {}` takes that sum as agreed",
            reported(row),
            sum(&row.amount_asked, &row.currency_asked),
            named(row)
        ),
        "other_id" => {
            "the service gave this invoice a second id; the first one stands, look both up in the cabinet"
                .to_owned()
        }
        "rewound" => {
            "the service went back to an older status, twice; look the invoice up in the cabinet"
                .to_owned()
        }
        "unresolved" => {
            "the service was asked until `poller.horizon_s` and gave no final answer; it may still be paid"
                .to_owned()
        }
        "not_found" => format!(
            "the service has no invoice {}, or keeps it from this login; look whether the id and the shop are right \
             (`tilld whoami` names the shop)",
            row.invoice_id.as_deref().unwrap_or_default()
        ),
        "outcome_unknown" => format!(
            "the answer to its create was lost and it is not asked for again; look for order {} in the cabinet, \
             and give its id to `tilld invoice adopt ORDER --id ID`",
            row.order_id
        ),
        _ => return None,
    };
    Some(sentence)
}

/// What a person does about a reason, whichever invoice it stands at. Empty for a word of a newer ledger.
pub(crate) fn advice(word: &str) -> &'static str {
    match word {
        "unsorted_status" => {
            "add the status to the list under `[statuses]` that it means, then restart `serve`"
        }
        "mismatch" => {
            "settle it with the customer; no `paid` hook runs for it, unless `tilld invoice accept-amount ORDER` takes the sum; `tilld invoice seen ORDER` when that is done"
        }
        "amount_differs" => {
            "a payment will show as `mismatch`, unless `tilld invoice accept-amount ORDER` takes the service's figures"
        }
        "other_id" => {
            "look both ids up in the cabinet; the first one stands. Then `tilld invoice seen ORDER`"
        }
        "rewound" => {
            "look it up in the cabinet: the service went back to an older status. Then `tilld invoice seen ORDER`"
        }
        "unresolved" => {
            "look it up in the cabinet, or ask with `tilld invoice poll ORDER`: it may still be paid. Then `tilld invoice seen ORDER`"
        }
        "not_found" => "look whether its id and the shop are right: `tilld whoami` names the shop",
        "outcome_unknown" => {
            "look for the order in the cabinet, and give its id to `tilld invoice adopt ORDER --id ID`"
        }
        _ => "",
    }
}

/// Names the status and the line that sorts it.
fn unsorted(status: &str) -> String {
    // A JSON string is a TOML basic string as well.
    let quoted = serde_json::Value::from(status).to_string();
    format!(
        "the status {quoted} is on no list, so it changes no outcome; add it to the one of `open`, `paid`, `failed`, \
         `reversed` that it means, under `[statuses]` in the config, beside the names that stand there: `paid = [{quoted}]`, for example"
    )
}

#[cfg(test)]
mod tests {
    use super::super::invoice::tests::row;
    use super::*;

    #[test]
    fn every_word_the_ledger_keeps_has_its_sentence() {
        for word in [
            "unsorted_status",
            "mismatch",
            "amount_differs",
            "other_id",
            "rewound",
            "unresolved",
            "outcome_unknown",
            "not_found",
        ] {
            assert!(sentence(word, &row()).is_some(), "{word}");
            assert!(!advice(word).is_empty(), "{word}");
        }
    }

    #[test]
    fn the_line_that_sorts_a_status_is_toml_whatever_the_status() {
        let told = unsorted("PAID \"x\"\u{1b}");
        assert!(told.contains(r#"`paid = ["PAID \"x\"\u001b"]`"#), "{told}");
    }

    #[test]
    fn a_word_of_a_newer_ledger_is_shown_as_it_is() {
        let row = InvoiceRow {
            attention: vec!["newer".to_owned()],
            ..row()
        };
        assert_eq!(sentences(&row), ["newer"]);
    }
}
