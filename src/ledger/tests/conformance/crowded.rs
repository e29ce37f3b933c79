//! An order of more invoices than are ever shown of one. What is at stake: one that can be paid, or is, may be the oldest of
//! them, and whoever does not see it opens another beside it.

use super::super::*;
use super::{Pair, intent_of, pair};
use crate::ledger::command::{Begun, Intent};

/// More than are shown of an order.
const LATER: i64 = 1_005;
/// Commands in a transaction.
const AT_ONCE: usize = 100;

/// How the oldest invoice of an order came to stand there.
#[derive(Clone, Copy, Debug, PartialEq)]
enum First {
    Open,
    Paid,
    Mismatch,
    Unknown,
}

/// A wish for order 1 whose ref is of this number.
fn wish(number: i64, anew: bool) -> Intent {
    let mut reference = [0; 16];
    reference[..8].copy_from_slice(&number.to_be_bytes());
    Intent {
        reference: InvoiceRef::from_entropy(reference),
        ..intent_of(1, 0, anew, NOW + number)
    }
}

/// What opens an invoice, and how that ends.
fn opens(number: i64, settled: Settled) -> [Command; 2] {
    let begin = Command::Begin(Box::new(wish(number, true)));
    [begin, Command::Settle(InvoiceKey(number), settled)]
}

fn answered(number: i64) -> Settled {
    let answer = said(Source::Create, &format!("id-{number}"), "new", 1);
    Settled::Answered(Box::new(answer))
}

/// The oldest one as it is said, then many that nobody can pay.
fn commands(first: First) -> Vec<Command> {
    let told = |number: i64, status: &str| {
        let told = said(Source::Notification, &format!("id-{number}"), status, 2);
        Command::Record(InvoiceKey(number), Box::new(told))
    };
    let mut all = match first {
        First::Open => opens(1, answered(1)).to_vec(),
        First::Unknown => opens(1, Settled::Unknown("who knows".to_owned())).to_vec(),
        First::Paid => [&opens(1, answered(1)) as &[Command], &[told(1, "paid")]].concat(),
        First::Mismatch => {
            // A notification of another sum is a reason to ask alone.
            let mut other = said(Source::Poll, "id-1", "paid", 2);
            other.report.amount = Reported::Value(Amount::parse("9").expect("plain"));
            let other = Command::Record(InvoiceKey(1), Box::new(other));
            [&opens(1, answered(1)) as &[Command], &[other]].concat()
        }
    };
    for number in 2..2 + LATER {
        // Most were refused: a shop that tries again and again. Some failed.
        if number % 200 == 0 {
            all.extend(opens(number, answered(number)));
            all.push(told(number, "failed"));
        } else {
            all.extend(opens(number, Settled::Refused("no".to_owned())));
        }
    }
    all
}

/// Both stores, once all of it was done.
fn crowded(directory: &tempfile::TempDir, first: First) -> Pair {
    let mut pair = pair(directory);
    pair.adopt();
    for part in commands(first).chunks(AT_ONCE) {
        for answer in pair.run(part, part) {
            let answer = answer.expect("it is done");
            let is_begun = matches!(answer, Reply::Begun(_));
            assert!(!is_begun || matches!(answer, Reply::Begun(Begun::Fresh(_))));
        }
    }
    pair
}

#[test]
fn an_invoice_older_than_all_that_are_shown_still_stands_for_its_order() {
    for first in [First::Open, First::Paid, First::Mismatch, First::Unknown] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut pair = crowded(&directory, first);
        let (shown, before) = pair.shown_of_order("order-1");
        assert_eq!(shown.len(), 1_000, "not all there are");
        let standing = pair.standing_of_order("order-1");
        let keys: Vec<_> = standing.iter().map(|row| row.key).collect();
        assert_eq!(keys, [InvoiceKey(1)], "{first:?}");

        let again = Command::Begin(Box::new(wish(2 + LATER, false)));
        let again = [again];
        let begun = pair.run(&again, &again);
        let begun = begun.into_iter().next().expect("an answer");
        let (found, row) = match begun.expect("it is judged") {
            Reply::Begun(Begun::Standing(row)) => (First::Open, row),
            Reply::Begun(Begun::Paid(row)) if row.outcome == Outcome::Paid => (First::Paid, row),
            Reply::Begun(Begun::Paid(row)) => (First::Mismatch, row),
            Reply::Begun(Begun::Unknown(row)) => (First::Unknown, row),
            other => panic!("{first:?}: {other:?}"),
        };
        assert_eq!((found, row.key), (first, InvoiceKey(1)));
        let (_, after) = pair.shown_of_order("order-1");
        assert_eq!(after, before, "no other was opened");
    }
}

/// The other side of it: those that are in nobody's way, however many, keep no order from an invoice.
#[test]
fn an_order_of_failed_and_refused_ones_alone_is_given_another() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut pair = crowded(&directory, First::Open);
    let cancelled = said(Source::Notification, "id-1", "failed", 3);
    let cancelled = Command::Record(InvoiceKey(1), Box::new(cancelled));
    let again = [cancelled, Command::Begin(Box::new(wish(2 + LATER, false)))];
    let answers = pair.run(&again, &again);
    assert!(pair.standing_of_order("order-1").len() == 1, "the new one");
    let begun = answers.into_iter().next_back().expect("an answer");
    assert!(
        matches!(begun, Ok(Reply::Begun(Begun::Fresh(key))) if key == InvoiceKey(2 + LATER)),
        "{begun:?}"
    );
}
