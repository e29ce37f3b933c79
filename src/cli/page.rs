//! Lists that are longer than what is shown of them. Relies on [`argv`] for the command as it was typed.
//!
//! Promises that a list that is cut says so on stderr, with the line that shows the rest, in JSON too: there a line of stdout is a
//! row, and nothing else.

use super::output::{escape, talk};
use crate::answer::argv;

/// How many rows are to be read for [`cut`] to know whether there are more.
pub(super) const fn one_more(limit: u32) -> u32 {
    limit.saturating_add(1)
}

/// Leaves as many rows as are shown; true when there were more.
pub(super) fn cut<T>(rows: &mut Vec<T>, limit: u32) -> bool {
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > most;
    rows.truncate(most);
    more
}

/// Says that there are more, and how to go on: with `flag` after the last row that was shown.
pub(super) fn go_on(shown: usize, flag: &str, last: &str) {
    let line = argv::next(flag, last);
    talk(&format!(
        "{shown} shown, and there are more. Go on with: {}",
        escape(&line)
    ));
}
