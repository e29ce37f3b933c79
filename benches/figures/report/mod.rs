//! What was found: figures with a value per round, ratios between them pair by pair, bars they are held against, and the
//! curves of latency.

pub(crate) mod json;
mod number;
pub(crate) mod plot;
pub(crate) mod table;

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
    /// Whether it is for whoever looks closely: it is not in the table.
    pub(crate) is_detail: bool,
    /// Its place among the others: they are shown in the order in which they came.
    pub(crate) place: usize,
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
    /// The same when most of its rounds were disturbed; `bar` when there is none.
    pub(crate) bar_disturbed: Option<Bar>,
    /// Whether both are the same thing measured twice, so that what it is off 1 is noise.
    pub(crate) is_noise: bool,
    /// The part that asked for it.
    part: &'static str,
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
    /// The part that is measured.
    part: &'static str,
}

/// The middle of what was measured, and its ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Of these values; `None` when there are none, or some are no numbers.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let upper = *sorted.get(sorted.len() / 2)?;
        let lower = *sorted.get((sorted.len() - 1) / 2)?;
        let spread = Self {
            median: f64::midpoint(lower, upper),
            least,
            most,
        };
        values
            .iter()
            .all(|value| value.is_finite())
            .then_some(spread)
    }

    /// Whether a ratio is no further from 1 than the same thing was from itself.
    fn covers(self, ratio: f64) -> bool {
        let widest = self.most.max(1.0 / self.least);
        (1.0 / widest..=widest).contains(&ratio)
    }
}

impl Bar {
    /// Whether a median is as it should be.
    pub(crate) fn is_met_by(self, median: f64) -> bool {
        match self {
            Self::AtLeast(least) => median >= least,
            Self::AtMost(most) => median <= most,
        }
    }
}

impl Report {
    /// Says which part is measured from now on.
    pub(crate) fn begin(&mut self, part: &'static str) {
        self.part = part;
    }

    /// Adds the value of one round.
    pub(crate) fn add(&mut self, key: &str, what: &str, unit: &'static str, value: f64) {
        let figure = self.figure(key);
        what.clone_into(&mut figure.what);
        figure.unit = unit;
        figure.values.push(value);
    }

    /// Says that others were at work in the round whose value was added last.
    pub(crate) fn disturbed(&mut self, key: &str) {
        self.figure(key).disturbed += 1;
    }

    /// Says that a figure is for whoever looks closely, and not for the table.
    pub(crate) fn detail(&mut self, key: &str) {
        self.figure(key).is_detail = true;
    }

    /// Says what a figure's median should be.
    pub(crate) fn bar(&mut self, key: &str, bar: Bar) {
        self.figure(key).bar = Some(bar);
    }

    /// Asks for a ratio. Pairs are made by round: the figures must have been added in the same rounds.
    pub(crate) fn ratio(
        &mut self,
        what: &str,
        over: &str,
        under: &str,
        bar: Option<Bar>,
    ) -> &mut Ratio {
        self.ratios.push(Ratio {
            what: what.to_owned(),
            over: over.to_owned(),
            under: under.to_owned(),
            bar,
            bar_disturbed: None,
            is_noise: false,
            part: self.part,
        });
        self.ratios.last_mut().expect("it was added")
    }

    /// Asks for the ratio of one thing to itself, measured twice in each round. It is the noise that ratios of this kind are
    /// held against: those of the same part, of figures whose keys end in the same word, such as `rate`. What another part
    /// measures, another way and at another time, has another noise.
    pub(crate) fn noise(&mut self, what: &str, over: &str, under: &str) {
        self.ratio(what, over, under, None).is_noise = true;
    }

    /// A ratio's value per round. Figures that were not measured give none.
    pub(crate) fn pairs(&self, ratio: &Ratio) -> Vec<f64> {
        let values = |key: &str| self.figures.get(key).map_or(&[][..], |it| &it.values);
        let pairs = values(&ratio.over).iter().zip(values(&ratio.under));
        pairs.map(|(over, under)| over / under).collect()
    }

    /// How many of a ratio's values come from disturbed rounds, and of how many: those of both sides.
    pub(crate) fn disturbed_of(&self, ratio: &Ratio) -> (usize, usize) {
        let sides = [&ratio.over, &ratio.under].map(|key| self.figures.get(key));
        let of = |count: fn(&Figure) -> usize| sides.iter().flatten().map(|it| count(it)).sum();
        (of(|it| it.disturbed), of(|it| it.values.len()))
    }

    /// The bar that a ratio is held against.
    pub(crate) fn bar_of(&self, ratio: &Ratio) -> Option<Bar> {
        let (disturbed, of) = self.disturbed_of(ratio);
        let disturbed = ratio.bar_disturbed.filter(|_| disturbed * 2 > of);
        disturbed.or(ratio.bar)
    }

    /// The noise of ratios of this one's kind, when it was measured.
    fn noise_of(&self, ratio: &Ratio) -> Option<Spread> {
        let kind = |it: &Ratio| it.over.rsplit('.').next().map(str::to_owned);
        let same = |it: &&Ratio| it.is_noise && it.part == ratio.part && kind(it) == kind(ratio);
        let pairs = self
            .ratios
            .iter()
            .filter(same)
            .flat_map(|it| self.pairs(it));
        Spread::of(&pairs.collect::<Vec<f64>>())
    }

    /// Whether a ratio is no other than the same thing would be to itself.
    pub(crate) fn is_noise(&self, ratio: &Ratio, median: f64) -> bool {
        let noise = self.noise_of(ratio).filter(|_| !ratio.is_noise);
        noise.is_some_and(|noise| noise.covers(median))
    }

    /// The figures in the order in which they came.
    pub(crate) fn in_order(&self) -> Vec<(&String, &Figure)> {
        let mut all: Vec<(&String, &Figure)> = self.figures.iter().collect();
        all.sort_by_key(|(_, figure)| figure.place);
        all
    }

    fn figure(&mut self, key: &str) -> &mut Figure {
        let place = self.figures.len();
        let figure = self.figures.entry(key.to_owned());
        figure.or_insert_with(|| Figure {
            place,
            ..Figure::default()
        })
    }
}

/// Fails when the report's own parts do not hold what they promise.
pub(crate) fn check() {
    number::check();
    let mut report = Report::default();
    for (round, value) in [4.0, 1.0, 3.0].into_iter().enumerate() {
        report.add("a.rate", "A", "1/s", value * 10.0);
        report.add("b.rate", "B", "1/s", value);
        report.add("c.rate", "C", "1/s", value * 1.1);
        report.add("d.rate", "D", "1/s", value);
        report.detail("d.rate");
        if round > 0 {
            report.disturbed("a.rate");
        }
    }
    let far = report.ratio("far", "a.rate", "b.rate", Some(Bar::AtLeast(11.0)));
    far.bar_disturbed = Some(Bar::AtLeast(9.0));
    let (far, bar) = (far.clone(), Bar::AtLeast(11.0));
    assert_eq!(report.bar_of(&far), Some(bar), "a third is not most");
    report.disturbed("b.rate");
    report.disturbed("b.rate");
    assert_eq!(report.bar_of(&far), Some(Bar::AtLeast(9.0)), "most are");
    report.noise("itself", "c.rate", "b.rate");
    let spread = Spread::of(&report.pairs(&far)).expect("three pairs");
    assert!((spread.median - 10.0).abs() < 1e-9, "{spread:?}");
    assert!(!report.is_noise(&far, spread.median), "it is far off");
    assert!(report.is_noise(&far, 0.95), "as far as itself, below");
    let elsewhere = Ratio {
        part: "another",
        ..far
    };
    assert!(!report.is_noise(&elsewhere, 0.95), "its noise is unknown");
    table::check(&report);
    plot::check();
}
