//! How long a lost notification of a young invoice stays unknown at present (A06). Pure: a few counts in, milliseconds out.

/// What bears on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Young invoices that have a due time, as far as they were counted; of more, the delay is longer.
    pub young: u64,
    /// Silence after which a young invoice is due, milliseconds: the first gap of the schedule.
    pub first_gap_ms: i64,
    /// Between two looks at what is due, milliseconds.
    pub cadence_ms: i64,
    /// Requests to the service per second, at least 1.
    pub per_second: u32,
    /// Whether older invoices are due as well.
    pub older: Older,
}

/// Whether older invoices take turns from young ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Older {
    /// None is due.
    None,
    /// Some are: one has its turn after so many young ones, at least 1.
    Wait {
        /// Turns of young ones in a row.
        young_in_a_row: u32,
    },
}

/// The longest time, in milliseconds, after which a notification that was lost now is made up for, if its invoice is
/// young. Without the time the service takes to answer, and while it answers; urgent invoices, which go first, and
/// requests of people are not counted.
///
/// While there is room, a young invoice is asked about when its gap has passed and the next look comes. When more are
/// silent than may be asked within a gap, each waits until all others had their turn.
pub fn longest_delay_ms(load: &Load) -> i64 {
    let per_second = u64::from(load.per_second.max(1));
    let (taken, of) = match load.older {
        Older::None => (1, 1),
        Older::Wait { young_in_a_row } => {
            let own = u64::from(young_in_a_row.max(1));
            (own + 1, own)
        }
    };
    let round = load.young.saturating_mul(1_000).saturating_mul(taken);
    let round_ms = round.div_ceil(per_second * of);
    let round_ms = i64::try_from(round_ms).unwrap_or(i64::MAX);
    load.first_gap_ms
        .saturating_add(load.cadence_ms)
        .max(round_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_hundred_young_ones_are_known_within_a_minute_and_more_evenly_later() {
        let wait = |young_in_a_row| Older::Wait { young_in_a_row };
        for (young, older, wanted) in [
            (0, Older::None, 55_000),
            (275, Older::None, 55_000),
            (300, Older::None, 60_000),
            (301, Older::None, 60_200),
            (600, Older::None, 120_000),
            (200, wait(15), 55_000),
            (300, wait(15), 64_000),
            (300, wait(1), 120_000),
            (300, wait(0), 120_000),
        ] {
            let load = Load {
                young,
                first_gap_ms: 50_000,
                cadence_ms: 5_000,
                per_second: 5,
                older,
            };
            let told = longest_delay_ms(&load);
            assert_eq!(told, wanted, "{load:?}");
        }
    }
}
