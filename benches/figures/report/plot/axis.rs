//! An axis by powers of ten, from one place to another.

/// Room at both ends of what it covers.
const ROOM: f64 = 1.25;

/// The axis.
pub(super) struct Axis {
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// For those of these values that are above 0, from this place to that; `None` when none is.
    pub(super) fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Self> {
        let usable = values.filter(|value| value.is_finite() && *value > 0.0);
        let (least, most) = usable.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        (most > 0.0).then_some(Self {
            least: least / ROOM,
            most: most * ROOM,
            from,
            to,
        })
    }

    /// Where a value is; `None` when it is none that such an axis has.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let share = (value / self.least).ln() / (self.most / self.least).ln();
        share
            .is_finite()
            .then_some(self.from + share * (self.to - self.from))
    }

    /// 1, 2 and 5 of each power of ten that it covers, and where they are.
    pub(super) fn ticks(&self) -> Vec<(f64, f64)> {
        let mut ticks = Vec::new();
        let mut power = 10_f64.powf(self.least.log10().floor());
        while power <= self.most {
            ticks.extend([1.0, 2.0, 5.0].map(|of| of * power));
            power *= 10.0;
        }
        ticks.retain(|tick| (self.least..=self.most).contains(tick));
        let placed = ticks.into_iter();
        placed
            .filter_map(|tick| Some((tick, self.place(tick)?)))
            .collect()
    }
}
