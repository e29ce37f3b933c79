//! Two stores side by side: what goes through one goes through the other, and all that can be asked afterwards is compared.

use std::fmt::Debug;

use super::super::*;
use super::commands::two_lanes;
use crate::invoice::silence::Class;
use crate::ledger::fact::{CLOCK, ODD, RESTORED, UNSORTED};
use crate::ledger::memory::MemoryStore;
use crate::ledger::row::{Place, Running};
use crate::ledger::sqlite::{ReadStore, SqliteStore};
use crate::ledger::store::Store;
use crate::ledger::{apply, batch};

/// More than any answer has rows.
const ALL: u32 = 1_000;

/// As text, with the random ids of events out of the way.
fn plain(shown: &impl Debug, ids: &[String]) -> String {
    ids.iter().fold(format!("{shown:?}"), |text, id| {
        text.replace(id.as_str(), "ID")
    })
}

/// The same transaction through both, and all that can be asked afterwards.
pub(in crate::ledger::tests) struct Pair {
    file: SqliteStore,
    beside: ReadStore,
    pub(in crate::ledger::tests) memory: MemoryStore,
    pub(super) rules: Rules,
    path: PathBuf,
    /// Ids of events, in the file and in memory.
    pub(in crate::ledger::tests) ids: [Vec<String>; 2],
}

impl Pair {
    pub(in crate::ledger::tests) fn run(
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
    pub(in crate::ledger::tests) fn adopt(&mut self) {
        self.file.begin().expect("it begins");
        let number = apply::remember(&mut self.file, &self.rules).expect("stored");
        self.file.commit().expect("it commits");
        self.memory.adopt(&mut self.rules).expect("stored");
        assert_eq!(self.rules.sorted_by, Some(number));
    }

    /// Both are restored copies from now on.
    pub(super) fn restore(&mut self, now_ms: i64) {
        let held = (
            caught_up(&mut self.file, now_ms),
            caught_up(&mut self.memory, now_ms),
        );
        assert!(held.0 > 0 && held.0 == held.1, "{held:?}");
        self.rules.restore = self.memory.fact_of(&RESTORED).expect("just stored");
    }

    /// The invoices that decide for an order: the same for those who write and whoever reads beside.
    pub(super) fn standing_of_order(&mut self, order: &str) -> Vec<InvoiceRow> {
        let rows = self.file.standing_of_order(order, [None; 2]).expect("read");
        let memory = self.memory.standing_of_order(order, [None; 2]);
        self.same("standing", &rows, &memory.expect("read"));
        let beside = self.beside.standing_of_order(order).expect("read");
        self.same("standing beside", &beside, &rows);
        rows.into_iter().map(|earlier| earlier.row).collect()
    }

    /// An order's invoices as they are shown, and all there are in the ledger.
    pub(super) fn shown_of_order(&self, order: &str) -> (Vec<InvoiceRow>, usize) {
        let shown = self.beside.invoices_of_order(order, None, usize::MAX);
        let shown = shown.expect("read").rows;
        (shown, self.memory.invoices().count())
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

    fn compare_ended(&self) {
        for (below, limit) in [(3, 1), (99, ALL)] {
            let passed = self.beside.passed(InvoiceKey(below), limit).expect("read");
            let beside = self.memory.passed(InvoiceKey(below), limit);
            self.same("passed", &passed, &beside);
        }
        for (generation, below, limit) in [(0, 99, ALL), (1, 99, ALL), (2, 99, 2), (1, 3, 1)] {
            let below = InvoiceKey(below);
            let counted = self.beside.count_ended(generation, below, limit);
            let beside = self.memory.count_ended(generation, below, limit);
            self.same("counted", &counted.expect("read"), &beside);
        }
    }

    fn compare_events(&self) {
        let events = self.beside.events(None, 0, ALL).expect("read");
        for event in &events {
            let whole = self.beside.find_event(&event.event_id).expect("read");
            let mut beside = self.memory.events().map(|(beside, _)| beside);
            let beside = beside.find(|beside| beside.seq == event.seq);
            self.same("an event", &whole.as_ref(), &beside);
        }
        // A list comes without the service's documents.
        let beside = self.memory.events().map(|(event, _)| EventRow {
            raw: None,
            ..event.clone()
        });
        let beside: Vec<_> = beside.collect();
        self.same("events", &events, &beside);
    }

    pub(in crate::ledger::tests) fn compare(&mut self, now_ms: i64) {
        let mut invoices = self
            .beside
            .list_invoices(Filter::All, InvoiceKey(i64::MAX), ALL)
            .expect("read")
            .rows;
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
        for order in 0..4 {
            self.standing_of_order(&format!("order-{order}"));
        }
        self.compare_events();
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
        self.compare_ended();
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
        for fact in [&SERVING_SINCE, &CLOCK_MARK] {
            self.same_fact(fact);
        }
        self.same_fact(&RESTORED);
        self.same_fact(&CLOCK);
        let planned = self.beside.planned_after(now_ms).expect("read");
        self.same("planned", &planned, &self.memory.planned_after(now_ms));
        self.same_fact(&UNSORTED.named("odd"));
        self.same_fact(&ODD.named("amount:retyped"));
    }

    fn same_fact<T: Debug>(&self, fact: &Fact<T>) {
        let beside = self.beside.fact(fact).expect("read");
        self.same(&fact.key, &beside, &self.memory.fact_of(fact));
    }
}

/// How many deliveries are held, of a copy that was restored.
fn caught_up(store: &mut impl Store, now_ms: i64) -> usize {
    store.begin().expect("it begins");
    let held = apply::catch_up(store, 1, now_ms).expect("stored");
    store.commit().expect("it commits");
    held
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
                below: (place == 0).then_some(DeliveryKey(9)),
            };
            let (in_file, in_memory) = (choice(in_file), choice(in_memory));
            let file = self.beside.chosen_deliveries(&in_file, 3).expect("read");
            self.same("chosen", &file, &self.memory.chosen(&in_memory, 3));
            for act in Act::ALL {
                let file = self.beside.would_change(act, &in_file, &page);
                let memory = self.memory.would_change(act, &in_memory, &page);
                self.same("would change", &file.expect("read"), &memory);
            }
        }
    }
}

pub(in crate::ledger::tests) fn pair(directory: &tempfile::TempDir) -> Pair {
    let bounds = Bounds {
        history_per_invoice: 5,
        history_rows: 60,
        refusal_rows: 3,
    };
    let path = directory.path().join("ledger.db");
    let file = SqliteStore::open(
        path.clone(),
        Duration::from_secs(5),
        bounds,
        (Checkpoint::AfterAnswers, LogLimits::WIDE),
    )
    .expect("it opens");
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
