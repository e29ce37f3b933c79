//! What was found: figures with a value per round, ratios between them pair by pair, bars they are held against, and the
//! curves of latency.

use std::collections::BTreeMap;

/// What a figure or ratio should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bar {
    /// No less.
    AtLeast(f64),
    /// No more.
    AtMost(f64),
}

/// One measured quantity.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figure {
    /// What it is, in words.
    pub(crate) what: String,
    /// Its unit, empty for a bare number.
    pub(crate) unit: &'static str,
    /// A value per round.
    pub(crate) values: Vec<f64>,
    /// Rounds in which other programs took the machine's time.
    pub(crate) disturbed: usize,
    /// What its median should be.
    pub(crate) bar: Option<Bar>,
}

/// How one figure stands to another, round by round.
#[derive(Clone, Debug)]
pub(crate) struct Ratio {
    /// What it is, in words.
    pub(crate) what: String,
    /// The key of the figure above.
    pub(crate) over: String,
    /// The key of the figure below.
    pub(crate) under: String,
    /// What its median should be.
    pub(crate) bar: Option<Bar>,
}

/// Latency at one offered rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    /// Notifications per second that were offered.
    pub(crate) offered: f64,
    /// Those that were acknowledged.
    pub(crate) acknowledged: f64,
    /// From the intended send time to the answer, microseconds: the median, the 99th of 100, the 999th of 1000.
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
}

/// Latency against rate.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    /// Whose.
    pub(crate) name: String,
    /// By rising rate.
    pub(crate) points: Vec<Point>,
}

/// All that was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// By key, such as `tilld.64.rate`.
    pub(crate) figures: BTreeMap<String, Figure>,
    /// In the order in which they were asked for.
    pub(crate) ratios: Vec<Ratio>,
    /// For the plot.
    pub(crate) curves: Vec<Curve>,
    /// What a reader must know: what was skipped and why, what was odd.
    pub(crate) notes: Vec<String>,
}

impl Report {
    /// Adds the value of one round.
    pub(crate) fn add(&mut self, key: &str, what: &str, unit: &'static str, value: f64) {
        let figure = self.figures.entry(key.to_owned()).or_default();
        what.clone_into(&mut figure.what);
        figure.unit = unit;
        figure.values.push(value);
    }

    /// Says what a figure's median should be.
    pub(crate) fn bar(&mut self, key: &str, bar: Bar) {
        self.figures.entry(key.to_owned()).or_default().bar = Some(bar);
    }

    /// Asks for a ratio. Pairs are made by round: the figures must have been added in the same rounds.
    pub(crate) fn ratio(&mut self, what: &str, over: &str, under: &str, bar: Option<Bar>) {
        self.ratios.push(Ratio {
            what: what.to_owned(),
            over: over.to_owned(),
            under: under.to_owned(),
            bar,
        });
    }
}
