//! Whose a request is and the how-manieth of theirs: what faults of one invoice and chance go by. Counted by name, so that
//! what chance brings to one does not depend on when others ask.

use super::State;
use super::dice::Dice;
use super::faults::{Endpoint, Whose};

/// Names counted. Beyond them all counts begin anew: chance then brings the same once more.
const MOST_NAMES: usize = 200_000;

impl State {
    /// Counts one more of this kind for this name. Gives what chance goes by.
    pub(super) fn next_of(&mut self, kind: &str, name: &str) -> [u64; 2] {
        let key = Dice::of(Dice::name(kind), [Dice::name(name), 0, 0]).roll();
        if self.times.len() >= MOST_NAMES && !self.times.contains_key(&key) {
            self.times.clear();
        }
        let times = self.times.entry(key).or_default();
        *times += 1;
        [key, *times]
    }

    /// Whose the next request to an endpoint is. `name` is what it says of itself: the order of a create, the id of a fetch,
    /// the client of a login.
    pub(crate) fn asks(&mut self, endpoint: Endpoint, name: &str) -> Whose {
        let names = match endpoint {
            Endpoint::Create => [String::new(), name.to_owned()],
            Endpoint::Fetch => {
                let found = self.by_id.get(name).and_then(|seq| self.invoices.get(seq));
                let order = found.map(|invoice| invoice.internal_id.clone());
                [name.to_owned(), order.unwrap_or_default()]
            }
            Endpoint::Login | Endpoint::Token => Default::default(),
        };
        // An id is drawn when an invoice is made, in the order in which they are made; its order's is the same each time.
        let told = match names.each_ref().map(String::as_str) {
            [_, order] if !order.is_empty() => order,
            _ => name,
        };
        let draw = self.next_of(endpoint.word(), told);
        Whose { names, draw }
    }
}
