//! Makes the deliveries that events are without though hooks were to be owed them: another program wrote the event, or took the
//! delivery away. By a person's wish alone, who knows whether the hook has to run.
//!
//! Relies on the store to find them. Promises that what is to be given up is never due in between.

use crate::ledger::choice::{Act, Acting, Supplying};
use crate::ledger::store::{Next, Store, StoreError};

/// Why one is held until, in the same commit, it is given up.
const HELD_TO_GIVE_UP: &str = "given_up";

/// Makes them, due now or given up. Returns how many.
pub(super) fn supply<S: Store>(store: &mut S, supplying: &Supplying) -> Result<usize, StoreError> {
    let now_ms = supplying.now_ms;
    let next = match supplying.act {
        Act::Abandon => Next::Held(HELD_TO_GIVE_UP),
        Act::Retry | Act::Replay | Act::Release | Act::Acknowledge => Next::At {
            at_ms: now_ms,
            wait_ms: 0,
        },
    };
    let mut keys = Vec::new();
    for missing in store.missing(&supplying.choice)? {
        keys.push(store.insert_delivery(missing.seq, missing.invoice, &missing.hook, next)?);
    }
    let made = keys.len();
    if supplying.act == Act::Abandon {
        store.act(&Acting {
            act: Act::Abandon,
            keys,
            now_ms,
        })?;
    }
    Ok(made)
}
