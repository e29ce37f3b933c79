//! Each promise seen broken: forged marks and ledgers that the judge must not let pass.

use super::judge::{Owed, Verdict, judge};
use super::marks;

/// Two deliveries of one payment, done at once.
const GOOD: &str = "S fulfil A-1 e2 paid 1 10 free\nE fulfil A-1 e2 paid 1 10 0\n\
                    S all A-1 e1 opened 1 11 free\nE all A-1 e1 opened 1 11 0\n\
                    S all A-1 e2 paid 1 12 free\nE all A-1 e2 paid 1 12 0\n";

fn owed(hook: &str, seq: u64, attempts: &[&str]) -> Owed {
    let attempts = (1..).zip(attempts.iter().map(|result| (*result).to_owned()));
    Owed {
        hook: hook.to_owned(),
        order: "A-1".to_owned(),
        event: format!("e{seq}"),
        seq,
        state: "done".to_owned(),
        attempts: attempts.collect(),
    }
}

fn ledger() -> Vec<Owed> {
    vec![
        owed("fulfil", 2, &["exit 0"]),
        owed("all", 1, &["exit 0"]),
        owed("all", 2, &["exit 0"]),
    ]
}

fn judged(text: &str, owed: &[Owed]) -> Verdict {
    let runs = marks::read(text).expect("marks");
    judge(&runs, owed, &["A-1".to_owned()], &["fulfil", "all"])
}

#[test]
fn what_is_as_it_should_be_passes() {
    assert_eq!(judged(GOOD, &ledger()).wrong(), Vec::<&String>::new());
    // A kill while the script ran, one before it began, one after it ended.
    let killed = "S fulfil A-1 e2 paid 1 10 free\n".to_owned()
        + "S fulfil A-1 e2 paid 3 13 free\nE fulfil A-1 e2 paid 3 13 0\n"
        + &GOOD.replace("e2 paid 1 10", "e2 paid 4 10");
    let mut ledger = ledger();
    let interrupted = ["interrupted", "interrupted", "interrupted", "exit 0"];
    ledger[0] = owed("fulfil", 2, &interrupted);
    let verdict = judged(&killed, &ledger);
    assert_eq!(verdict.wrong(), Vec::<&String>::new());
    assert_eq!((verdict.runs, verdict.doubled), (5, 1));
}

/// What is wrong with these, in the order of `missing`, `overlapping`, `out_of_order`, `gaps`, `ids`, `needless`.
#[track_caller]
fn check(text: &str, owed: &[Owed], wanted: [usize; 6]) {
    let found = judged(text, owed);
    let counts = [
        &found.missing,
        &found.overlapping,
        &found.out_of_order,
        &found.gaps,
        &found.ids,
        &found.needless,
    ];
    assert_eq!(counts.map(Vec::len), wanted, "{found:#?}");
}

#[test]
fn a_payment_nobody_was_told_of_is_missed() {
    let lines: Vec<&str> = GOOD.lines().collect();
    let without_end = [&lines[..1], &lines[2..]].concat().join("\n");
    let mut ledger = ledger();
    ledger[0] = owed("fulfil", 2, &["exit 1"]);
    ledger[0].state = "abandoned".to_owned();
    let failed = GOOD.replace("fulfil A-1 e2 paid 1 10 0", "fulfil A-1 e2 paid 1 10 1");
    check(&failed, &ledger, [2, 0, 0, 0, 0, 0]);
    // The ledger says done, and the script never said so.
    check(&without_end, &self::ledger(), [1, 0, 0, 1, 0, 0]);
    check("", &[], [2, 0, 0, 0, 0, 0]);
}

#[test]
fn two_runs_at_once_are_seen_by_the_lock_and_by_the_marks() {
    let held = GOOD.replace("opened 1 11 free", "opened 1 11 held");
    check(&held, &ledger(), [0, 1, 0, 0, 0, 0]);
    let mut lines: Vec<&str> = GOOD.lines().collect();
    lines.swap(1, 2);
    check(&lines.join("\n"), &ledger(), [0, 1, 0, 0, 0, 0]);
}

#[test]
fn an_older_event_after_a_newer_one_is_seen() {
    let lines: Vec<&str> = GOOD.lines().collect();
    let turned = [&lines[..2], &lines[4..], &lines[2..4]].concat().join("\n");
    check(&turned, &ledger(), [0, 0, 1, 0, 0, 0]);
}

#[test]
fn gaps_and_numbers_used_twice_are_seen() {
    // In the ledger.
    let mut gap = ledger();
    gap[1].attempts = vec![(2, "exit 0".to_owned())];
    let second = GOOD.replace("opened 1 11", "opened 2 11");
    check(&second, &gap, [0, 0, 0, 1, 0, 0]);
    // In the script's log: a number that was run twice, and one the ledger does not know.
    let twice = "S all A-1 e1 opened 1 9 free\n".to_owned() + GOOD;
    // The number, and that its first run is not the one that exited.
    check(&twice, &ledger(), [0, 0, 0, 2, 0, 0]);
    let more = GOOD.to_owned() + "S all A-1 e2 paid 2 13 free\n";
    check(&more, &ledger(), [0, 0, 0, 1, 0, 0]);
    // An attempt that is said to have failed, and never ran.
    let mut failed = ledger();
    failed[1] = owed("all", 1, &["exit 1", "exit 0"]);
    check(&second, &failed, [0, 0, 0, 1, 0, 0]);
    // A run that is owed to nobody.
    let stranger = GOOD.to_owned() + "S mail A-1 e2 paid 1 14 free\n";
    check(&stranger, &ledger(), [0, 0, 0, 1, 0, 0]);
}

#[test]
fn one_payment_under_two_ids_is_seen() {
    let other = GOOD.replace("all A-1 e2 paid", "all A-1 e3 paid");
    let mut ledger = ledger();
    ledger[2] = owed("all", 3, &["exit 0"]);
    check(&other, &ledger, [0, 0, 0, 0, 1, 0]);
}

#[test]
fn a_second_success_needs_an_interruption() {
    let again = GOOD.to_owned() + "S all A-1 e2 paid 2 13 free\nE all A-1 e2 paid 2 13 0\n";
    let mut ledger = ledger();
    ledger[2] = owed("all", 2, &["exit 0", "exit 0"]);
    check(&again, &ledger, [0, 0, 0, 0, 0, 1]);
    ledger[2] = owed("all", 2, &["interrupted", "exit 0"]);
    check(&again, &ledger, [0; 6]);
}

#[test]
fn marks_that_nobody_could_have_written_are_refused() {
    for text in [
        "S fulfil A-1 e2 paid 1 10",
        "S fulfil A-1 e2 paid 1 10 0",
        "E fulfil A-1 e2 paid 1 10 0",
        "S fulfil A-1 e2 paid 1 10 free\nE fulfil A-1 e2 paid 1 11 0",
        "S fulfil A-1 e2 paid 1 10 freeS fulfil A-1 e2 paid 1 11 free",
    ] {
        assert!(marks::read(text).is_err(), "{text}");
    }
}
