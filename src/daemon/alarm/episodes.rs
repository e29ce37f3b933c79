//! Which words were told, are being told, or are over. Pure. A word's episode lasts from the look that finds it to the first
//! that does not; it is told once.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

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
}

impl Episodes {
    /// Nothing was told, and events up to this one are nobody's alarm.
    pub(super) fn new(seq: i64) -> Self {
        Self {
            seq,
            ..Self::default()
        }
    }

    /// Takes the words that stand now; gives those that are to be told.
    pub(super) fn begin<'a>(&mut self, standing: impl Iterator<Item = &'a str>) -> Vec<String> {
        let standing: BTreeSet<&str> = standing.collect();
        self.told.retain(|word| standing.contains(word.as_str()));
        let is_news = |word: &&str| !self.told.contains(*word) && !self.telling.contains(*word);
        let news: Vec<String> = standing
            .into_iter()
            .filter(is_news)
            .map(str::to_owned)
            .collect();
        self.telling.extend(news.iter().cloned());
        news
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

    /// The form it is kept in.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads it back; what cannot be read is nothing told.
    pub(super) fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(episodes: &mut Episodes, standing: &[&str]) -> Vec<String> {
        episodes.begin(standing.iter().copied())
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
    fn a_restart_repeats_only_what_was_not_told() {
        let mut episodes = Episodes::new(7);
        begin(&mut episodes, &["a", "b"]);
        episodes.ended("a", true);
        episodes.heard(9);
        let mut after = Episodes::from_json(&episodes.to_json()).expect("its own form");
        assert_eq!(after.seq(), 9);
        assert_eq!(begin(&mut after, &["a", "b"]), ["b"]);
        assert_eq!(Episodes::from_json("no"), None);
    }
}
