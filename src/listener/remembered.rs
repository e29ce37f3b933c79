//! Which place notifications present their token by, while nobody has pinned one: written to the ledger for `status`, and
//! told once with the line that pins it.
//!
//! Relies on being asked only about notifications that were stored, so that strangers cannot move it. Promises to cost a
//! notification a comparison in memory: a place is written when it differs from the one that is known, and the same place
//! at most once in [`AGAIN_AFTER`], however a sender goes to and fro between two of them.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::{Duration, Instant};

use super::book::Book;
use super::presentation::{Place, Presentations};

/// The same place is written again at the earliest after this.
const AGAIN_AFTER: Duration = Duration::from_mins(1);

/// What is known. Cloned freely.
#[derive(Clone, Debug)]
pub(super) struct Remembered(Option<Arc<Mutex<Known>>>);

/// Held for a comparison and never across an `.await`.
#[derive(Debug, Default)]
struct Known {
    place: Option<Place>,
    /// The places this process has told of, and when they were last written. At most as many as `auto` has.
    told: Vec<(Place, Instant)>,
}

/// A place that is to be written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct News {
    place: Place,
    /// To be told as well: this process has not yet.
    first: bool,
}

impl Remembered {
    /// What an earlier run remembered. With a pinned list nothing is remembered: the merchant knows.
    pub(super) async fn load<B: Book>(presentations: &Presentations, book: &B) -> Self {
        if presentations.is_pinned() {
            return Self(None);
        }
        // What cannot be read is found out anew.
        let text = book.presentation().await.ok().flatten();
        let place = text.and_then(|text| Place::parse(&text).ok());
        Self(Some(Arc::new(Mutex::new(Known {
            place,
            told: Vec::new(),
        }))))
    }

    /// A stored notification presented its token by `place`; says whether that is to be written.
    pub(super) fn news(&self, place: &Place, now: Instant) -> Option<News> {
        let known = self.0.as_ref()?.lock();
        let mut guard = known.unwrap_or_else(PoisonError::into_inner);
        let known = &mut *guard;
        if known.place.as_ref() == Some(place) {
            return None;
        }
        let told = known.told.iter_mut().find(|(told, _)| told == place);
        let first = told.is_none();
        match told {
            Some((_, at)) if now.duration_since(*at) < AGAIN_AFTER => return None,
            Some((_, at)) => *at = now,
            None => known.told.push((place.clone(), now)),
        }
        known.place = Some(place.clone());
        Some(News {
            place: place.clone(),
            first,
        })
    }

    /// Writes it, then tells it. What could not be written is news again at the next notification.
    pub(super) fn write<B: Book>(&self, news: News, book: B) -> impl Future<Output = ()> + use<B> {
        let known = self.clone();
        async move {
            let News { place, first } = news;
            if book.remember_presentation(place.to_string()).await.is_err() {
                known.forget(&place);
            } else if first {
                tracing::info!(
                    listener.place = %place,
                    "notifications present their token by `{place}`; `presentations = [\"{place}\"]` under `[listener]` pins it"
                );
            }
        }
    }

    fn forget(&self, place: &Place) {
        let Some(known) = &self.0 else { return };
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        known.told.retain(|(told, _)| told != place);
        if known.place.as_ref() == Some(place) {
            known.place = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Place {
        Place::parse(text).expect("a place")
    }

    fn knowing(text: Option<&str>) -> Remembered {
        Remembered(Some(Arc::new(Mutex::new(Known {
            place: text.map(place),
            told: Vec::new(),
        }))))
    }

    #[test]
    fn a_place_is_news_when_it_differs_from_the_one_known() {
        let (start, remembered) = (Instant::now(), knowing(Some("bearer")));
        let told = |text: &str, after_s: u64| {
            let now = start + Duration::from_secs(after_s);
            let news = remembered.news(&place(text), now);
            news.map(|news| news.first)
        };
        for (text, after_s, wanted) in [
            ("bearer", 0, None),
            ("query:token", 1, Some(true)),
            ("query:token", 2, None),
            ("bearer", 3, Some(true)),
            // To and fro is told once, and written once a minute.
            ("query:token", 4, None),
            ("bearer", 5, None),
            ("query:token", 61, Some(false)),
            ("bearer", 62, None),
            ("bearer", 63, Some(false)),
        ] {
            assert_eq!(told(text, after_s), wanted, "{text} after {after_s} s");
        }
    }

    #[test]
    fn what_could_not_be_written_is_news_again() {
        let (now, remembered) = (Instant::now(), knowing(None));
        let bearer = place("bearer");
        let news = remembered.news(&bearer, now);
        assert!(news.is_some());
        assert_eq!(remembered.news(&bearer, now), None);
        remembered.forget(&bearer);
        assert_eq!(remembered.news(&bearer, now), news);
    }

    #[test]
    fn nothing_is_remembered_of_a_pinned_list() {
        assert_eq!(
            Remembered(None).news(&place("bearer"), Instant::now()),
            None
        );
    }
}
