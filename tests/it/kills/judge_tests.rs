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

/// The same, with one delivery as it is here.
fn ledger_but(changed: Owed) -> Vec<Owed> {
    let same = |owed: &Owed| owed.hook == changed.hook && owed.seq == changed.seq;
    let mut others: Vec<Owed> = ledger().into_iter().filter(|owed| !same(owed)).collect();
    others.push(changed);
    others
}

/// The lines of the good log.
fn lines() -> [&'static str; 6] {
    let lines: Vec<&str> = GOOD.lines().collect();
    lines.try_into().expect("six lines")
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
    let interrupted = ["interrupted", "interrupted", "interrupted", "exit 0"];
    let verdict = judged(&killed, &ledger_but(owed("fulfil", 2, &interrupted)));
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
    let [first, _, rest @ ..] = lines();
    let without_end = format!("{first}\n{}", rest.join("\n"));
    let abandoned = Owed {
        state: "abandoned".to_owned(),
        ..owed("fulfil", 2, &["exit 1"])
    };
    let failed = GOOD.replace("fulfil A-1 e2 paid 1 10 0", "fulfil A-1 e2 paid 1 10 1");
    check(&failed, &ledger_but(abandoned), [2, 0, 0, 0, 0, 0]);
    // The ledger says done, and the script never said so.
    check(&without_end, &ledger(), [1, 0, 0, 1, 0, 0]);
    check("", &[], [2, 0, 0, 0, 0, 0]);
}

#[test]
fn two_runs_at_once_are_seen_by_the_lock_and_by_the_marks() {
    let held = GOOD.replace("opened 1 11 free", "opened 1 11 held");
    check(&held, &ledger(), [0, 1, 0, 0, 0, 0]);
    let mut lines = lines();
    lines.swap(1, 2);
    check(&lines.join("\n"), &ledger(), [0, 1, 0, 0, 0, 0]);
}

#[test]
fn an_older_event_after_a_newer_one_is_seen() {
    let [fulfil, end, opened, opened_end, paid, paid_end] = lines();
    let turned = [fulfil, end, paid, paid_end, opened, opened_end].join("\n");
    check(&turned, &ledger(), [0, 0, 1, 0, 0, 0]);
}

#[test]
fn gaps_and_numbers_used_twice_are_seen() {
    // In the ledger.
    let gap = Owed {
        attempts: vec![(2, "exit 0".to_owned())],
        ..owed("all", 1, &[])
    };
    let second = GOOD.replace("opened 1 11", "opened 2 11");
    check(&second, &ledger_but(gap), [0, 0, 0, 1, 0, 0]);
    // In the script's log: a number that was run twice, and one the ledger does not know.
    let twice = "S all A-1 e1 opened 1 9 free\n".to_owned() + GOOD;
    // The number, and that its first run is not the one that exited.
    check(&twice, &ledger(), [0, 0, 0, 2, 0, 0]);
    let more = GOOD.to_owned() + "S all A-1 e2 paid 2 13 free\n";
    check(&more, &ledger(), [0, 0, 0, 1, 0, 0]);
    // An attempt that is said to have failed, and never ran.
    let failed = owed("all", 1, &["exit 1", "exit 0"]);
    check(&second, &ledger_but(failed), [0, 0, 0, 1, 0, 0]);
    // A run that is owed to nobody.
    let stranger = GOOD.to_owned() + "S mail A-1 e2 paid 1 14 free\n";
    check(&stranger, &ledger(), [0, 0, 0, 1, 0, 0]);
}

#[test]
fn one_payment_under_two_ids_is_seen() {
    let other = GOOD.replace("all A-1 e2 paid", "all A-1 e3 paid");
    let [fulfil, opened, _] = <[Owed; 3]>::try_from(ledger()).expect("three");
    let ledger = [fulfil, opened, owed("all", 3, &["exit 0"])];
    check(&other, &ledger, [0, 0, 0, 0, 1, 0]);
}

#[test]
fn a_second_success_needs_an_interruption() {
    let again = GOOD.to_owned() + "S all A-1 e2 paid 2 13 free\nE all A-1 e2 paid 2 13 0\n";
    let stored = owed("all", 2, &["exit 0", "exit 0"]);
    check(&again, &ledger_but(stored), [0, 0, 0, 0, 0, 1]);
    let interrupted = owed("all", 2, &["interrupted", "exit 0"]);
    check(&again, &ledger_but(interrupted), [0; 6]);
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
