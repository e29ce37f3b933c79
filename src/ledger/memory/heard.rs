//! What was said of invoices, and the release of held deliveries; the rules are those of `ledger/sqlite/heard.rs` and
//! `held.rs`.

use super::MemoryStore;
use crate::invoice::observation::Source;
use crate::invoice::transition::{Claim, Decision, Why};
use crate::ledger::row::InvoiceKey;
use crate::ledger::store::{HeardClaim, NewHistory, trim_every};

/// One line of history.
#[derive(Clone, Debug)]
pub(crate) struct HistoryLine {
    /// Its invoice.
    pub invoice: InvoiceKey,
    pub(super) at_ms: i64,
    pub(super) source: Source,
    /// What was claimed; `None` for what a person did.
    pub claim: Option<Claim>,
    pub(super) decision: Decision,
    pub(super) why: Why,
    pub(super) reported: (Option<String>, Option<String>),
    pub(super) updated_at_text: Option<String>,
    /// The newest event when it was written.
    pub(super) after: i64,
}

impl HistoryLine {
    pub(super) fn is_undated(&self, key: InvoiceKey, text: &str) -> bool {
        self.invoice == key && self.updated_at_text.as_deref() == Some(text)
    }
}

/// Causes of events read for one invoice at most, the newest; as in SQLite's store.
const EVENTS_MOST: usize = 256;

impl MemoryStore {
    pub(super) fn named(
        &self,
        from: InvoiceKey,
        names: &[String],
        among: u32,
        most: u32,
    ) -> (Vec<InvoiceKey>, Option<InvoiceKey>) {
        let many = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let range: Vec<i64> = self
            .invoices
            .iter()
            .map(|(key, _)| key)
            .filter(|key| *key >= from.0)
            .take(many(among))
            .collect();
        let Some(last) = range.last() else {
            return (Vec::new(), None);
        };
        let found: Vec<InvoiceKey> = range
            .iter()
            .map(|key| InvoiceKey(*key))
            .filter(|key| self.bears_one_of(*key, names))
            .take(many(most))
            .collect();
        let next = match found.last() {
            Some(end) if found.len() >= many(most) => Some(InvoiceKey(end.0 + 1)),
            Some(_) | None => (range.len() >= many(among)).then_some(InvoiceKey(last + 1)),
        };
        (found, next)
    }

    fn bears_one_of(&self, key: InvoiceKey, names: &[String]) -> bool {
        let named = |text: &str| names.iter().any(|name| name == text);
        let stored = self.invoices.get(key.0);
        let sorted = stored.and_then(|stored| stored.invoice.sorted.as_ref());
        let shown = stored.and_then(|stored| stored.row.status.as_deref());
        shown.is_some_and(named)
            || sorted.is_some_and(|sorted| named(sorted.claim.status.as_str()))
            || self.events.iter().any(|(_, event)| {
                let cause = event.cause.as_ref();
                event.row.invoice == key && cause.is_some_and(|cause| named(cause.status.as_str()))
            })
            || self.history.iter().any(|(_, line)| {
                let claim = line.claim.as_ref();
                line.invoice == key && claim.is_some_and(|claim| named(claim.status.as_str()))
            })
    }

    pub(super) fn heard_of(&self, key: InvoiceKey) -> Vec<HeardClaim> {
        let lines = || {
            self.history
                .iter()
                .filter(move |(_, line)| line.invoice == key)
        };
        let events = self
            .events
            .iter()
            .rev()
            .filter(|(_, event)| event.row.invoice == key && event.row.raw.is_some())
            .filter(|(_, event)| event.cause.is_some())
            .filter_map(|(seq, event)| Some((seq, event, event.row.source?)))
            .filter(|(_, event, source)| {
                let is_its =
                    |line: &HistoryLine| line.at_ms == event.row.at_ms && line.source == *source;
                event.judged.is_some() || !lines().any(|(_, line)| is_its(line))
            })
            .take(EVENTS_MOST)
            .filter_map(|(seq, event, source)| {
                let (decision, why) = event.judged.unwrap_or((Decision::Advance, Why::First));
                let row = &event.row;
                let heard = HeardClaim {
                    claim: event.cause.clone()?,
                    source,
                    decision,
                    known: why == Why::Known,
                    at_ms: row.at_ms,
                    reported: (row.amount_reported.clone(), row.currency_reported.clone()),
                };
                Some(((seq, 0, 0), heard))
            });
        let lines = lines().filter_map(|(id, line)| {
            let heard = HeardClaim {
                claim: line.claim.clone()?,
                source: line.source,
                decision: line.decision,
                known: line.why == Why::Known,
                at_ms: line.at_ms,
                reported: line.reported.clone(),
            };
            Some(((line.after, 1, id), heard))
        });
        let mut heard: Vec<_> = events.chain(lines).collect();
        heard.sort_by_key(|(place, _)| *place);
        heard.into_iter().map(|(_, heard)| heard).collect()
    }
}

impl MemoryStore {
    /// Adds a line of history and drops those beyond the bounds.
    pub(super) fn add_line(&mut self, line: &NewHistory<'_>) {
        let newest = self.history.add(HistoryLine {
            invoice: line.invoice,
            at_ms: line.at_ms,
            source: line.source,
            claim: line.claim.cloned(),
            decision: line.decision,
            why: line.why,
            reported: line.reported.clone(),
            updated_at_text: line.updated_at_text.map(str::to_owned),
            after: self.events.iter().next_back().map_or(0, |(seq, _)| seq),
        });
        let rows = i64::from(self.bounds.history_rows);
        let mut old = Vec::new();
        if newest % trim_every(rows) == 0 {
            let all = self.history.iter().map(|(id, _)| id);
            old.extend(all.take_while(|id| *id <= newest - rows));
        }
        let lines = self.lines.get(line.invoice.0).copied().unwrap_or(0) + 1;
        self.lines.put(line.invoice.0, lines);
        let bound = i64::from(self.bounds.history_per_invoice);
        if lines > bound && lines % trim_every(bound) == 0 {
            let kept = usize::try_from(bound).unwrap_or(usize::MAX);
            let own = self.history.iter().rev();
            let own = own.filter(|(_, other)| other.invoice == line.invoice);
            old.extend(own.map(|(id, _)| id).skip(kept));
        }
        for id in old {
            self.history.remove(id);
        }
    }
}
