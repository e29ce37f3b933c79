//! Latency against offered rate as one SVG: a colour per subject, three lines each, both axes by powers of ten.

mod axis;
mod sheet;

use self::axis::Axis;
use self::sheet::{Sheet, Words};
use super::number::{fitting, plain, text};
use super::{Curve, Point};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 560.0;
/// The plot's own edges: what is outside holds words, what is right of it the legend.
const LEFT: f64 = 86.0;
const RIGHT: f64 = 700.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 486.0;
/// Between two lines of the legend.
const LEGEND_STEP: f64 = 22.0;
/// How long a legend's sample is.
const SAMPLE: f64 = 24.0;
/// Letters that a line below the title has room for.
const SUBTITLE_LETTERS: usize = 128;
/// A point at which less than this of what was offered was acknowledged is drawn hollow.
const KEPT_UP: f64 = 0.98;

/// The lines of a subject: its name, what of a point it shows, and how it is drawn.
type Line = (&'static str, fn(&Point) -> f64, &'static str);
const LINES: [Line; 3] = [
    ("p50", |point| point.p50_us, "stroke-width:1.5"),
    ("p99", |point| point.p99_us, "stroke-width:2.5"),
    (
        "p99.9",
        |point| point.p999_us,
        "stroke-width:1.5;stroke-dasharray:6 4",
    ),
];

/// The plot, with what it is about below its title, or `None` when there is nothing to draw.
pub(crate) fn draw(curves: &[Curve], about: &str) -> Option<String> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let rates = Axis::over(points().map(|point| point.offered), LEFT, RIGHT)?;
    let of_point = |point: &Point| LINES.map(|(_, value, _)| value(point));
    let times = Axis::over(points().flat_map(of_point), BOTTOM, TOP)?;
    let title = "Latency against offered rate";
    let mut sheet = Sheet::new(WIDTH, HEIGHT, title);
    sheet.words((LEFT, 24.0), Words::Title, title);
    for (line, y) in broken(about).iter().zip([41.0, 55.0, 69.0]) {
        sheet.words((LEFT, y), Words::Subtitle, line);
    }
    draw_axes(&mut sheet, &rates, &times);
    for (at, curve) in curves.iter().enumerate() {
        draw_curve(&mut sheet, at, curve, (&rates, &times));
    }
    draw_legend(&mut sheet, curves);
    Some(sheet.end())
}

/// The text in lines that have room.
fn broken(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("one at least");
        if line.is_empty() {
            word.clone_into(line);
        } else if line.chars().count() + word.chars().count() < SUBTITLE_LETTERS {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

fn draw_axes(sheet: &mut Sheet, rates: &Axis, times: &Axis) {
    for (rate, x) in rates.ticks() {
        sheet.grid((x, TOP), (x, BOTTOM));
        sheet.words((x, BOTTOM + 20.0), Words::Middle, &plain(rate));
    }
    for (time, y) in times.ticks() {
        sheet.grid((LEFT, y), (RIGHT, y));
        let (unit, factor) = fitting("µs", time);
        let said = format!("{} {unit}", plain(time * factor));
        sheet.words((LEFT - 8.0, y + 4.0), Words::UpTo, &said);
    }
    let middle = LEFT.midpoint(RIGHT);
    let rate = "notifications offered per second (1/s)";
    sheet.words((middle, BOTTOM + 48.0), Words::Axis, rate);
    let latency = "latency from the intended send time (µs, ms, s)";
    sheet.words((20.0, TOP.midpoint(BOTTOM)), Words::Upwards, latency);
}

fn draw_curve(sheet: &mut Sheet, at: usize, curve: &Curve, (rates, times): (&Axis, &Axis)) {
    for (name, value, style) in LINES {
        let place = |point: &Point| Some((rates.place(point.offered)?, times.place(value(point))?));
        let places: Vec<(f64, f64)> = curve.points.iter().filter_map(place).collect();
        sheet.line(Some(at), style, &places);
        for point in &curve.points {
            let Some(place) = place(point) else {
                continue;
            };
            let kept_up = point.acknowledged >= point.offered * KEPT_UP;
            let (unit, factor) = fitting("µs", value(point));
            let told = format!(
                "{}: {name} {} {unit} at {}/s offered, {}/s acknowledged",
                curve.name,
                text(value(point) * factor),
                text(point.offered),
                text(point.acknowledged)
            );
            sheet.point(Some(at), kept_up, place, &told);
        }
    }
}

fn draw_legend(sheet: &mut Sheet, curves: &[Curve]) {
    let (left, mut y) = (RIGHT + 24.0, TOP + 10.0);
    let words_at = left + SAMPLE + 8.0;
    for (at, curve) in curves.iter().enumerate() {
        sheet.line(Some(at), "stroke-width:4", &[(left, y), (left + SAMPLE, y)]);
        sheet.words((words_at, y + 4.0), Words::Label, &curve.name);
        y += LEGEND_STEP;
    }
    y += LEGEND_STEP / 2.0;
    for (name, _, style) in LINES {
        sheet.line(None, style, &[(left, y), (left + SAMPLE, y)]);
        sheet.words((words_at, y + 4.0), Words::Label, name);
        y += LEGEND_STEP;
    }
    let what = "did not keep up";
    sheet.point(None, false, (left + SAMPLE / 2.0, y), what);
    sheet.words((words_at, y + 4.0), Words::Label, what);
}

/// Fails when a plot does not show what it must.
pub(super) fn check() {
    assert_eq!(draw(&[], "nothing"), None);
    let point = |offered: f64, kept: f64| Point {
        offered,
        acknowledged: offered * kept,
        p50_us: 200.0,
        p99_us: 900.0,
        p999_us: 4_000.0,
    };
    let curve = Curve {
        name: "this & <that>".to_owned(),
        points: vec![point(1_000.0, 1.0), point(50_000.0, 0.5)],
    };
    let svg = draw(&[curve], "a machine, 2 cores").expect("two points");
    for shown in [
        "this &amp; &lt;that&gt;",
        "a machine, 2 cores",
        ">10,000<",
        ">500 µs<",
        ">1 ms<",
        "p99.9 4.00 ms at 50,000/s offered, 25,000/s acknowledged",
    ] {
        assert!(svg.contains(shown), "{shown}: {svg}");
    }
    // Three lines, at each of the two rates.
    assert_eq!(svg.matches(r#"<circle class="s0 full""#).count(), 3);
    assert_eq!(svg.matches(r#"<circle class="s0 hollow""#).count(), 3);
}
