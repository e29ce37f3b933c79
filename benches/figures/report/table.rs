//! The report as one table, for people and as Markdown has it, with what must be known to read it below.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::number::{fitting, plain, text};
use super::{Bar, Figure, Ratio, Report, Spread};

/// What stands in a column of numbers.
const NUMBERS: std::ops::RangeInclusive<usize> = 1..=3;

/// The table, and the notes.
pub(crate) fn draw(report: &Report) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(["what", "median", "min", "max", "unit", "bar", "", "rounds"]);
    let figures = report.in_order();
    let (details, shown): (Vec<_>, Vec<_>) = figures.into_iter().partition(|it| it.1.is_detail);
    for (_, figure) in shown {
        table.add_row(figure_row(figure));
    }
    for ratio in &report.ratios {
        table.add_row(ratio_row(report, ratio));
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        if NUMBERS.contains(&at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut drawn = format!("{table}\n");
    let (met, judged) = tally(report);
    if judged > 0 {
        writeln!(drawn, "{met} of {judged} bars met").expect("a text takes all");
    }
    if !details.is_empty() {
        let count = details.len();
        writeln!(drawn, "more figures, {count} of them, are in the JSON file")
            .expect("a text takes all");
    }
    for note in &report.notes {
        writeln!(drawn, "note: {note}").expect("a text takes all");
    }
    drawn
}

fn figure_row(figure: &Figure) -> [String; 8] {
    let spread = Spread::of(&figure.values);
    let size = spread.map_or(0.0, |spread| spread.median);
    let (unit, factor) = fitting(figure.unit, size);
    let [median, least, most] = numbers(spread, factor);
    let bar = figure.bar.map(|bar| bar_text(bar, factor));
    [
        figure.what.clone(),
        median,
        least,
        most,
        unit.to_owned(),
        bar.unwrap_or_default(),
        verdict(figure.bar, spread).to_owned(),
        rounds(figure.values.len(), figure.disturbed, figure.values.len()),
    ]
}

fn ratio_row(report: &Report, ratio: &Ratio) -> [String; 8] {
    let spread = Spread::of(&report.pairs(ratio));
    let [median, least, most] = numbers(spread, 1.0);
    let bar = report.bar_of(ratio);
    let is_same = spread.is_some_and(|spread| report.is_noise(ratio, spread.median));
    let mut said = verdict(bar, spread).to_owned();
    if is_same {
        if !said.is_empty() {
            said.push_str(", ");
        }
        said.push_str("no difference seen");
    }
    if ratio.is_noise {
        "noise".clone_into(&mut said);
    }
    let pairs = report.pairs(ratio).len();
    let (disturbed, of) = report.disturbed_of(ratio);
    [
        ratio.what.clone(),
        median,
        least,
        most,
        "×".to_owned(),
        bar.map(|bar| bar_text(bar, 1.0)).unwrap_or_default(),
        said,
        rounds(pairs, disturbed, of),
    ]
}

fn numbers(spread: Option<Spread>, factor: f64) -> [String; 3] {
    let nothing = || "–".to_owned();
    spread.map_or([nothing(), nothing(), nothing()], |spread| {
        [spread.median, spread.least, spread.most].map(|value| text(value * factor))
    })
}

fn bar_text(bar: Bar, factor: f64) -> String {
    match bar {
        Bar::AtLeast(least) => format!("≥ {}", plain(least * factor)),
        Bar::AtMost(most) => format!("≤ {}", plain(most * factor)),
    }
}

fn verdict(bar: Option<Bar>, spread: Option<Spread>) -> &'static str {
    match (bar, spread) {
        (None, _) => "",
        (Some(_), None) => "not measured",
        (Some(bar), Some(spread)) if bar.is_met_by(spread.median) => "met",
        (Some(_), Some(_)) => "missed",
    }
}

/// How many rounds there were, and how many of so many measurements in them were disturbed.
fn rounds(count: usize, disturbed: usize, of: usize) -> String {
    if disturbed == 0 || count == 0 {
        return count.to_string();
    }
    format!("{count}, {disturbed} of {of} disturbed")
}

/// How many bars were met, of those that could be judged.
fn tally(report: &Report) -> (usize, usize) {
    let figures = report.figures.values();
    let figures = figures.filter_map(|it| Some((it.bar?, Spread::of(&it.values)?)));
    let ratios = report.ratios.iter();
    let ratios = ratios.filter_map(|it| Some((report.bar_of(it)?, Spread::of(&report.pairs(it))?)));
    let judged: Vec<bool> = figures
        .chain(ratios)
        .map(|(bar, spread)| bar.is_met_by(spread.median))
        .collect();
    (judged.iter().filter(|met| **met).count(), judged.len())
}

/// Fails when a report's table does not say what it must.
pub(super) fn check(report: &Report) {
    let drawn = draw(report);
    let line = |start: &str| {
        let mut lines = drawn.lines().map(str::trim);
        lines
            .find(|line| line.starts_with(&format!("| {start}")))
            .unwrap_or("")
    };
    for (start, words) in [
        ("A ", ["30.0", "40.0", "3, 2 of 3 disturbed"]),
        ("far ", ["10.0", "≥ 9", "met"]),
        ("itself ", ["1.10", "×", "noise"]),
    ] {
        let line = line(start);
        assert!(words.iter().all(|word| line.contains(word)), "{drawn}");
    }
    for said in [
        "1 of 1 bars met",
        "more figures, 1 of them, are in the JSON file",
    ] {
        assert!(drawn.contains(said), "{drawn}");
    }
    assert!(!drawn.contains("| D "), "it is a detail: {drawn}");
}
