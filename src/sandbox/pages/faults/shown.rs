//! What is set to go wrong now, in the words of the forms, and the ways to take it off: one by one, of one invoice, or all.

use maud::{Markup, html};
use serde_json::Value;

use super::super::frame::Look;
use super::fields::{SETTINGS, WAS};
use super::words::{ANSWERS, CHANCES, OF_NOTIFICATIONS, OF_OPENING, SAID, found};
use crate::sandbox::control::fault;
use crate::sandbox::state::State;

/// A fault that is set.
struct Line {
    text: String,
    /// The fields of a form of the page that takes it off.
    off: Vec<(String, String)>,
}

/// Faults that belong together, under what they are called.
type Group = (String, Vec<Line>);

/// What is set; `whose` is whom the page is about, if not all.
pub(super) fn set_now(state: &State, whose: Option<&str>, look: &Look<'_>) -> Markup {
    let set = groups(&fault::view(&state.faults), look);
    let has_own = |name: &&str| state.faults.owners().any(|(owner, _)| owner == *name);
    html! {
        h2 { (look.t("Set now", "Задано сейчас")) }
        @if set.is_empty() {
            p.quiet { (look.t("Nothing: the service works as it should.", "Ничего: сервис работает как надо.")) }
        } @else {
            @for (name, lines) in &set {
                h3 { (name) }
                ul.set { @for line in lines { li { (shown(line, name, look)) } } }
            }
            @if let Some(name) = whose.filter(has_own) {
                form method="post" action="/cabinet/faults" {
                    (look.form_token())
                    input type="hidden" name="invoice" value=(name);
                    button name="act" value="reset" { (look.t("Take off those of this one", "Снять сбои этой заявки")) }
                }
            }
            form method="post" action="/cabinet/faults" {
                (look.form_token())
                button name="act" value="reset" { (look.t("Take all off", "Снять всё")) }
            }
        }
    }
}

fn shown(line: &Line, group: &str, look: &Look<'_>) -> Markup {
    let off = look.t("Take off", "Снять");
    html! {
        span { (line.text) }
        form method="post" action="/cabinet/faults" {
            (look.form_token())
            @for (name, value) in &line.off { input type="hidden" name=(name) value=(value); }
            button aria-label={ (off) ": " (group) ", " (line.text) } { (off) }
        }
    }
}

/// Everything that is not as usual, of `GET /state`.
fn groups(view: &Value, look: &Look<'_>) -> Vec<Group> {
    let [notifications, service, opening, clock] = [
        look.t("Notifications", "Уведомления"),
        look.t("The service", "Сервис"),
        look.t("Opening an invoice", "Открытие заявки"),
        look.t("The clock", "Часы"),
    ]
    .map(str::to_owned);
    let mut groups: Vec<Group> = [notifications, service, opening, clock]
        .map(|name| (name, Vec::new()))
        .into();
    for (place, line) in lines(view, None, look) {
        if let Some((_, lines)) = groups.get_mut(place) {
            lines.push(line);
        }
    }
    let by_chance = fields(view.get("rates")).filter_map(|(word, percent)| {
        let percent = percent.as_u64()?;
        Some(chance(word, percent, look))
    });
    let title = look.t("At random", "Случайно");
    groups.push((title.to_owned(), by_chance.collect()));
    for (owner, own) in fields(view.get("own")) {
        let lines = lines(own, Some(owner), look);
        let title = format!("{} {owner}", look.t("Only for", "Только для"));
        groups.push((title, lines.into_iter().map(|(_, line)| line).collect()));
    }
    groups.retain(|(_, lines)| !lines.is_empty());
    groups
}

fn fields(object: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    object.and_then(Value::as_object).into_iter().flatten()
}

/// What is set for all or for one, each with the place of its group.
fn lines(view: &Value, owner: Option<&str>, look: &Look<'_>) -> Vec<(usize, Line)> {
    let line = |text: String, off: &[(&str, &str)]| Line {
        text,
        off: owner
            .map(|owner| ("invoice", owner))
            .iter()
            .chain(off)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
    };
    let mut lines = Vec::new();
    for (choices, place) in [(&OF_NOTIFICATIONS[..], 0), (&OF_OPENING[..], 2)] {
        for (word, en, ru) in choices {
            if let Some(times) = view.get(word).and_then(|count| times(count, look)) {
                let off = [("act", "count"), ("what", *word), ("times", "false")];
                lines.push((place, line(format!("{}, {times}", look.t(en, ru)), &off)));
            }
        }
    }
    for (word, kind, _now) in SETTINGS {
        let now = view.get(word).and_then(text);
        let Some(now) = now.filter(|now| now != kind.usual()) else {
            continue;
        };
        let said = SAID.iter().find(|(known, ..)| *known == word);
        let said = said.map_or(word, |(_, _, [en, ru])| look.t(en, ru));
        let (was, usual) = (format!("{WAS}{word}"), kind.usual());
        let off = [("act", "set"), (was.as_str(), now.as_str()), (word, usual)];
        let place = match word {
            "hold_create_ms" => 2,
            "clock_skew_ms" | "same_instant" => 3,
            _ => 0,
        };
        lines.push((place, line(said.replace('#', &now), &off)));
    }
    for one in view
        .get("api_status")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let field = |name| one.get(name).and_then(Value::as_str).unwrap_or_default();
        let (endpoint, answer) = (field("endpoint"), field("answer"));
        let times = one.get("times").and_then(|count| times(count, look));
        let said = found(&ANSWERS, answer, look).unwrap_or(answer);
        let said = format!("{endpoint}: {said}, {}", times.unwrap_or_default());
        // What it answered does not matter any more.
        let off = [
            ("act", "service"),
            ("endpoint", endpoint),
            ("answer", "hang"),
            ("times", "false"),
        ];
        lines.push((1, line(said, &off)));
    }
    lines
}

/// What chance brings, so many times of a hundred.
fn chance(word: &str, percent: u64, look: &Look<'_>) -> Line {
    let number = percent.to_string();
    let (said, off) = if let Some(said) = found(&CHANCES, word, look) {
        let was = format!("{WAS}{word}");
        (
            said.to_owned(),
            vec![(was, number), (word.to_owned(), "0".to_owned())],
        )
    } else {
        let (endpoint, answer) = word.split_once('.').unwrap_or((word, ""));
        let said = match answer {
            "" => look.t("any fault that passes by itself", "любой временный сбой"),
            answer => found(&ANSWERS, answer, look).unwrap_or(answer),
        };
        let off = [("of", endpoint), ("by", answer), ("percent", "0")];
        let off = off.map(|(name, value)| (name.to_owned(), value.to_owned()));
        (format!("{endpoint}: {said}"), off.into())
    };
    let mut off = off;
    off.insert(0, ("act".to_owned(), "rates".to_owned()));
    let text = format!("{said}, {percent} {}", look.t("in a hundred", "из ста"));
    Line { text, off }
}

/// How often, unless never.
fn times(count: &Value, look: &Look<'_>) -> Option<String> {
    match count {
        Value::Bool(true) => Some(look.t("always", "всегда").to_owned()),
        Value::Number(left) => Some(match left.as_u64() {
            Some(1) => look.t("once more", "ещё один раз").to_owned(),
            _ => format!("{}{left}", look.t("times left: ", "осталось раз: ")),
        }),
        _ => None,
    }
}

/// A setting as its field has it, unless it is as usual.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Bool(true) => Some("true".to_owned()),
        Value::String(word) => Some(word.clone()),
        Value::Number(number) if number.as_i64() != Some(0) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
#[expect(
    clippy::indexing_slicing,
    reason = "fields of JSON objects that the test makes itself are set"
)]
mod tests {
    use serde_json::json;

    use super::super::wished::wished;
    use super::*;
    use crate::sandbox::form::{Form, encode};
    use crate::sandbox::pages::lang::Lang;
    use crate::sandbox::state::faults::Faults;
    use crate::sandbox::state::{Rules, State};

    fn look(lang: Lang) -> Look<'static> {
        Look {
            lang,
            token: "",
            now: 0,
        }
    }

    fn told(view: &Value, lang: Lang) -> Vec<String> {
        let groups = groups(view, &look(lang));
        let lines = groups.iter().flat_map(|(name, lines)| {
            lines
                .iter()
                .map(move |line| format!("{name}: {}", line.text))
        });
        lines.collect()
    }

    /// Everything there is, of all, of one and by chance.
    fn everything() -> Value {
        let of_one = json!({ "lose": 2, "repeat": true, "copies": 4, "wrong_token": 1, "missing_token": 1, "torn": 1,
            "slow": 1, "delay_ms": 5, "reorder": true, "give_up_ms": 3000, "presentation": "bearer", "no_requisites": 1,
            "clock_skew_ms": -9, "same_instant": true, "hold_create_ms": 7, "drop_create_answer": 1,
            "api_status": [{ "endpoint": "create", "answer": "500", "times": 3 }] });
        let mut view = of_one.clone();
        view["own"] = json!({ "A/1 & 2": of_one });
        view["rates"] = json!({ "late": 5, "fetch": 1, "fetch.404": 2 });
        view
    }

    #[test]
    fn what_is_as_usual_is_not_shown() {
        let none = fault::view(&Faults::new(1));
        assert!(told(&none, Lang::En).is_empty());
    }

    #[test]
    fn each_fault_is_told_in_the_words_of_its_form_under_what_it_belongs_to() {
        let shown = told(&everything(), Lang::En);
        for wanted in [
            "Notifications: never sent, times left: 2",
            "Notifications: with a wrong token, once more",
            "Notifications: the token stands as bearer",
            "The clock: updatedAt is off by -9 ms",
            "The clock: updatedAt stays when the status changes",
            "Opening an invoice: answered 7 ms late, after a notification",
            "The service: create: 500, times left: 3",
            "At random: sent late, 5 in a hundred",
            "At random: fetch: any fault that passes by itself, 1 in a hundred",
            "At random: fetch: 404, 2 in a hundred",
            "Only for A/1 & 2: sent more than once, always",
        ] {
            assert!(
                shown.iter().any(|line| line == wanted),
                "{wanted}: {shown:#?}"
            );
        }
        for line in told(&everything(), Lang::Ru) {
            assert!(!line.contains(['_', '#']), "{line}");
        }
        assert_eq!(shown.len(), 17 + 17 + 3);
    }

    #[test]
    fn what_each_button_posts_takes_its_fault_off() {
        let mut state = State::new(Rules::of_a_test(), 1);
        let mut set = |words: Value| {
            let asked = serde_json::from_value(words).expect("words");
            fault::apply(&mut state, asked).expect("they can be meant");
        };
        let mut of_one = everything();
        let all = of_one.as_object_mut().expect("an object");
        drop((all.remove("own"), all.remove("rates")));
        of_one["api_status"] = json!({ "endpoint": "create", "status": 500, "times": 3 });
        set(of_one.clone());
        of_one["invoice"] = "A/1 & 2".into();
        set(of_one);
        set(json!({ "rates": { "late": 5, "fetch": 1, "fetch.404": 2 } }));
        let mut left = 17 + 17 + 3;
        while let Some((_, mut lines)) = groups(&fault::view(&state.faults), &look(Lang::En)).pop()
        {
            let line = lines.pop().expect("a group has lines");
            let fields = line.off.iter();
            let form: Vec<String> = fields.map(|(n, v)| format!("{n}={}", encode(v))).collect();
            let wished = wished(&Form::parse(&form.join("&"))).expect("a form of the page");
            let asked = serde_json::from_value(wished).expect("words");
            fault::apply(&mut state, asked).expect("it can be taken off");
            left -= 1;
            let shown = told(&fault::view(&state.faults), Lang::En);
            assert_eq!(shown.len(), left, "{} is not off: {shown:#?}", line.text);
        }
        assert_eq!(left, 0);
    }
}
