//! Any commands, good and bad: drawn from a seed, so that the same come to both stores and in every run.

use super::super::*;
use crate::invoice::observation::{How, Odd};
use crate::ledger::WrongClock;
use crate::ledger::retention::Cutoffs;

/// A small splitmix64: the same commands in every run.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }

    pub(super) fn small(&mut self, sides: u64) -> i64 {
        i64::try_from(self.below(sides)).expect("a small number")
    }
}

pub(in crate::ledger::tests) fn mark(pid: i32) -> ProcessMark {
    ProcessMark {
        boot_id: "boot".to_owned(),
        pid,
        start_ticks: 7,
    }
}

pub(in crate::ledger::tests) fn intent_of(
    order: i64,
    number: u8,
    anew: bool,
    now_ms: i64,
) -> Intent {
    let sum = Sum::new(Amount::parse("1500.00").expect("plain"), "RUB").expect("a sum");
    Intent {
        order_id: OrderId::new(format!("order-{order}")).expect("an order id"),
        wanted: Wanted {
            sum,
            method: "SBP".into(),
            mode: Mode::H2h,
            anew,
        },
        sealed: Sealed(vec![number]),
        reference: InvoiceRef::from_entropy([number; 16]),
        instead_of: None,
        creator: mark(1),
        now_ms,
        deadline_ms: now_ms + 35_000,
        window_ms: 3_600_000,
        polled: Vec::new(),
    }
}

/// Any observation of an invoice: any source, status, sum and instant, and now and then another invoice's id.
fn any_observation(dice: &mut Dice, key: i64, now_ms: i64) -> Observation {
    let statuses = ["new", "paid", "failed", "odd", "waiting"];
    let status = statuses
        .get(usize::try_from(dice.below(5)).expect("small"))
        .expect("one of five");
    let source = match dice.below(3) {
        0 => Source::Notification,
        1 => Source::Poll,
        _ => Source::Create,
    };
    let id = if dice.below(12) == 0 { key + 1 } else { key };
    let mut observation = said(source, &format!("id-{id}"), status, dice.small(8));
    observation.received_ms = now_ms;
    if dice.below(6) == 0 {
        observation.report.updated_at = None;
    }
    if dice.below(6) == 0 {
        observation.report.amount = Reported::Unreadable;
    }
    if dice.below(9) == 0 {
        observation.report.odd = vec![Odd {
            field: "amount",
            how: How::Retyped,
        }];
    }
    observation.report.service_ms = (dice.below(3) > 0).then_some(now_ms - dice.small(9_000));
    observation.asked = (source == Source::Poll).then(|| Asked {
        revision: dice.small(6),
        at_ms: now_ms - dice.small(3_000),
    });
    observation
}

fn any_act(dice: &mut Dice) -> Act {
    match dice.below(5) {
        0 => Act::Retry,
        1 => Act::Replay,
        2 => Act::Release,
        3 => Act::Abandon,
        _ => Act::Acknowledge,
    }
}

/// A notification that brings one of these statuses, newer than all before it.
pub(super) fn advance(seed: u64, statuses: &[String], now_ms: i64) -> Command {
    let mut dice = Dice(seed);
    let key = dice.small(7) + 1;
    let place = usize::try_from(dice.below(3)).expect("small");
    let status = statuses.get(place).expect("one of three");
    let at = now_ms - NOW + dice.small(9);
    let mut told = said(Source::Notification, &format!("id-{key}"), status, at);
    told.received_ms = now_ms;
    told.report.raw = format!("[{}]", dice.below(100));
    Command::Record(InvoiceKey(key), Box::new(told))
}

/// Another invoice, or the answer to its create.
pub(super) fn opened_anew(seed: u64, number: u8, now_ms: i64) -> Command {
    let mut dice = Dice(seed);
    let key = dice.small(7) + 1;
    if dice.below(2) == 0 {
        return Command::Begin(Box::new(intent_of(key, number, true, now_ms)));
    }
    let answer = said(Source::Create, &format!("id-{key}"), "new", 1);
    Command::Settle(InvoiceKey(key), Settled::Answered(Box::new(answer)))
}

/// Any command, a bad one now and then: keys may be of nothing.
pub(super) fn any_command(dice: &mut Dice, number: u8, now_ms: i64) -> Command {
    let key = InvoiceKey(dice.small(7) + 1);
    let delivery = DeliveryKey(dice.small(12) + 1);
    match dice.below(24) {
        0..3 => Command::Begin(Box::new(intent_of(
            dice.small(4),
            number,
            dice.below(2) == 0,
            now_ms,
        ))),
        3 => Command::Settle(key, Settled::Refused("no".to_owned())),
        4 => Command::Settle(key, Settled::Unknown("who knows".to_owned())),
        5 => {
            let mut answer = any_observation(dice, key.0, now_ms);
            (answer.source, answer.asked) = (Source::Create, None);
            Command::Settle(key, Settled::Answered(Box::new(answer)))
        }
        6 => Command::GiveUpOpening(key),
        7 => Command::PollFailed(PollFailed {
            key,
            asked_ms: now_ms - dice.small(3_000),
            now_ms,
            why: match now_ms % 3 {
                0 => NoAnswer::NotFound {
                    service_ms: Some(now_ms - 1_000),
                },
                1 => NoAnswer::Outage,
                _ => NoAnswer::Other,
            },
        }),
        8 => Command::Redate(vec![key], now_ms),
        9 if dice.below(2) == 0 => Command::Replan {
            now_ms: now_ms - dice.small(3_000),
            forward_ms: dice.small(3) * 900,
        },
        9 if dice.below(3) == 0 => Command::SeeClock {
            wrong: (dice.below(2) == 0).then_some(WrongClock::NotSet),
            after: dice.small(40),
        },
        9 => Command::Unresolve(key, now_ms),
        10..12 => Command::Claim {
            claimant: mark(2),
            now_ms,
            lanes: two_lanes((
                u32::try_from(dice.below(4)).expect("small"),
                u32::try_from(dice.below(3)).expect("small"),
            )),
        },
        12 => Command::NameChild(delivery, mark(3)),
        13 | 14 => {
            let record = AttemptRecord {
                started_ms: now_ms - 5,
                ended_ms: now_ms,
                result: "exit 0".to_owned(),
                stdout: vec![1],
                stderr: Vec::new(),
            };
            let after = match dice.below(5) {
                0 => After::Done,
                1 => After::Abandoned,
                2 => After::Interrupted,
                3 => After::Postponed {
                    at_ms: now_ms + 2_000,
                },
                _ => After::Retry {
                    at_ms: now_ms + 1_000,
                },
            };
            Command::Finish(delivery, Box::new(record), after)
        }
        15 | 19 => Command::Act(Acting {
            act: any_act(dice),
            keys: (0..dice.small(4))
                .map(|_| DeliveryKey(dice.small(24) + 1))
                .collect(),
            now_ms,
        }),
        16 => Command::Refuse(vec![Refusal {
            invoice: Some(key),
            reason: "token",
            at_ms: now_ms,
            peer: "127.0.0.1".to_owned(),
            body_bytes: 1,
            body_sha256: String::new(),
            ref_hash: String::new(),
            header_names: String::new(),
        }]),
        17 => Command::Note(SERVING_SINCE.note(&now_ms)),
        18 => Command::Reassess(now_ms),
        20 => Command::GiveBack(delivery),
        21 => {
            let before = |dice: &mut Dice| Some(now_ms - dice.small(200_000));
            let (requisites_ms, raw_ms) = (before(dice), before(dice));
            let cutoffs = Cutoffs {
                requisites_ms,
                raw_ms,
            };
            Command::Empty(vec![key], cutoffs)
        }
        _ => Command::Record(key, Box::new(any_observation(dice, key.0, now_ms))),
    }
}

pub(super) fn two_lanes(want: (u32, u32)) -> Vec<Lane> {
    let lane = |name: &str, want| Lane {
        names: vec![name.to_owned(), format!("told:{name}")],
        want,
        // Fewer than may be claimed: what is claimed beyond has none.
        children: vec![mark(7); usize::from(want > 1)],
    };
    vec![lane("fulfil", want.0), lane("log", want.1)]
}
