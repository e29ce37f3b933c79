//! What is drawn on: an SVG that needs no other file and follows what the reader's screen prefers, light or dark. What
//! knows no preference draws it light.

use std::fmt::Write as _;

/// One colour per subject on a light ground and on a dark one; those who see few colours can tell them apart.
const COLOURS: [[&str; 2]; 6] = [
    ["#0072b2", "#56b4e9"],
    ["#d55e00", "#ff9d4d"],
    ["#007f5f", "#2fd6a3"],
    ["#a8447e", "#e59cc4"],
    ["#8a6d00", "#f0d04a"],
    ["#555555", "#bbbbbb"],
];

/// The colours that are nobody's, light and dark: of the ground, of words, of lesser words, of the grid.
const GROUND: [&str; 2] = ["#ffffff", "#0d1117"];
const INK: [&str; 2] = ["#1f2328", "#e6edf3"];
const FAINT: [&str; 2] = ["#59636e", "#9198a1"];
const GRID: [&str; 2] = ["#d8dee4", "#30363d"];

/// How words stand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Words {
    /// The title.
    Title,
    /// Below the title.
    Subtitle,
    /// From a place on.
    Label,
    /// Around a place.
    Middle,
    /// Up to a place.
    UpTo,
    /// Around a place, from below to above.
    Upwards,
    /// An axis's own, around a place.
    Axis,
}

/// A sheet that is drawn on.
pub(super) struct Sheet {
    svg: String,
}

impl Sheet {
    /// An empty one of this size, with a name for those who do not see it.
    pub(super) fn new(width: f64, height: f64, name: &str) -> Self {
        let mut sheet = Self { svg: String::new() };
        sheet.put(&format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" font-family="system-ui, sans-serif" font-size="13">"#
        ));
        sheet.put(&format!("<title>{}</title>", escaped(name)));
        sheet.put(&format!(
            "<style>\npath{{fill:none;stroke-linejoin:round}}\n{}@media (prefers-color-scheme: dark){{\n{}}}\n</style>",
            rules(|[light, _]| light),
            rules(|[_, dark]| dark)
        ));
        sheet.put(&format!(
            r#"<rect class="ground" width="{width}" height="{height}"/>"#
        ));
        sheet
    }

    /// A line of the grid.
    pub(super) fn grid(&mut self, (x, y): (f64, f64), (to_x, to_y): (f64, f64)) {
        self.put(&format!(
            r#"<path class="grid" d="M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}"/>"#
        ));
    }

    /// Words.
    pub(super) fn words(&mut self, (x, y): (f64, f64), how: Words, said: &str) {
        let said = escaped(said);
        let (class, more) = match how {
            Words::Title => ("ink", r#"font-size="16" font-weight="600""#.to_owned()),
            Words::Subtitle => ("faint", r#"font-size="12""#.to_owned()),
            Words::Label => ("ink", String::new()),
            Words::Middle => ("faint", r#"text-anchor="middle""#.to_owned()),
            Words::UpTo => ("faint", r#"text-anchor="end""#.to_owned()),
            Words::Axis => ("ink", r#"text-anchor="middle""#.to_owned()),
            Words::Upwards => (
                "ink",
                format!(r#"text-anchor="middle" transform="rotate(-90 {x:.1} {y:.1})""#),
            ),
        };
        self.put(&format!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" {more}>{said}</text>"#
        ));
    }

    /// A line through these places, of a subject or of nobody.
    pub(super) fn line(&mut self, of: Option<usize>, style: &str, places: &[(f64, f64)]) {
        let mut path = String::new();
        for (x, y) in places {
            let step = if path.is_empty() { 'M' } else { 'L' };
            write!(path, "{step}{x:.1} {y:.1}").expect("a text takes all");
        }
        let class = class(of);
        self.put(&format!(
            r#"<path class="{class}" style="{style}" d="{path}"/>"#
        ));
    }

    /// A point, and what it tells whoever points at it.
    pub(super) fn point(&mut self, of: Option<usize>, is_full: bool, at: (f64, f64), told: &str) {
        let (x, y) = at;
        let class = class(of);
        let fill = if is_full { "full" } else { "hollow" };
        let told = escaped(told);
        self.put(&format!(
            r#"<circle class="{class} {fill}" cx="{x:.1}" cy="{y:.1}" r="3"><title>{told}</title></circle>"#
        ));
    }

    /// The finished SVG.
    pub(super) fn end(mut self) -> String {
        self.put("</svg>");
        self.svg
    }

    fn put(&mut self, line: &str) {
        self.svg.push_str(line);
        self.svg.push('\n');
    }
}

fn class(of: Option<usize>) -> String {
    of.map_or_else(
        || "nobody".to_owned(),
        |subject| format!("s{}", subject % COLOURS.len()),
    )
}

/// The colours' rules.
fn rules(choose: fn([&'static str; 2]) -> &'static str) -> String {
    let [ground, ink, faint, grid] = [GROUND, INK, FAINT, GRID].map(choose);
    let mut rules = format!(
        ".ground{{fill:{ground}}}\n.ink{{fill:{ink}}}\n.faint{{fill:{faint}}}\n.grid{{stroke:{grid}}}\n.nobody{{stroke:{ink}}}\n"
    );
    for (subject, both) in COLOURS.into_iter().enumerate() {
        let colour = choose(both);
        writeln!(
            rules,
            ".s{subject}{{stroke:{colour}}}\ncircle.s{subject}{{fill:{colour}}}"
        )
        .expect("a text takes all");
    }
    // Behind those of the subjects, and as strong, so that it goes before them.
    writeln!(rules, "circle.hollow{{fill:{ground}}}").expect("a text takes all");
    rules
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
