//! Requests per second over time, drawn with letters. Pure: times go in, lines come out.

/// Columns of the drawing itself.
const WIDTH: usize = 70;
/// Fillings of one row, from an eighth to the whole.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Something, but less than the smallest block.
const HARDLY: char = '.';

/// A moment that is pointed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// When, milliseconds since the start.
    pub at: i64,
    /// What it was.
    pub what: &'static str,
}

/// Draws requests that left at these times, milliseconds since the start, over `lasts` milliseconds. One column is a span of
/// time and shows the mean of it; one row is one request per second. The cap has a line of its own, and what is above it
/// stands above the line.
pub(super) fn plot(times: &[i64], lasts: i64, cap: u32, marks: &[Mark]) -> String {
    let columns = i64::try_from(WIDTH).unwrap_or(1);
    // Whole seconds, so that the caption is true.
    let span = (lasts.max(1) - 1) / (columns * 1_000) * 1_000 + 1_000;
    let column = |at: i64| usize::try_from(at / span).unwrap_or(0).min(WIDTH - 1);
    let mut counts = [0_i64; WIDTH];
    for at in times {
        if let Some(count) = counts.get_mut(column(*at)) {
            *count += 1;
        }
    }
    let eighths = counts.map(|count| (count * 8_000 + span / 2) / span);
    let cap = i64::from(cap);
    let highest = eighths.iter().max().map_or(0, |most| (most + 7) / 8);
    let mut lines = vec![format!(
        "requests per second, one column = {} s",
        span / 1_000
    )];
    for row in (0..cap.max(highest)).rev() {
        let cells = eighths.iter().zip(counts).map(|(eighths, count)| {
            let filled = usize::try_from((eighths - row * 8).clamp(0, 8)).unwrap_or(0);
            match filled.checked_sub(1).and_then(|last| BLOCKS.get(last)) {
                Some(block) => *block,
                None if row == 0 && count > 0 => HARDLY,
                None => ' ',
            }
        });
        let cells: String = cells.collect();
        if row == cap - 1 {
            lines.push(format!("{cap:>4} {} cap", "-".repeat(WIDTH)));
        }
        lines.push(format!("{:>4} {}", "|", cells.trim_end()));
    }
    lines.push(format!("   0 {}", "-".repeat(WIDTH)));
    let mut pointers = [' '; WIDTH];
    let mut legend = Vec::new();
    for (mark, letter) in marks.iter().zip('a'..='z') {
        // Two of one span stand beside each other.
        let free = pointers.iter_mut().skip(column(mark.at));
        if let Some(place) = free.into_iter().find(|place| **place == ' ') {
            *place = letter;
        }
        legend.push(format!("     {letter} {} {}", told(mark.at), mark.what));
    }
    let pointers: String = pointers.iter().collect();
    lines.push(format!("     {}", pointers.trim_end()));
    lines.extend(legend);
    lines.join("\n")
}

/// Hours, minutes and seconds.
fn told(at: i64) -> String {
    let seconds = at / 1_000;
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours}:{minutes:02}:{:02}", seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_draws_what_left_under_and_above_the_cap() {
        // Columns of one second: two requests in the first, none, one, three, and the last one at the very end.
        let times = [0, 500, 2_000, 3_000, 3_100, 3_200, 69_999];
        let mark = |at, what| Mark { at, what };
        let marks = [mark(2_000, "begins"), mark(2_900, "ends")];
        let drawn = plot(&times, 70_000, 2, &marks);
        let line = "-".repeat(70);
        let far = " ".repeat(64);
        let wanted = [
            "requests per second, one column = 1 s".to_owned(),
            "   |    █".to_owned(),
            format!("   2 {line} cap"),
            "   | █  █".to_owned(),
            format!("   | █ ██{far} █"),
            format!("   0 {line}"),
            "       ab".to_owned(),
            "     a 0:00:02 begins".to_owned(),
            "     b 0:00:02 ends".to_owned(),
        ];
        assert_eq!(drawn, wanted.join("\n"));
    }

    #[test]
    fn a_long_time_is_drawn_in_as_many_columns_and_little_is_not_nothing() {
        let hours = 3 * 3_600_000;
        let times: Vec<i64> = (0..hours / 2).step_by(400).chain([hours - 1]).collect();
        let drawn = plot(&times, hours, 5, &[]);
        assert!(drawn.starts_with("requests per second, one column = 155 s\n"));
        assert!(drawn.lines().all(|line| line.chars().count() <= 80));
        let rows: Vec<&str> = drawn.lines().skip(2).take(5).collect();
        assert_eq!(rows.first().map(|row| row.trim()), Some("|"));
        let half = rows.get(2).map(|row| row.matches('▄').count());
        assert_eq!(half, Some(34), "2.5 a second, for half the time: {drawn}");
        assert!(rows.last().is_some_and(|row| row.ends_with(HARDLY)));
    }

    #[test]
    fn nothing_is_drawn_as_nothing() {
        assert_eq!(plot(&[], 0, 1, &[]).lines().count(), 5);
    }
}
