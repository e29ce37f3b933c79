//! The facts of the ledger: what it remembers beside its rows, each under a word of its own in the table `meta`. All words
//! stand here, each with what it holds and who writes it; the form of a type that lives above the ledger stands beside the type.
//!
//! Relies on the stores, which keep texts. Promises that a fact is read in the form it is written in, and that a text in any
//! other form says nothing. Pure.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::apply::Restore;
use super::backup::Stamp;
use super::clock_note::ClockNote;
use super::lineage::Began;
use super::log_held::LogNote;
use super::overview::LastHeard;
use super::repoll::Repoll;
use super::starts::Lost;

macro_rules! facts {
    ($($(#[$about:meta])* $shown:vis static $name:ident: $type:ty = $fact:expr;)*) => {
        $($(#[$about])* $shown static $name: $type = $fact;)*

        #[cfg(test)]
        fn words() -> Vec<&'static str> {
            vec![$($name.word(),)*]
        }
    };
}

// Times are milliseconds since 1970.
facts! {
    /// The ledger's own random id, in hex. By the schema.
    pub(super) static LEDGER_ID: Fact<String> = Fact::text(Key("ledger_id"));
    /// How often the ledger was restored. By the schema, and by the first opening after a restore.
    pub(super) static GENERATION: Fact<i64> = Fact::text(Key("generation"));
    /// Where that generation began. By the first opening after a restore.
    pub(super) static GENERATION_BEGAN: Fact<Began> = Fact::json(Key("generation_began"));
    /// The last restore. By the first opening after it.
    pub(super) static RESTORED: Fact<Restore> = Fact::json(Key("restored"));
    /// How far the polls after the last restore are. By the poller.
    pub(crate) static REPOLL: Fact<Repoll> = Fact::json(Key("repoll"));
    /// That events are missing, or the whole ledger before this one, until somebody acknowledges it. By the opening that finds it.
    pub(crate) static LOST: Fact<Option<Lost>> = Fact::json(Key("lost"));
    /// That this file is a backup; `None` for a ledger that was one. By `db backup`, and by the first opening of the copy.
    pub(super) static BACKUP: Fact<Option<Stamp>> = Fact::json(Key("backup"));
    /// How many steps deliveries have taken. By a trigger of the schema.
    pub(super) static DELIVERY_STEPS: Fact<i64> = Fact::text(Key("delivery_steps"));
    /// The latest time our clock has shown when a due time was stored. By what stores due times, a minute late at most; the
    /// poller takes it back once it has counted the due times again.
    pub(crate) static CLOCK_MARK: Fact<i64> = Fact::text(Key("clock_ms"));
    /// Whether our clock can be right. By the daemon's look at it.
    pub(crate) static CLOCK: Fact<ClockNote> = Fact::json(Key("clock_seen"));
    /// How far the service's clock is ahead of ours, by the last dated answer that showed another figure. By what records
    /// answers.
    pub(super) static SERVICE_AHEAD_MS: Fact<i64> = Fact::text(Key("service_ahead_ms"));
    /// Since when a daemon serves: notifications of before that were lost. By the daemon.
    pub(crate) static SERVING_SINCE: Fact<i64> = Fact::text(Key("serving_since"));
    /// How long daemons have served while something was owed to a hook. By the daemon.
    pub(crate) static SERVED_FOR_MS: Fact<i64> = Fact::text(Key("served_for_ms"));
    /// When a notification was last stored, and of which invoice. By the listener, once a minute at most; the history
    /// forgets, this does not.
    pub(crate) static LAST_HEARD: Fact<LastHeard> = Fact::json(Key("last_heard"));
    /// When refusals last came too fast to be recorded. By the writer.
    pub(super) static REFUSED_UNRECORDED: Fact<i64> = Fact::text(Key("refused_unrecorded"));
    /// When it was last tried whether the ledger can store again. By the writer.
    pub(super) static TRIED: Fact<i64> = Fact::text(Key("stored_again_ms"));
    /// Whether the log can be moved into the file. By the writer.
    pub(super) static LOG_HELD: Fact<LogNote> = Fact::json(Key("log_held"));
    /// Where the last authentic notification had its token, as the config names the place. By the listener, unless the place
    /// is pinned.
    pub(crate) static PRESENTATION: Fact<String> = Fact::text(Key("presentation"));
    /// What the daemon serves by beside the lists, as JSON: which hooks are owed what, and since which event. By the daemon, when it
    /// starts and when it reads its settings again.
    pub(super) static SERVED: Key = Key("served");
    /// The lists of status names that sorted last, as JSON. By the daemon, and by commands until one has served.
    pub(super) static LISTS: Key = Key("lists");
    /// How often they changed, counted from 1. By whoever changes them.
    pub(super) static LISTS_NUMBER: Fact<i64> = Fact::text(Key("lists_number"));
    /// How far the pass came over the invoices that were stored before they changed, as JSON. By whoever changes them, and by the pass.
    pub(super) static PASS: Key = Key("reassess");
    /// How the poller stands with the service, as JSON. By the poller.
    pub(crate) static POLLER: Key = Key("poller");
    /// The reasons that raised an alarm and still stand, as JSON. By the alarm.
    pub(crate) static ALARMED: Key = Key("attention_told");
    /// Of each status name that stands on no list, with the name behind the word: how many events it came with. By whatever
    /// records.
    pub(super) static UNSORTED: Fact<u64> = Fact::text(Key("unsorted:"));
    /// How many such names there are, and how many events came with names beyond the bound. By whatever records.
    pub(super) static UNSORTED_NAMES: Fact<u64> = Fact::text(Key("unsorted_names"));
    pub(super) static UNSORTED_OTHERS: Fact<u64> = Fact::text(Key("unsorted_others"));
    /// Of each thing that was odd about the service's fields: the order it was first met at. By whatever records.
    pub(super) static ODD: Fact<String> = Fact::text(Key("odd:"));
    /// How many such things there are. By whatever records.
    pub(super) static ODD_NAMES: Fact<u64> = Fact::text(Key("odd_names"));
}

/// The word a fact is kept under. None is made elsewhere.
#[derive(Clone, Copy)]
pub(crate) struct Key(&'static str);

/// A fact: the word it is kept under, and the form a `T` is kept in.
pub(crate) struct Fact<T> {
    pub(super) key: Cow<'static, str>,
    write: fn(&T) -> String,
    read: fn(&str) -> Option<T>,
}

/// What is to be stored so that a fact says something.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(super) key: Cow<'static, str>,
    pub(super) text: String,
}

impl<T: Display + FromStr> Fact<T> {
    /// Kept as it is shown.
    pub(crate) const fn text(key: Key) -> Self {
        Self {
            key: Cow::Borrowed(key.0),
            write: |value| value.to_string(),
            read: |text| text.parse().ok(),
        }
    }
}

impl<T: Serialize + DeserializeOwned> Fact<T> {
    /// Kept as JSON.
    pub(crate) const fn json(key: Key) -> Self {
        Self {
            key: Cow::Borrowed(key.0),
            write: |value| serde_json::to_string(value).expect("names, texts and numbers are JSON"),
            read: |text| serde_json::from_str(text).ok(),
        }
    }
}

impl<T> Fact<T> {
    /// One of those whose key begins with this one's.
    pub(super) fn named(&self, name: impl Display) -> Self {
        Self {
            key: Cow::Owned(format!("{}{name}", self.key)),
            ..*self
        }
    }

    /// What a stored text says; `None` when it is in no form of this fact's.
    pub(crate) fn read(&self, text: &str) -> Option<T> {
        (self.read)(text)
    }

    /// What is to be stored.
    pub(crate) fn note(&self, value: &T) -> Note {
        Note {
            key: self.key.clone(),
            text: (self.write)(value),
        }
    }

    /// What is read where this was stored.
    #[cfg(test)]
    pub(crate) fn read_back(&self, value: &T) -> Option<T> {
        self.read(&self.note(value).text)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::super::clock_note::WrongClock;
    use super::super::log_held::{HeldBy, LogHeld};
    use super::super::row::InvoiceKey;
    use super::*;

    impl Key {
        pub(super) const fn word(self) -> &'static str {
            self.0
        }
    }

    impl<T> Fact<T> {
        pub(super) fn word(&self) -> &str {
            &self.key
        }
    }

    #[test]
    fn each_has_a_word_of_its_own() {
        let words = words();
        for (place, word) in words.iter().enumerate() {
            let others = words.iter().skip(place + 1);
            assert!(!others.copied().any(|other| other == *word), "{word}");
        }
        for family in words.iter().filter(|word| word.ends_with(':')) {
            let within = words.iter().filter(|word| word.starts_with(family));
            assert_eq!(within.count(), 1, "{family}");
        }
    }

    fn reads_back<T: Debug + PartialEq>(fact: &Fact<T>, value: T) {
        assert_eq!(fact.read(""), None, "{}", fact.key);
        assert_eq!(fact.read("no form"), None, "{}", fact.key);
        assert_eq!(fact.read_back(&value), Some(value), "{}", fact.key);
    }

    #[test]
    fn each_is_read_in_the_form_it_is_written_in_and_in_no_other() {
        for fact in [
            &GENERATION,
            &DELIVERY_STEPS,
            &CLOCK_MARK,
            &SERVING_SINCE,
            &REFUSED_UNRECORDED,
            &TRIED,
            &LISTS_NUMBER,
        ] {
            reads_back(fact, -17);
        }
        reads_back(&UNSORTED.named("on hold"), u64::MAX);
        for fact in [&LEDGER_ID, &PRESENTATION, &ODD.named("amount")] {
            assert_eq!(fact.read_back(&"a b".to_owned()).as_deref(), Some("a b"));
        }
        reads_back(&GENERATION_BEGAN, Began { from: 1, event: 2 });
        let restore = Restore {
            generation: 1,
            at_ms: 2,
        };
        reads_back(&RESTORED, restore);
        reads_back(&REPOLL, Repoll::begin(1));
        let last = LastHeard {
            at_ms: 1,
            invoice: InvoiceKey(2),
        };
        reads_back(&LAST_HEARD, last);
        for wrong in [
            None,
            Some(WrongClock::NotSet),
            Some(WrongClock::Behind { newest_ms: 5 }),
            Some(WrongClock::Differs { ahead_ms: -5 }),
        ] {
            reads_back(&CLOCK, ClockNote { wrong, upto: 7 });
        }
        let stamp = Stamp {
            made_ms: 1,
            in_use: true,
        };
        reads_back(&BACKUP, Some(stamp));
        reads_back(&BACKUP, None);
        let disk = HeldBy::Disk("the disk failed".to_owned());
        for by in [HeldBy::Reader, HeldBy::OwnCommand, HeldBy::DiskFull, disk] {
            let held = Some(LogHeld { since_ms: 17, by });
            reads_back(&LOG_HELD, LogNote { held, at_ms: 18 });
        }
    }
}
