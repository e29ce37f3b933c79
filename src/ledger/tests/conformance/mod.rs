//! The seam's conformance suite: the same commands, batch by batch, through the real file and through the store in memory.
//! What is answered, stored, due and claimable must be the same in both, after good commands and after bad ones.

mod commands;
mod crowded;
mod pair;

use super::*;
use crate::hook::abandonment::told_of;
use crate::invoice::transition::SECOND_POLL_AFTER_MS;
use crate::ledger::memory::Fate;

pub(super) use commands::{intent_of, mark};
pub(super) use pair::{Pair, pair};

use commands::{Dice, advance, any_command, opened_anew};

/// Transactions in one run, of up to nine commands; every kind of command occurs in it many times.
const ROUNDS: u64 = 80;

#[test]
fn both_stores_answer_and_keep_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut pair = pair(&directory);
    let mut dice = Dice(3);
    let mut now_ms = NOW + 100;
    let mut number = 0_u8;
    pair.adopt();
    let first: Vec<Command> = (1..=4)
        .flat_map(|key: u8| {
            let intent = intent_of(i64::from(key), 200 + key, false, now_ms);
            let answer = said(Source::Create, &format!("id-{key}"), "new", 1);
            let answered = Settled::Answered(Box::new(answer));
            [
                Command::Begin(Box::new(intent)),
                Command::Settle(InvoiceKey(i64::from(key)), answered),
            ]
        })
        .collect();
    pair.run(&first, &first);
    let mut held = 0;
    for round in 0..ROUNDS {
        if round == ROUNDS / 2 {
            pair.rules.policy.lists.paid.push("odd".to_owned());
            pair.adopt();
        }
        if round == ROUNDS * 3 / 4 {
            pair.restore(now_ms);
            pair.compare(now_ms);
        }
        now_ms += dice.small(u64::try_from(SECOND_POLL_AFTER_MS).expect("positive"));
        let (mut file, mut memory) = (Vec::new(), Vec::new());
        for _ in 0..=dice.below(9) {
            // Refs come again at last: both must refuse them.
            number = number.wrapping_add(1);
            let seed = dice.below(u64::MAX);
            file.push(any_command(&mut Dice(seed), number, now_ms));
            memory.push(any_command(&mut Dice(seed), number, now_ms));
        }
        pair.run(&file, &memory);
        pair.compare(now_ms);
        let deliveries = pair.memory.deliveries().into_iter();
        held += deliveries
            .filter(|delivery| delivery.state == DeliveryState::Held)
            .count();
    }
    let path = directory.path().join("ledger.db");
    let astray = sqlite::count_for_tests(&path, "pragma_foreign_key_check");
    assert_eq!(astray, 0, "every row belongs somewhere");
    let [events, _] = &pair.ids;
    let deliveries = pair.memory.deliveries();
    let ran: u32 = deliveries.iter().map(|delivery| delivery.attempts).sum();
    let mut tellers = deliveries.iter().map(|delivery| told_of(&delivery.hook));
    assert!(tellers.any(|told| told.is_some()), "nothing was given up");
    let (made, most) = (events.len(), u64::from(ran));
    assert!(
        made >= 20 && most > 10 && held > 0,
        "a busy run: {made} events, {most} runs, {held} held"
    );
}

/// What is at stake: a script that reads a row of the table reads how the invoice stands now. Open invoices, heard of again and
/// again, with anything else in between.
#[test]
fn no_row_is_behind_its_newest_event() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut pair = pair(&directory);
    let open = ["new", "wip", "waiting"].map(str::to_owned);
    pair.rules.policy.lists.open = open.to_vec();
    pair.adopt();
    let mut dice = Dice(5);
    let mut now_ms = NOW + 100;
    let path = directory.path().join("ledger.db");
    let newest =
        "invoice i JOIN event n ON n.seq = (SELECT max(seq) FROM event WHERE invoice = i.id)";
    let behind = format!("{newest} WHERE n.status IS NOT i.status OR n.outcome <> i.outcome");
    let mut seen = 0;
    for round in 0..ROUNDS {
        now_ms += 1 + dice.small(10_000);
        let (mut file, mut memory) = (Vec::new(), Vec::new());
        for number in 0..=dice.below(9) {
            let seed = dice.below(u64::MAX);
            let number = u8::try_from(round * 3 % 250 + number).expect("small");
            let one_of_these = |place: u64| match place {
                0 => any_command(&mut Dice(seed), number, now_ms),
                1..5 => opened_anew(seed, number, now_ms),
                _ => advance(seed, &open, now_ms),
            };
            let place = dice.below(if round < 4 { 6 } else { 60 });
            file.push(one_of_these(place));
            memory.push(one_of_these(place));
        }
        pair.run(&file, &memory);
        pair.compare(now_ms);
        seen = sqlite::count_for_tests(&path, newest);
        assert_eq!(sqlite::count_for_tests(&path, &behind), 0, "round {round}");
    }
    let astray = sqlite::count_for_tests(&path, "pragma_foreign_key_check");
    assert_eq!(astray, 0, "every row belongs somewhere");
    assert!(seen > 5, "invoices with events: {seen}");
}

#[test]
fn what_was_not_committed_is_gone_and_what_was_stays() {
    let directory = tempfile::tempdir().expect("a directory");
    let Pair {
        mut memory, rules, ..
    } = pair(&directory);
    let begin = |order| Command::Begin(Box::new(intent_of(order, 1, false, NOW)));
    let refused = memory.run(&rules, &[&begin(1)], Fate::NotDone);
    assert!(refused.is_err() && memory.invoices().count() == 0);
    let unheard = memory.run(&rules, &[&begin(1)], Fate::DoneUnheard);
    assert!(unheard.is_err() && memory.invoices().count() == 1);
    let again = memory.run(&rules, &[&begin(1)], Fate::Done);
    let standing = again.expect("it commits");
    assert!(
        matches!(
            standing.first(),
            Some(Ok(Reply::Begun(Begun::BeingCreated(_))))
        ),
        "{standing:?}"
    );
}
