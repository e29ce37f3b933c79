//! What `tilld invoice create` shows of the invoice there is, and says about it.

use super::super::super::context::Context;
use super::super::super::failure::{Exit, Failure};
use super::super::super::output::{escape, talk};
use super::super::view;
use crate::answer::create::Ended;
use crate::clock::wall_ms;
use crate::ledger::{InvoiceRow, is_served};
use crate::opening::Opened;

/// It was there before.
pub(super) fn say_standing(row: &InvoiceRow) {
    talk(&format!(
        "order {} has this open invoice already; nothing was sent",
        escape(&row.order_id)
    ));
}

/// Shows the invoice there is, and says whether it may be handed to the customer.
pub(super) fn show(context: &Context, opened: Opened) -> Result<Exit, Failure> {
    let is_standing = matches!(opened, Opened::Standing(_));
    let Ended {
        row,
        is_fresh,
        failure,
    } = opened.into();
    if is_standing {
        say_standing(&row);
    }
    view::print(context.output, &row, wall_ms())?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    if is_fresh && !is_served(&context.state_dir()?) {
        talk(
            "no `tilld serve` runs on this state directory: until one does, nobody hears of the payment",
        );
    }
    Ok(Exit::Ok)
}
