//! The fields of the page. A setting goes with what it was when the page was made: whoever changes one leaves the others as
//! they are, also those that somebody else has changed meanwhile.

use maud::{Markup, html};
use serde_json::Value;

use super::super::frame::Look;
use super::words::{Choice, label};
use crate::sandbox::form::Form;
use crate::sandbox::state::faults::{Presentation, Wrongs};

/// Before the name of the field that holds what a setting was.
pub(super) const WAS: &str = "was.";

/// The word that takes a place back to where the token stands as usual.
pub(super) const USUAL: &str = "usual";

/// What a setting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A number, of this range.
    Number(i64, i64),
    /// Set or not.
    Flag,
    /// A place where a token stands.
    Place,
}

impl Kind {
    /// What stands in the field of one that is not set.
    pub(super) fn usual(self) -> &'static str {
        match self {
            Self::Number(1.., _) => "1",
            Self::Number(..) => "0",
            Self::Flag => "",
            Self::Place => USUAL,
        }
    }
}

/// A setting: its word, what it is, and how it is now.
type Setting = (&'static str, Kind, fn(&Wrongs) -> String);

/// Every setting.
pub(super) const SETTINGS: [Setting; 8] = [
    ("presentation", Kind::Place, |wrongs| {
        let place = wrongs.presentation.as_ref();
        place.map_or_else(|| USUAL.to_owned(), Presentation::word)
    }),
    ("delay_ms", Kind::Number(0, 600_000), |wrongs| {
        wrongs.delay_ms.to_string()
    }),
    ("give_up_ms", Kind::Number(0, 600_000), |wrongs| {
        wrongs.give_up_ms.unwrap_or(0).to_string()
    }),
    ("copies", Kind::Number(1, 100), |wrongs| {
        wrongs.copies.to_string()
    }),
    ("reorder", Kind::Flag, |wrongs| flag(wrongs.reorder)),
    ("hold_create_ms", Kind::Number(0, 60_000), |wrongs| {
        wrongs.hold_create_ms.to_string()
    }),
    (
        "clock_skew_ms",
        Kind::Number(-86_400_000, 86_400_000),
        |wrongs| wrongs.clock_skew_ms.to_string(),
    ),
    ("same_instant", Kind::Flag, |wrongs| {
        flag(wrongs.same_instant)
    }),
];

fn flag(is_set: bool) -> String {
    if is_set { "true" } else { "" }.to_owned()
}

/// The field of a setting, by its word.
pub(super) fn setting(word: &str, wrongs: &Wrongs, look: &Look<'_>) -> Markup {
    let Some((word, kind, now)) = SETTINGS.into_iter().find(|(known, ..)| *known == word) else {
        return html! {};
    };
    let now = now(wrongs);
    let label = label(word, look).unwrap_or(word);
    html! {
        @match kind {
            Kind::Number(least, most) => { (number(word, word, label, &now, (least, most))) },
            Kind::Flag => p.check { label { input type="checkbox" name=(word) value="true" checked[!now.is_empty()]; " " (label) } },
            Kind::Place => p {
                label for=(word) { (label) }
                select id=(word) name=(word) {
                    option value=(USUAL) selected[now == USUAL] { (look.t("as usual", "как обычно")) }
                    @if now != USUAL && !Presentation::EXAMPLES.contains(&now.as_str()) { option value=(now) selected { (now) } }
                    @for one in Presentation::EXAMPLES { option value=(one) selected[one == now] { (one) } }
                }
            },
        }
        (was(word, &now))
    }
}

/// What a field was when the page was made.
pub(super) fn was(word: &str, now: &str) -> Markup {
    html! { input type="hidden" name={ (WAS) (word) } value=(now); }
}

/// A field for a number.
pub(super) fn number(
    id: &str,
    word: &str,
    label: &str,
    value: &str,
    (least, most): (i64, i64),
) -> Markup {
    html! {
        p {
            label for=(id) { (label) }
            input id=(id) type="number" name=(word) min=(least) max=(most) value=(value);
        }
    }
}

/// A field to choose one of some.
pub(super) fn select(name: &str, label: &str, choices: &[Choice], look: &Look<'_>) -> Markup {
    html! {
        p {
            label for=(name) { (label) }
            select id=(name) name=(name) { @for (word, en, ru) in choices { option value=(word) { (look.t(en, ru)) } } }
        }
    }
}

/// The number of a field, when the form changes it. An empty field is 0, or the least where that is more.
pub(super) fn changed_number(
    form: &Form,
    word: &'static str,
    range: (i64, i64),
) -> Option<Result<i64, Wrong>> {
    let text = changed(form, word)?;
    if text.is_empty() {
        return Some(Ok(range.0.max(0)));
    }
    Some(within(text, word, range))
}

/// The number that somebody typed into a field of this range.
pub(super) fn within(text: &str, word: &'static str, range: (i64, i64)) -> Result<i64, Wrong> {
    let (least, most) = range;
    let number = text.parse().ok();
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or(Wrong::Number(word, range))
}

/// Why what was filled in is nothing to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// No number of this range stands in this field.
    Number(&'static str, (i64, i64)),
    /// It is no form of the page.
    Form,
}

/// The value of a setting, when the form changes it.
pub(super) fn changed_setting(
    form: &Form,
    word: &'static str,
    kind: Kind,
) -> Option<Result<Value, Wrong>> {
    match kind {
        Kind::Number(least, most) => {
            let number = changed_number(form, word, (least, most));
            number.map(|number| number.map(Value::from))
        }
        Kind::Flag => changed(form, word).map(|text| Ok((!text.is_empty()).into())),
        // A browser sends the word; of an empty field nothing else can be meant.
        Kind::Place => changed(form, word).map(|text| match text {
            "" => Ok(USUAL.into()),
            place => Ok(place.into()),
        }),
    }
}

fn changed<'f>(form: &'f Form, word: &str) -> Option<&'f str> {
    let now = form.get(word).unwrap_or_default();
    let was = form.get(&format!("{WAS}{word}")).unwrap_or_default();
    (now != was).then_some(now)
}
