//! Which words were told, are being told, or are over. Pure. A word's episode lasts from the look that finds it to the first
//! that does not; it is told once. What is measured hovers about its limit, so its episode ends only when it was gone for
//! ten minutes on end.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::status::Reason;

/// How long a measured word must be gone before it is told again, milliseconds.
const GONE_FOR_MS: u64 = 600_000;
/// The episodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Episodes {
    /// Words that stand and were told.
    told: BTreeSet<Reason>,
    /// The last event that was looked at for reversals.
    seq: i64,
    /// Words whose program runs. Of this process alone.
    #[serde(skip)]
    telling: BTreeSet<Reason>,
    /// Since when measured words that were told do not stand. Of this process alone.
    #[serde(skip)]
    gone: BTreeMap<Reason, u64>,
}

impl Episodes {
    /// Nothing was told, and events up to this one are nobody's alarm.
    pub(super) fn new(seq: i64) -> Self {
        Self {
            seq,
            ..Self::default()
        }
    }

    /// Takes the words that stand now, by a clock of milliseconds that never goes back; gives those that are to be told.
    pub(super) fn begin(
        &mut self,
        standing: impl Iterator<Item = Reason>,
        now_ms: u64,
    ) -> Vec<Reason> {
        let standing: BTreeSet<Reason> = standing.collect();
        let gone = &mut self.gone;
        self.told.retain(|word| {
            // Of what could not be seen it is told elsewhere that it can be.
            if *word == Reason::CannotRead || stands_among(&standing, *word) {
                gone.remove(word);
                return true;
            }
            let since = *gone.entry(*word).or_insert(now_ms);
            let lasts = word.is_measured() && now_ms.saturating_sub(since) < GONE_FOR_MS;
            if !lasts {
                gone.remove(word);
            }
            lasts
        });
        let is_news = |word: &Reason| !self.told.contains(word) && !self.telling.contains(word);
        let news: Vec<Reason> = standing.into_iter().filter(is_news).collect();
        self.telling.extend(&news);
        news
    }

    /// Not all can be seen, so what was told stands; only that is to be told. True when it is news.
    pub(super) fn begin_blind(&mut self) -> bool {
        !self.told.contains(&Reason::CannotRead) && self.telling.insert(Reason::CannotRead)
    }

    /// All was seen.
    pub(super) fn end_blind(&mut self) {
        self.told.remove(&Reason::CannotRead);
    }

    /// One that stands on no list is to be told.
    pub(super) fn begin_one(&mut self, word: Reason) {
        self.telling.insert(word);
    }

    /// Its program runs, or waits to run again.
    pub(super) fn tells(&self, word: Reason) -> bool {
        self.telling.contains(&word)
    }

    /// The program has ended; with `told` the word is not told again while it stands.
    pub(super) fn ended(&mut self, word: Reason, told: bool) {
        self.telling.remove(&word);
        if told {
            self.told.insert(word);
        }
    }

    /// The last event that was looked at.
    pub(super) const fn seq(&self) -> i64 {
        self.seq
    }

    /// Events up to this one were looked at, and told where they had to be.
    pub(super) fn heard(&mut self, seq: i64) {
        self.seq = self.seq.max(seq);
    }

    /// The same would be stored, but for events that are looked at again at no cost.
    pub(super) fn same(&self, other: &Self) -> bool {
        /// So many more events are looked at again after a restart before it is worth a commit.
        const AGAIN: i64 = 1_000;
        self.told == other.told && (other.seq - self.seq).abs() < AGAIN
    }
}

/// It stands, or a worse form of it does.
fn stands_among(standing: &BTreeSet<Reason>, reason: Reason) -> bool {
    let worse = reason.worse().iter().any(|worse| standing.contains(worse));
    worse || standing.contains(&reason)
}

#[cfg(test)]
mod tests {
    use super::super::FACT;
    use super::*;
    use crate::invoice::attention::Attention;

    fn begin(episodes: &mut Episodes, standing: &[Reason]) -> Vec<Reason> {
        episodes.begin(standing.iter().copied(), 0)
    }

    /// What is told anew of what stands at these seconds.
    fn told_at(looks: &[(u64, &[Reason])]) -> Vec<(u64, Reason)> {
        let mut episodes = Episodes::new(0);
        let mut all = Vec::new();
        for (second, standing) in looks {
            for word in episodes.begin(standing.iter().copied(), second * 1_000) {
                episodes.ended(word, true);
                all.push((*second, word));
            }
        }
        all
    }

    fn expected(told: &[(u64, Reason)]) -> Vec<(u64, Reason)> {
        told.to_vec()
    }

    #[test]
    fn what_hovers_about_its_limit_is_told_once() {
        for word in [Reason::DiskLow, Reason::InodesLow, Reason::StartsFail] {
            let low: &[Reason] = &[word];
            let looks = [
                (0, low),
                (2, &[]),
                (4, low),
                (6, &[]),
                (605, low),
                (607, &[]),
                (1206, &[]),
                (1207, &[]),
                (1209, low),
            ];
            assert_eq!(told_at(&looks), expected(&[(0, word), (1209, word)]));
        }
        // What is no measure is over when it is gone.
        let of_orders: &[Reason] = &[Reason::Invoice(Attention::Mismatch)];
        assert_eq!(
            told_at(&[(0, of_orders), (2, &[]), (4, of_orders)]),
            expected(&[
                (0, Reason::Invoice(Attention::Mismatch)),
                (4, Reason::Invoice(Attention::Mismatch))
            ])
        );
    }

    #[test]
    fn a_log_that_grows_is_told_at_each_limit_and_not_on_its_way_back() {
        let (held, large, full): (&[Reason], &[Reason], &[Reason]) =
            (&[Reason::WalHeld], &[Reason::WalLarge], &[Reason::WalFull]);
        let looks = [
            (0, held),
            (100, large),
            (2000, full),
            (4000, large),
            (4002, held),
            (4004, full),
        ];
        assert_eq!(
            told_at(&looks),
            expected(&[
                (0, Reason::WalHeld),
                (100, Reason::WalLarge),
                (2000, Reason::WalFull)
            ])
        );
    }

    #[test]
    fn a_word_is_told_once_until_it_was_gone() {
        let mut episodes = Episodes::new(0);
        assert_eq!(
            begin(&mut episodes, &[Reason::Abandoned, Reason::Daemon]),
            [Reason::Abandoned, Reason::Daemon]
        );
        assert_eq!(
            begin(&mut episodes, &[Reason::Abandoned, Reason::Daemon]),
            Vec::<Reason>::new()
        );
        episodes.ended(Reason::Abandoned, true);
        episodes.ended(Reason::Daemon, false);
        assert_eq!(
            begin(&mut episodes, &[Reason::Abandoned, Reason::Daemon]),
            [Reason::Daemon]
        );
        episodes.ended(Reason::Daemon, true);
        assert_eq!(
            begin(&mut episodes, &[Reason::Daemon]),
            Vec::<Reason>::new()
        );
        assert_eq!(
            begin(&mut episodes, &[Reason::Abandoned, Reason::Daemon]),
            [Reason::Abandoned]
        );
    }

    #[test]
    fn one_that_was_gone_before_it_was_told_is_told_no_second_time_at_its_end() {
        let mut episodes = Episodes::new(0);
        assert_eq!(
            begin(&mut episodes, &[Reason::Abandoned]),
            [Reason::Abandoned]
        );
        assert_eq!(begin(&mut episodes, &[]), Vec::<Reason>::new());
        episodes.ended(Reason::Abandoned, true);
        assert_eq!(begin(&mut episodes, &[]), Vec::<Reason>::new());
        assert_eq!(
            begin(&mut episodes, &[Reason::Abandoned]),
            [Reason::Abandoned]
        );
    }

    #[test]
    fn what_cannot_be_seen_is_not_over() {
        let mut episodes = Episodes::new(0);
        begin(&mut episodes, &[Reason::Invoice(Attention::Mismatch)]);
        episodes.ended(Reason::Invoice(Attention::Mismatch), true);
        assert!(episodes.begin_blind());
        assert!(!episodes.begin_blind(), "it is being told");
        episodes.ended(Reason::CannotRead, true);
        assert!(!episodes.begin_blind(), "it was told");
        // The list is seen, and something behind it is not.
        assert_eq!(
            begin(&mut episodes, &[Reason::Invoice(Attention::Mismatch)]),
            Vec::<Reason>::new()
        );
        assert!(!episodes.begin_blind(), "it was told");
        // All is seen again: that word is over, and what stood all the while is not news.
        episodes.end_blind();
        assert_eq!(
            begin(&mut episodes, &[Reason::Invoice(Attention::Mismatch)]),
            Vec::<Reason>::new()
        );
        assert!(episodes.begin_blind());
    }

    #[test]
    fn a_restart_repeats_only_what_was_not_told() {
        let mut episodes = Episodes::new(7);
        begin(&mut episodes, &[Reason::Abandoned, Reason::Daemon]);
        episodes.ended(Reason::Abandoned, true);
        episodes.heard(9);
        let mut after = FACT.read_back(&episodes).expect("its own form");
        assert_eq!(after.seq(), 9);
        assert_eq!(
            begin(&mut after, &[Reason::Abandoned, Reason::Daemon]),
            [Reason::Daemon]
        );
        assert_eq!(FACT.read("no"), None);
    }
}
