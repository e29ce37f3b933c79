//! What events are without though a hook was to be owed it: found, shown, and made by the acts that make it.
//!
//! Relies on the ledger, which alone knows what was owed when. Promises that other acts find nothing here.

use super::super::failure::Failure;
use super::super::output::{escape, talk};
use crate::clock::wall_ms;
use crate::ledger::{Act, Choice, Ledger, Missing, ReadError, Reader, Supplying};

/// What the act would make of this choice.
pub(super) async fn found(
    reader: &Reader,
    act: Act,
    choice: &Choice,
) -> Result<Vec<Missing>, ReadError> {
    if !act.makes() {
        return Ok(Vec::new());
    }
    reader.missing(choice.clone()).await
}

/// Makes it, in bounded commits. Returns how many.
pub(super) async fn make(ledger: &Ledger, act: Act, choice: &Choice) -> Result<usize, Failure> {
    let writer = ledger.writer();
    let mut made = 0;
    while act.makes() {
        let supplied = writer.supply(Supplying {
            act,
            choice: choice.clone(),
            now_ms: wall_ms(),
        });
        match supplied.await? {
            0 => break,
            more => made += more,
        }
    }
    Ok(made)
}

/// Says what would be made.
pub(super) fn tell(missing: &[Missing]) {
    for one in missing {
        talk(&format!(
            "event {} of order {} is without its delivery to hook {}, which would be made",
            one.seq,
            escape(&one.order_id),
            escape(&one.hook)
        ));
    }
}
