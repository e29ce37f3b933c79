//! The seam's conformance suite: the same commands, batch by batch, through the real file and through the store in memory.
//! What is answered, stored, due and claimable must be the same in both, after good commands and after bad ones.

use std::fmt::Debug;

use super::*;
use crate::hook::abandonment::told_of;
use crate::invoice::observation::{How, Odd};
use crate::invoice::silence::Class;
use crate::invoice::transition::SECOND_POLL_AFTER_MS;
use crate::ledger::memory::{Fate, MemoryStore};
use crate::ledger::row::{Place, Running};
use crate::ledger::sqlite::{ReadStore, SqliteStore};
use crate::ledger::store::Store;
use crate::ledger::{apply, batch};

/// Transactions in one run, of up to nine commands; every kind of command occurs in it many times.
const ROUNDS: u64 = 80;
/// More than any answer has rows.
const ALL: u32 = 1_000;

/// A small splitmix64: the same commands in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn small(&mut self, sides: u64) -> i64 {
        i64::try_from(self.below(sides)).expect("a small number")
    }
}

pub(super) fn mark(pid: i32) -> ProcessMark {
    ProcessMark {
        boot_id: "boot".to_owned(),
        pid,
        start_ticks: 7,
    }
}

pub(super) fn intent_of(order: i64, number: u8, anew: bool, now_ms: i64) -> Intent {
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
        observation.report.amount = Reported::Unreadable("much".to_owned());
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
    match dice.below(4) {
        0 => Act::Retry,
        1 => Act::Replay,
        2 => Act::Release,
        _ => Act::Abandon,
    }
}

/// Any command, a bad one now and then: keys may be of nothing.
fn any_command(dice: &mut Dice, number: u8, now_ms: i64) -> Command {
    let key = InvoiceKey(dice.small(7) + 1);
    let delivery = DeliveryKey(dice.small(12) + 1);
    match dice.below(22) {
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
        17 => Command::Note("said", format!("at {now_ms}")),
        18 => Command::Reassess(now_ms),
        _ => Command::Record(key, Box::new(any_observation(dice, key.0, now_ms))),
    }
}

fn two_lanes(want: (u32, u32)) -> Vec<Lane> {
    let lane = |name: &str, want| Lane {
        names: vec![name.to_owned(), format!("told:{name}")],
        want,
    };
    vec![lane("fulfil", want.0), lane("log", want.1)]
}

/// As text, with the random ids of events out of the way.
fn plain(shown: &impl Debug, ids: &[String]) -> String {
    ids.iter().fold(format!("{shown:?}"), |text, id| {
        text.replace(id.as_str(), "ID")
    })
}

/// The same transaction through both, and all that can be asked afterwards.
pub(super) struct Pair {
    file: SqliteStore,
    beside: ReadStore,
    pub(super) memory: MemoryStore,
    rules: Rules,
    path: PathBuf,
    /// Ids of events, in the file and in memory.
    pub(super) ids: [Vec<String>; 2],
}

impl Pair {
    pub(super) fn run(
        &mut self,
        file: &[Command],
        memory: &[Command],
    ) -> Vec<Result<Reply, apply::ApplyError>> {
        let (file, memory): (Vec<&Command>, Vec<&Command>) =
            (file.iter().collect(), memory.iter().collect());
        let in_file = batch::run(&mut self.file, &self.rules, &file).expect("it commits");
        let in_memory = batch::run(&mut self.memory, &self.rules, &memory).expect("it commits");
        self.learn_ids();
        let [file_ids, memory_ids] = &self.ids;
        for ((one, other), command) in in_file.iter().zip(&in_memory).zip(&file) {
            let (one, other) = (plain(one, file_ids), plain(other, memory_ids));
            // How a store words what it refuses is its own.
            let refused = |text: &str| text.starts_with("Err(Store(Refused(");
            if !(refused(&one) && refused(&other)) {
                assert_eq!(one, other, "answers to {command:?}");
            }
        }
        in_file
    }

    /// The merchant's lists as they are configured now.
    pub(super) fn adopt(&mut self) {
        self.file.begin().expect("it begins");
        let number = apply::adopt(&mut self.file, &self.rules, Lists::Adopt).expect("stored");
        self.file.commit().expect("it commits");
        self.memory.adopt(&mut self.rules).expect("stored");
        assert_eq!(self.rules.sorted_by, number);
    }

    /// Both are restored copies from now on.
    fn restore(&mut self, now_ms: i64) {
        let mut held = Vec::new();
        for store in [&mut self.file as &mut dyn Store, &mut self.memory] {
            store.begin().expect("it begins");
            held.push(apply::catch_up(store, 1, now_ms).expect("stored"));
            self.rules.restore = apply::last_restore(store).expect("read");
            store.commit().expect("it commits");
        }
        assert!(
            held.first() > Some(&0) && held.first() == held.last(),
            "{held:?}"
        );
    }

    fn learn_ids(&mut self) {
        let events = self.beside.events(None, 0, ALL).expect("read");
        let in_file = events.into_iter().map(|event| event.event_id).collect();
        let in_memory = self.memory.events();
        let in_memory = in_memory.map(|(event, _)| event.event_id.clone()).collect();
        self.ids = [in_file, in_memory];
    }

    fn same<T: Debug, U: Debug>(&self, what: &str, file: &T, memory: &U) {
        let [file_ids, memory_ids] = &self.ids;
        assert_eq!(plain(file, file_ids), plain(memory, memory_ids), "{what}");
    }

    pub(super) fn compare(&mut self, now_ms: i64) {
        let mut invoices = self.beside.list_invoices(Filter::All, ALL).expect("read");
        invoices.reverse();
        let beside: Vec<_> = self.memory.invoices().collect();
        self.same("invoices", &invoices, &beside);
        for row in &invoices {
            let file = (
                self.file.load(row.key).expect("read"),
                self.file.poll_state(row.key).expect("read"),
                self.file.recorded_claims(row.key).expect("read"),
                self.file.heard_claims(row.key).expect("read"),
            );
            let memory = (
                self.memory.load(row.key).expect("read"),
                self.memory.poll_state(row.key).expect("read"),
                self.memory.recorded_claims(row.key).expect("read"),
                self.memory.heard_claims(row.key).expect("read"),
            );
            self.same("an invoice", &file, &memory);
        }
        let events = self.beside.events(None, 0, ALL).expect("read");
        let beside: Vec<_> = self.memory.events().map(|(event, _)| event).collect();
        self.same("events", &events, &beside);
        for limit in [2, 4, ALL] {
            // By the clock as it is, and by one that was never set.
            for now_ms in [now_ms, 9_000] {
                let due = self.beside.due(now_ms, limit).expect("read");
                self.same("due", &due, &self.memory.due(now_ms, limit));
            }
            for class in Class::ALL {
                let place = Place {
                    class,
                    due_ms: now_ms - 1_000,
                    key: InvoiceKey(3),
                };
                let after = self.beside.due_after(place, limit).expect("read");
                self.same("due after", &after, &self.memory.due_after(place, limit));
            }
        }
        let names = ["odd".to_owned(), "paid".to_owned()];
        for (from, among, most) in [(1, 3, 9), (2, 9, 1), (4, 9, 9)] {
            let from = InvoiceKey(from);
            let file = self.file.with_status(from, &names, among, most);
            let memory = self.memory.with_status(from, &names, among, most);
            self.same("named", &file.expect("read"), &memory.expect("read"));
        }
        let place = (now_ms - 100_000, InvoiceKey(3));
        let retired = self.beside.retired_after(place, 3).expect("read");
        self.same("retired", &retired, &self.memory.retired_after(place, 3));
        let next = self.beside.next_due_ms().expect("read");
        self.same("next due", &next, &self.memory.next_due_ms());
        let mut creating = self.beside.creating().expect("read");
        creating.sort_by_key(|row| row.key);
        self.same("creating", &creating, &self.memory.creating());
        let mut deliveries = self
            .beside
            .chosen_deliveries(&Choice::default(), ALL)
            .expect("read");
        deliveries.sort_by_key(|row| row.key);
        self.same("deliveries", &deliveries, &self.memory.deliveries());
        for row in &deliveries {
            let attempts = self.beside.attempts(row.key).expect("read");
            self.same("attempts", &attempts, &self.memory.attempts(row.key));
        }
        self.compare_choices(now_ms);
        let mut running: Vec<Running> = self.beside.running().expect("read");
        running.sort_by_key(|row| row.key);
        self.same("running", &running, &self.memory.running());
        let ahead = now_ms..=now_ms + 60_000;
        for want in [(0, 2), (1, 0), (3, 1)] {
            let lanes = two_lanes(want);
            let outlook = self.beside.outlook(&ahead, &lanes).expect("read");
            self.same("outlook", &outlook, &self.memory.outlook(&ahead, &lanes));
        }
        let lines = sqlite::count_for_tests(&self.path, "history");
        self.same("history", &lines, &self.memory.history().count());
        let refusals = self
            .beside
            .refusals(&RefusalFilter::default(), ALL)
            .expect("read")
            .len();
        self.same("refusals", &refusals, &self.memory.refusal_count());
        for name in [
            "said",
            "restored",
            "clock_ms",
            "unsorted:odd",
            "odd:amount:retyped",
        ] {
            let fact = self.beside.meta(name).expect("read");
            let beside = self.memory.meta(name).expect("read");
            self.same(name, &fact, &beside);
        }
    }
}

impl Pair {
    /// What a person may mean, and what each act would change of it.
    fn compare_choices(&self, now_ms: i64) {
        let [file_ids, memory_ids] = &self.ids;
        let of_event = |ids: &[String]| Whose::Event(ids.last().cloned().unwrap_or_default());
        let order = Whose::Order("order-1".to_owned());
        let whose = [
            (Whose::All, Whose::All),
            (order.clone(), order),
            (of_event(file_ids), of_event(memory_ids)),
        ];
        let (after, upto, most) = (DeliveryKey(2), DeliveryKey(19), 5);
        let page = Page { after, upto, most };
        for (place, (in_file, in_memory)) in whose.into_iter().enumerate() {
            let choice = |whose| Choice {
                whose,
                hook: (place != 1).then(|| "log".to_owned()),
                state: (place == 1).then_some(DeliveryState::Abandoned),
                since_ms: Some(now_ms - 200_000),
                until_ms: Some(now_ms),
            };
            let (in_file, in_memory) = (choice(in_file), choice(in_memory));
            let file = self.beside.chosen_deliveries(&in_file, 3).expect("read");
            self.same("chosen", &file, &self.memory.chosen(&in_memory, 3));
            for act in [Act::Retry, Act::Replay, Act::Release, Act::Abandon] {
                let file = self.beside.would_change(act, &in_file, &page);
                let memory = self.memory.would_change(act, &in_memory, &page);
                self.same("would change", &file.expect("read"), &memory);
            }
        }
    }
}

pub(super) fn pair(directory: &tempfile::TempDir) -> Pair {
    let bounds = Bounds {
        history_per_invoice: 5,
        history_rows: 60,
        refusal_rows: 3,
    };
    let path = directory.path().join("ledger.db");
    let file = SqliteStore::open(path.clone(), Duration::from_secs(5), bounds).expect("it opens");
    Pair {
        file,
        beside: ReadStore::open(&path).expect("it opens"),
        memory: MemoryStore::new(bounds),
        rules: Rules {
            on_abandoned: true,
            ..rules()
        },
        path,
        ids: [Vec::new(), Vec::new()],
    }
}

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
