//! The fields of the page. A setting goes with what it was when the page was made: whoever changes one leaves the others as
//! they are, also those that somebody else has changed meanwhile.

use maud::{Markup, html};
use serde_json::Value;

use super::super::frame::Look;
use super::words::Choice;
use crate::sandbox::form::Form;
use crate::sandbox::state::faults::{Presentation, Wrongs};

/// Before the name of the field that holds what a setting was.
const WAS: &str = "was.";

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

/// A setting: its word, what it is, and how it is now.
type Setting = (&'static str, Kind, fn(&Wrongs) -> String);

/// Every setting.
pub(super) const SETTINGS: [Setting; 8] = [
    ("presentation", Kind::Place, |wrongs| {
        let place = wrongs.presentation.as_ref();
        place.map(Presentation::word).unwrap_or_default()
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
pub(super) fn setting(word: &str, label: &str, wrongs: &Wrongs, look: &Look<'_>) -> Markup {
    let Some((word, kind, now)) = SETTINGS.into_iter().find(|(known, ..)| *known == word) else {
        return html! {};
    };
    let now = now(wrongs);
    html! {
        @match kind {
            Kind::Number(least, most) => { (number(word, word, label, &now, (least, most))) },
            Kind::Flag => p.check { label { input type="checkbox" name=(word) value="true" checked[!now.is_empty()]; " " (label) } },
            Kind::Place => p {
                label for=(word) { (label) }
                select id=(word) name=(word) {
                    @if now.is_empty() { option value="" { (look.t("as usual", "как обычно")) } }
                    @else if !Presentation::EXAMPLES.contains(&now.as_str()) { option value=(now) selected { (now) } }
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

/// The number of a field, when the form changes it. An empty field is 0.
pub(super) fn changed_number(form: &Form, word: &str) -> Option<Result<i64, NoNumber>> {
    let text = changed(form, word)?;
    if text.is_empty() {
        return Some(Ok(0));
    }
    Some(text.parse().map_err(|_text| NoNumber))
}

/// What somebody typed is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoNumber;

/// The value of a setting, when the form changes it.
pub(super) fn changed_setting(
    form: &Form,
    word: &str,
    kind: Kind,
) -> Option<Result<Value, NoNumber>> {
    match kind {
        Kind::Number(least, _most) => changed_number(form, word).map(|number| match number {
            // An empty field of one that is never 0.
            Ok(0) => Ok(least.max(0).into()),
            number => number.map(Value::from),
        }),
        Kind::Flag => changed(form, word).map(|text| Ok((!text.is_empty()).into())),
        Kind::Place => changed(form, word).map(|text| Ok(text.into())),
    }
}

fn changed<'f>(form: &'f Form, word: &str) -> Option<&'f str> {
    let now = form.get(word).unwrap_or_default();
    let was = form.get(&format!("{WAS}{word}")).unwrap_or_default();
    (now != was).then_some(now)
}
