//! How a transaction of the store in memory is taken back: every table goes back to a mark, or forgets that there was one.

use super::MemoryStore;

/// A place to go back to: one mark for each table.
pub(super) type Marks = [usize; 10];

impl MemoryStore {
    pub(super) fn marks(&self) -> Marks {
        [
            self.invoices.mark(),
            self.ranks.mark(),
            self.lines.mark(),
            self.polls.mark(),
            self.events.mark(),
            self.deliveries.mark(),
            self.attempts.mark(),
            self.history.mark(),
            self.refusals.mark(),
            self.meta.mark(),
        ]
    }

    pub(super) fn go_back(&mut self, marks: Marks) {
        let [
            invoices,
            ranks,
            lines,
            polls,
            events,
            deliveries,
            attempts,
            history,
            refusals,
            meta,
        ] = marks;
        self.invoices.go_back(invoices);
        self.ranks.go_back(ranks);
        self.lines.go_back(lines);
        self.polls.go_back(polls);
        self.events.go_back(events);
        self.deliveries.go_back(deliveries);
        self.attempts.go_back(attempts);
        self.history.go_back(history);
        self.refusals.go_back(refusals);
        self.meta.go_back(meta);
    }

    pub(super) fn forget(&mut self) {
        self.invoices.forget();
        self.ranks.forget();
        self.lines.forget();
        self.polls.forget();
        self.events.forget();
        self.deliveries.forget();
        self.attempts.forget();
        self.history.forget();
        self.refusals.forget();
        self.meta.forget();
        self.savepoint = None;
    }
}
