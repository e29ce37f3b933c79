//! `tilld invoice create` by a daemon: the same is shown and said as when the command opens it itself.

use super::super::super::context::Context;
use super::super::super::failure::{Exit, Failure};
use super::super::super::output::talk;
use super::super::super::remote::{Created, Remote};
use super::super::view;
use super::{FALLS_BACK, ends};
use crate::clock::wall_ms;
use crate::invoice::opening::Mode;
use crate::opening::Order;
use crate::opening::patient::Patience;

/// Has it opened, and shows it.
pub(super) async fn run(
    remote: &Remote,
    order: &Order,
    patience: &Patience,
    context: &Context,
) -> Result<Exit, Failure> {
    let waits = || {
        let seconds = patience.wait.as_secs();
        talk(&format!(
            "there is no invoice yet; the daemon goes on trying again for up to {seconds} s"
        ));
    };
    let Created {
        row,
        is_fresh,
        failure,
    } = remote.create(order, patience, waits).await?;
    if let Some(row) = &row {
        let is_page = row.mode == Mode::Redirect && order.wanted.mode != Mode::Redirect;
        if is_fresh && is_page {
            talk(FALLS_BACK);
        }
        if !is_fresh && failure.is_none() {
            ends::say_standing(row);
        }
        view::print(context.output, row, wall_ms())?;
    }
    match failure {
        Some(failure) => Err(failure),
        None => Ok(Exit::Ok),
    }
}
