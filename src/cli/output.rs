//! What commands print. Data goes to stdout: tables for people, JSON lines for programs; talk goes to stderr. Text from
//! elsewhere never reaches a terminal unescaped. A reader that has gone changes nothing of how a command ends; output that is
//! lost otherwise is an error.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::tcgetwinsize;
use serde::Serialize;

use super::failure::Failure;

/// How often it is looked whether stdout has a reader still.
const LOOK_FOR_READER_EVERY: Duration = Duration::from_secs(1);

/// Makes text harmless for a terminal; see [`crate::telemetry::escape`].
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    crate::telemetry::escape(text)
}

/// What a program wrote, made harmless for a terminal line by line, each led by `indent`. Line ends and tabs stay; bytes
/// that are no UTF-8 show as replacement characters.
pub(super) fn escape_lines(bytes: &[u8], indent: &str) -> String {
    let mut shown = String::new();
    for line in String::from_utf8_lossy(bytes).lines() {
        shown.push_str(indent);
        let parts: Vec<_> = line.split('\t').map(escape).collect();
        shown.push_str(&parts.join("\t"));
        shown.push('\n');
    }
    shown
}

/// Characters of a cell: an address of a payment page has room, and a text of the service fills no terminal.
const LONGEST_CELL: usize = 4_096;

/// Fit for a cell of a table: harmless and bounded. What is left out says so.
fn cell(text: &str) -> Cow<'_, str> {
    let Some((end, _)) = text.char_indices().nth(LONGEST_CELL) else {
        return escape(text);
    };
    let (kept, left_out) = text.split_at(end);
    let count = left_out.chars().count();
    Cow::Owned(format!("{}… ({count} characters more)", escape(kept)))
}

/// Writes to stdout at once, so that a reader of a stream sees each line when it is there.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    written_out(print_to_reader(text))
}

/// [`print()`] where a reader that has gone is an error as well: what nobody was shown does not count.
pub(super) fn print_to_reader(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// What came of writing to stdout. A reader that has gone wants no more, which is no reason to end the work halfway or with
/// another exit code.
pub(super) fn written_out(written: io::Result<()>) -> Result<(), Failure> {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    match written {
        Err(error) if matches!(error.kind(), BrokenPipe | ConnectionReset) => Ok(()),
        other => other.map_err(Failure::from_write),
    }
}

/// Whether stdout has a reader still.
pub(super) fn has_reader() -> bool {
    let stdout = io::stdout();
    // Asked for nothing, it tells of errors alone; a file or a terminal has none.
    let mut asked = [PollFd::new(&stdout, PollFlags::empty())];
    let ready = poll(&mut asked, Some(&Timespec::default()));
    let [told] = asked;
    ready.is_err() || !told.revents().contains(PollFlags::ERR)
}

/// Resolves when whoever read stdout has gone away, soon after.
pub(super) async fn reader_gone() {
    while has_reader() {
        tokio::time::sleep(LOOK_FOR_READER_EVERY).await;
    }
}

/// Says something on stderr, one line. Strangers' text in it is escaped by the caller. With stderr gone there is nobody
/// to tell, and the work goes on.
pub(super) fn talk(line: &str) {
    drop(writeln!(io::stderr().lock(), "{line}"));
}

/// Asks a person: the line goes on with the answer.
pub(super) fn prompt(text: &str) {
    let mut stderr = io::stderr().lock();
    drop(write!(stderr, "{text}"));
    drop(stderr.flush());
}

/// Prints a value as one line of JSON.
pub(super) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(&json_line(value))
}

/// A value as one line of JSON.
pub(super) fn json_line(value: &impl Serialize) -> String {
    format!("{}\n", crate::telemetry::visible_json(value))
}

/// How this command answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    json: bool,
    /// Columns of the terminal; `None` when stdout is none, then nothing is wrapped.
    width: Option<u16>,
}

impl Output {
    /// Looks at stdout once.
    pub(super) fn new(json: bool) -> Self {
        let stdout = io::stdout();
        let width = stdout
            .is_terminal()
            .then(|| tcgetwinsize(&stdout).ok())
            .flatten()
            .map(|size| size.ws_col)
            .filter(|columns| *columns > 0);
        Self { json, width }
    }

    /// True when answers are JSON.
    pub(super) const fn json(self) -> bool {
        self.json
    }

    /// The same, but nothing is wrapped however narrow the terminal is.
    #[must_use]
    pub(super) const fn unwrapped(self) -> Self {
        Self {
            width: None,
            ..self
        }
    }

    /// Prints one line of text for people. Strangers' text in it is escaped by the caller.
    #[expect(
        clippy::unused_self,
        reason = "a line is an answer, and answers go out through here"
    )]
    pub(super) fn line(self, line: &str) -> Result<(), Failure> {
        print(&format!("{line}\n"))
    }

    /// Prints a table; without headings when there are none. Cells are escaped here.
    pub(super) fn table<const N: usize>(
        self,
        headings: Option<[&str; N]>,
        rows: &[[String; N]],
    ) -> Result<(), Failure> {
        print(&table(self.width, headings, rows))
    }

    /// Prints names with their values, one a line.
    pub(super) fn pairs<N: AsRef<str>>(self, pairs: &[(N, String)]) -> Result<(), Failure> {
        let rows: Vec<[String; 2]> = pairs
            .iter()
            .map(|(name, value)| [name.as_ref().to_owned(), value.clone()])
            .collect();
        self.table(None, &rows)
    }
}

/// The last column is worth wrapping when it gets this many columns of the terminal at least.
const WORTH_WRAPPING: usize = 10;

/// True when only the last column needs to be wrapped to fit. Ids and times in the others are to be copied, so a table that
/// does not fit even so is left to the terminal, which breaks its lines without cutting them up.
fn has_room<const N: usize>(
    width: u16,
    headings: Option<&[&str; N]>,
    rows: &[[String; N]],
) -> bool {
    let widest = |place: usize| {
        let heading = headings.and_then(|headings| headings.get(place));
        let cells = rows.iter().filter_map(|row| row.get(place));
        let lengths = cells.map(|text| cell(text).chars().count());
        lengths
            .chain(heading.map(|heading| heading.chars().count()))
            .max()
            .unwrap_or_default()
    };
    let others: usize = (0..N.saturating_sub(1))
        .map(|place| widest(place) + 2)
        .sum();
    others + WORTH_WRAPPING <= usize::from(width)
}

/// Lays a table out, for a terminal of `width` columns or without wrapping.
fn table<const N: usize>(
    width: Option<u16>,
    headings: Option<[&str; N]>,
    rows: &[[String; N]],
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let wraps = width.filter(|width| has_room(*width, headings.as_ref(), rows));
    if let Some(width) = wraps {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
    }
    if let Some(headings) = headings {
        table.set_header(headings);
    }
    for row in rows {
        table.add_row(row.iter().map(|text| cell(text)));
    }
    // No border and two spaces between columns: easy to read, and easy for `awk` and `cut`.
    for (place, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if wraps.is_some() && place + 1 < N {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::failure::Exit;
    use super::*;

    #[test]
    fn a_reader_that_has_gone_is_no_error_and_a_full_disk_is_one() {
        for kind in [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset] {
            assert!(written_out(Err(kind.into())).is_ok());
        }
        let failure = written_out(Err(io::ErrorKind::StorageFull.into())).expect_err("lost");
        assert_eq!(failure.exit(), Exit::Error);
    }

    #[test]
    fn columns_line_up_and_cells_are_escaped() {
        let rows = [
            ["A-1".to_owned(), "paid".to_owned()],
            ["A-1000\u{1b}[2J".to_owned(), "new\nforged".to_owned()],
        ];
        assert_eq!(
            table(None, Some(["ORDER", "STATUS"]), &rows),
            "ORDER            STATUS\n\
             A-1              paid\n\
             A-1000\\u001b[2J  new\\nforged\n"
        );
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let rows = [["ж".repeat(1 << 20)]];
        let shown = table(None, None, &rows);
        let left_out = (1 << 20) - LONGEST_CELL;
        assert!(shown.len() < 3 * LONGEST_CELL, "{}", shown.len());
        assert!(shown.ends_with(&format!("ж… ({left_out} characters more)\n")));
    }

    #[test]
    fn what_a_program_wrote_keeps_its_lines_and_loses_its_power() {
        assert_eq!(
            escape_lines(b"one\ttwo\r\n\n\x1b[2J\xff", "  "),
            "  one\ttwo\n  \n  \\u001b[2J\u{fffd}\n"
        );
        assert_eq!(escape_lines(b"", "  "), "");
    }

    #[test]
    fn only_the_last_column_is_wrapped_and_only_where_it_has_room() {
        let rows = [[
            "0199b9c2-6f5e-7cc1-8a3b-0123456789ab".to_owned(),
            "2026-11-28T10:02:00.004Z".to_owned(),
            "a long cell of several words".to_owned(),
        ]];
        let whole = |text: &str| {
            let mut cells = rows.iter().flatten().take(2);
            cells.all(|cell| text.contains(cell.as_str()))
        };
        let fits = table(Some(80), Some(["ID", "TIME", "DETAILS"]), &rows);
        assert!(
            whole(&fits) && fits.lines().all(|line| line.len() <= 80),
            "{fits}"
        );
        assert!(fits.lines().count() > 2, "{fits}");
        let narrow = table(Some(40), Some(["ID", "TIME", "DETAILS"]), &rows);
        assert!(whole(&narrow) && narrow.lines().count() == 2, "{narrow}");
    }

    #[test]
    fn a_narrow_terminal_wraps() {
        let rows = [["a long cell of several words".to_owned()]];
        let text = table(Some(12), None, &rows);
        assert!(text.lines().all(|line| line.len() <= 12), "{text}");
        assert!(text.lines().count() > 2, "{text}");
    }
}
