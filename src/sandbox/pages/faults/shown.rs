//! What is set to go wrong now, in lines a person can read, and the way to take it all off.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::super::frame::Look;
use crate::sandbox::control::fault;
use crate::sandbox::state::State;

/// What is set; `whose` is whom the page is about, if not all.
pub(super) fn set_now(state: &State, whose: Option<&str>, look: &Look<'_>) -> Markup {
    let set = match fault::view(&state.faults) {
        Value::Object(fields) => lines(fields, look),
        _ => Vec::new(),
    };
    html! {
        h2 { (look.t("Set now", "Задано сейчас")) }
        @if set.is_empty() {
            p.quiet { (look.t("Nothing: the service works as it should.", "Ничего: сервис работает как надо.")) }
        } @else {
            dl { @for (name, value) in &set { dt { (name) } dd { code { (value) } } } }
            @if let Some(name) = whose.filter(|name| state.faults.owners().any(|(owner, _)| owner == *name)) {
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

/// Everything that is not as usual: what, and how it is set.
fn lines(fields: Map<String, Value>, look: &Look<'_>) -> Vec<(String, String)> {
    let all = look.t("Notifications", "Уведомления");
    let mut lines = Vec::new();
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("own", Value::Object(owners)) => {
                for (owner, own) in owners {
                    let own = own.as_object().into_iter().flatten();
                    lines.extend(own.filter_map(|(name, value)| told(&owner, name, value, look)));
                }
            }
            ("rates", Value::Object(rates)) => {
                let chance = look.t("By chance", "Случайно");
                for (name, percent) in rates {
                    lines.push((chance.to_owned(), format!("{name}: {percent} %")));
                }
            }
            ("api_status", Value::Array(answers)) => {
                let service = look.t("The service", "Сервис");
                for one in &answers {
                    let text = |field| one.get(field).and_then(Value::as_str).unwrap_or_default();
                    let times = amount(one.get("times").unwrap_or(&Value::Null), look);
                    let line = format!("{}: {}, {times}", text("endpoint"), text("answer"));
                    lines.push((service.to_owned(), line));
                }
            }
            (name, value) => lines.extend(told(all, name, &value, look)),
        }
    }
    lines.sort();
    lines
}

/// A fault that is not at its usual value.
fn told(whose: &str, name: &str, value: &Value, look: &Look<'_>) -> Option<(String, String)> {
    let is_usual = match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_i64() == Some(i64::from(name == "copies")),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::String(_) => false,
    };
    let line = || (whose.to_owned(), format!("{name}: {}", amount(value, look)));
    (!is_usual).then(line)
}

/// How often, how long, or where.
fn amount(value: &Value, look: &Look<'_>) -> String {
    match value {
        Value::Bool(true) => look.t("always", "всегда").to_owned(),
        Value::String(word) => word.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::pages::lang::Lang;
    use crate::sandbox::state::faults::{Faults, Times};
    use serde_json::json;

    fn shown(view: Value) -> Vec<(String, String)> {
        let look = Look {
            lang: Lang::En,
            token: "",
            now: 0,
        };
        match view {
            Value::Object(fields) => lines(fields, &look),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn what_is_as_usual_is_not_shown() {
        let mut faults = Faults::new(1);
        assert_eq!(shown(fault::view(&faults)), []);
        faults.all.lose = Times::Always;
        let line = ("Notifications".to_owned(), "lose: always".to_owned());
        assert_eq!(shown(fault::view(&faults)), [line]);
    }

    #[test]
    fn each_fault_is_a_line_of_its_own() {
        let view = json!({
            "own": { "A-1": { "lose": 2, "torn": false, "presentation": "bearer" } },
            "rates": { "late": 5 },
            "api_status": [{ "endpoint": "create", "answer": "500", "times": 3 }],
        });
        let line = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let wanted = [
            line("A-1", "lose: 2"),
            line("A-1", "presentation: bearer"),
            line("By chance", "late: 5 %"),
            line("The service", "create: 500, 3"),
        ];
        assert_eq!(shown(view), wanted);
    }
}
