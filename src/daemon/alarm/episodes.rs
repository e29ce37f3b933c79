//! Which words were told, are being told, or are over. Pure. A word's episode lasts from the look that finds it to the first
//! that does not; it is told once. What is measured hovers about its limit, so its episode ends only when it was gone for
//! ten minutes on end.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// How long a measured word must be gone before it is told again, milliseconds.
const GONE_FOR_MS: u64 = 600_000;
/// Words of measured amounts: of the disk, and of the log, which becomes free and held again with every long read. While a
/// later one of the log stands those before it are not over.
const OF_THE_DISK: [&str; 3] = ["cannot_store", "disk_low", "read_only"];
const OF_THE_LOG: [&str; 3] = ["wal_held", "wal_large", "wal_full"];

/// The word for a ledger that cannot be read.
pub(super) const CANNOT_READ: &str = "cannot_read";

/// The episodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Episodes {
    /// Words that stand and were told.
    told: BTreeSet<String>,
    /// The last event that was looked at for reversals.
    seq: i64,
    /// Words whose program runs. Of this process alone.
    #[serde(skip)]
    telling: BTreeSet<String>,
    /// Since when measured words that were told do not stand. Of this process alone.
    #[serde(skip)]
    gone: BTreeMap<String, u64>,
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
    pub(super) fn begin<'a>(
        &mut self,
        standing: impl Iterator<Item = &'a str>,
        now_ms: u64,
    ) -> Vec<String> {
        let standing: BTreeSet<&str> = standing.collect();
        let gone = &mut self.gone;
        self.told.retain(|word| {
            // Of what could not be seen it is told elsewhere that it can be.
            if word == CANNOT_READ || stands_among(&standing, word) {
                gone.remove(word);
                return true;
            }
            let since = *gone.entry(word.clone()).or_insert(now_ms);
            let lasts = is_measured(word) && now_ms.saturating_sub(since) < GONE_FOR_MS;
            if !lasts {
                gone.remove(word);
            }
            lasts
        });
        let is_news = |word: &&str| !self.told.contains(*word) && !self.telling.contains(*word);
        let news: Vec<String> = standing
            .into_iter()
            .filter(is_news)
            .map(str::to_owned)
            .collect();
        self.telling.extend(news.iter().cloned());
        news
    }

    /// Not all can be seen, so what was told stands; only that is to be told. True when it is news.
    pub(super) fn begin_blind(&mut self) -> bool {
        !self.told.contains(CANNOT_READ) && self.telling.insert(CANNOT_READ.to_owned())
    }

    /// All was seen.
    pub(super) fn end_blind(&mut self) {
        self.told.remove(CANNOT_READ);
    }

    /// One that stands on no list is to be told.
    pub(super) fn begin_one(&mut self, word: &str) {
        self.telling.insert(word.to_owned());
    }

    /// Its program runs, or waits to run again.
    pub(super) fn tells(&self, word: &str) -> bool {
        self.telling.contains(word)
    }

    /// The program has ended; with `told` the word is not told again while it stands.
    pub(super) fn ended(&mut self, word: &str, told: bool) {
        self.telling.remove(word);
        if told {
            self.told.insert(word.to_owned());
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

fn is_measured(word: &str) -> bool {
    OF_THE_DISK.contains(&word) || OF_THE_LOG.contains(&word)
}

/// It stands, or a worse one of the log does.
fn stands_among(standing: &BTreeSet<&str>, word: &str) -> bool {
    let worse = OF_THE_LOG.iter().skip_while(|of_log| **of_log != word);
    standing.contains(word) || worse.into_iter().any(|of_log| standing.contains(of_log))
}

#[cfg(test)]
mod tests {
    use super::super::FACT;
    use super::*;

    fn begin(episodes: &mut Episodes, standing: &[&str]) -> Vec<String> {
        episodes.begin(standing.iter().copied(), 0)
    }

    /// What is told anew of what stands at these seconds.
    fn told_at(looks: &[(u64, &[&str])]) -> Vec<(u64, String)> {
        let mut episodes = Episodes::new(0);
        let mut all = Vec::new();
        for (second, standing) in looks {
            for word in episodes.begin(standing.iter().copied(), second * 1_000) {
                episodes.ended(&word, true);
                all.push((*second, word));
            }
        }
        all
    }

    fn expected(told: &[(u64, &str)]) -> Vec<(u64, String)> {
        let told = told.iter();
        told.map(|(at, word)| (*at, (*word).to_owned())).collect()
    }

    #[test]
    fn what_hovers_about_its_limit_is_told_once() {
        let low: &[&str] = &["disk_low"];
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
        assert_eq!(
            told_at(&looks),
            expected(&[(0, "disk_low"), (1209, "disk_low")])
        );
        // What is no measure is over when it is gone.
        let of_orders: &[&str] = &["mismatch"];
        assert_eq!(
            told_at(&[(0, of_orders), (2, &[]), (4, of_orders)]),
            expected(&[(0, "mismatch"), (4, "mismatch")])
        );
    }

    #[test]
    fn a_log_that_grows_is_told_at_each_limit_and_not_on_its_way_back() {
        let (held, large, full): (&[&str], &[&str], &[&str]) =
            (&["wal_held"], &["wal_large"], &["wal_full"]);
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
            expected(&[(0, "wal_held"), (100, "wal_large"), (2000, "wal_full")])
        );
    }

    #[test]
    fn a_word_is_told_once_until_it_was_gone() {
        let mut episodes = Episodes::new(0);
        assert_eq!(begin(&mut episodes, &["a", "b"]), ["a", "b"]);
        assert_eq!(begin(&mut episodes, &["a", "b"]), Vec::<String>::new());
        episodes.ended("a", true);
        episodes.ended("b", false);
        assert_eq!(begin(&mut episodes, &["a", "b"]), ["b"]);
        episodes.ended("b", true);
        assert_eq!(begin(&mut episodes, &["b"]), Vec::<String>::new());
        assert_eq!(begin(&mut episodes, &["a", "b"]), ["a"]);
    }

    #[test]
    fn one_that_was_gone_before_it_was_told_is_told_no_second_time_at_its_end() {
        let mut episodes = Episodes::new(0);
        assert_eq!(begin(&mut episodes, &["a"]), ["a"]);
        assert_eq!(begin(&mut episodes, &[]), Vec::<String>::new());
        episodes.ended("a", true);
        assert_eq!(begin(&mut episodes, &[]), Vec::<String>::new());
        assert_eq!(begin(&mut episodes, &["a"]), ["a"]);
    }

    #[test]
    fn what_cannot_be_seen_is_not_over() {
        let mut episodes = Episodes::new(0);
        begin(&mut episodes, &["mismatch"]);
        episodes.ended("mismatch", true);
        assert!(episodes.begin_blind());
        assert!(!episodes.begin_blind(), "it is being told");
        episodes.ended("cannot_read", true);
        assert!(!episodes.begin_blind(), "it was told");
        // The list is seen, and something behind it is not.
        assert_eq!(begin(&mut episodes, &["mismatch"]), Vec::<String>::new());
        assert!(!episodes.begin_blind(), "it was told");
        // All is seen again: that word is over, and what stood all the while is not news.
        episodes.end_blind();
        assert_eq!(begin(&mut episodes, &["mismatch"]), Vec::<String>::new());
        assert!(episodes.begin_blind());
    }

    #[test]
    fn a_restart_repeats_only_what_was_not_told() {
        let mut episodes = Episodes::new(7);
        begin(&mut episodes, &["a", "b"]);
        episodes.ended("a", true);
        episodes.heard(9);
        let mut after = FACT.read_back(&episodes).expect("its own form");
        assert_eq!(after.seq(), 9);
        assert_eq!(begin(&mut after, &["a", "b"]), ["b"]);
        assert_eq!(FACT.read("no"), None);
    }
}
