//! `/cabinet/faults`: what is to go wrong, in forms; the same words as the control listener's `POST /faults`.

use hyper::StatusCode;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::Posted;
use super::frame::Look;
use crate::sandbox::control::fault;
use crate::sandbox::form::Form;
use crate::sandbox::state::State;
use crate::sandbox::state::faults::{Chance, Endpoint};

/// Faults of notifications that are counted: the word, and what it says.
const COUNTED: [(&str, &str, &str); 6] = [
    ("lose", "never sent", "не отправлять"),
    ("repeat", "sent twice", "отправить дважды"),
    ("wrong_token", "with a wrong token", "с чужим токеном"),
    ("missing_token", "without a token", "без токена"),
    ("torn", "cut off in its middle", "оборвать посередине"),
    ("slow", "in slow pieces", "медленно, по частям"),
];
/// What an endpoint answers instead: the word, and what it says. A number is an HTTP status.
const ANSWERS: [(&str, &str, &str); 10] = [
    ("401", "401: the token is refused", "401: токен отвергнут"),
    ("403", "403", "403"),
    ("404", "404", "404"),
    ("429", "429, try again in 5 s", "429, повторить через 5 с"),
    ("500", "500", "500"),
    ("503", "503 of an outage", "503 при аварии"),
    ("html", "a proxy's HTML page", "HTML-страница прокси"),
    ("redirect", "a redirect", "перенаправление"),
    ("hang", "nothing, it hangs", "ничего: зависнуть"),
    (
        "cut",
        "nothing, the connection closes",
        "ничего: закрыть соединение",
    ),
];
/// How often.
const TIMES: [(&str, &str, &str); 4] = [
    ("1", "once", "один раз"),
    ("3", "three times", "три раза"),
    ("true", "always", "всегда"),
    ("false", "not any more", "больше не надо"),
];
/// Where a token may stand.
const PRESENTATIONS: [&str; 8] = [
    "header:X-Notification-Token",
    "bearer",
    "basic-password",
    "query:token",
    "body:/notificationToken",
    "hmac-sha256:header:X-Signature",
    "standard-webhooks",
    "none",
];

/// The page. `invoice` is whose faults are to be set, by id or order.
pub(super) fn page(state: &State, invoice: Option<&str>, look: &Look<'_>) -> Markup {
    let title = look.t("Faults", "Сбои");
    let content = html! {
        h1 { (title) }
        p { (look.t(
            "What you set here goes wrong from the next time on, until its count is used up or all is taken off.",
            "Заданное здесь начнёт сбоить со следующего раза, пока не исчерпается счётчик или всё не будет снято.",
        )) }
        (now_set(state, look))
        h2 { (look.t("Notifications", "Уведомления")) }
        (form("notifications", look, &html! {
            (whose(invoice, "whose", look))
            (select("what", look.t("What goes wrong", "Что сбоит"), &COUNTED, look))
            (select("times", look.t("How often", "Сколько раз"), &TIMES, look))
        }))
        h2 { (look.t("How they are sent", "Как они отправляются")) }
        (form("sending", look, &html! {
            (whose(invoice, "whose-sending", look))
            p {
                label for="presentation" { (look.t("Where the token stands", "Где стоит токен")) }
                select #presentation name="presentation" { @for one in PRESENTATIONS { option value=(one) { (one) } } }
            }
            (number("delay_ms", look.t("Each waits first, ms", "Каждое ждёт, мс"), 0))
            (number("give_up_ms", look.t("The sender gives up after, ms (0: as usual)", "Отправитель сдаётся через, мс (0: как обычно)"), 0))
            p { label { input type="checkbox" name="reorder" value="true"; " " (look.t("out of order: each after the next one", "не по порядку: каждое после следующего")) } }
        }))
        h2 { (look.t("The service", "Сервис")) }
        (form("service", look, &html! {
            p {
                label for="endpoint" { (look.t("Endpoint", "Метод API")) }
                select #endpoint name="endpoint" { @for one in Endpoint::ALL { option value=(one.word()) { (one.word()) } } }
            }
            (select("answer", look.t("Answers instead", "Отвечает вместо своего"), &ANSWERS, look))
            (select("api_times", look.t("How often", "Сколько раз"), &TIMES, look))
        }))
        (form("pool", look, &html! {
            (number("free", look.t("Free requisites", "Свободные реквизиты"), state.pool.free()))
        }))
        h2 { (look.t("By chance, of a hundred", "Случайно, из ста")) }
        (form("rates", look, &html! {
            div.grid { @for chance in Chance::ALL { (number(chance.word(), chance.word(), state.faults.rates.get(chance).into())) } }
        }))
        h2 { (look.t("The clock", "Часы")) }
        (form("clock", look, &html! {
            p {
                label for="clock_skew_ms" { (look.t("updatedAt is off by, ms", "updatedAt сдвинут на, мс")) }
                input #clock_skew_ms type="number" name="clock_skew_ms" min="-86400000" max="86400000" value=(state.faults.all.clock_skew_ms);
            }
            p { label { input type="checkbox" name="same_instant" value="true" checked[state.faults.all.same_instant]; " " (look.t("updatedAt stays when the status changes", "updatedAt не меняется при смене статуса")) } }
        }))
    };
    look.page("/cabinet/faults", title, &content)
}

/// What is set, and the way to take it all off.
fn now_set(state: &State, look: &Look<'_>) -> Markup {
    let set: Vec<(String, String)> = match fault::view(&state.faults) {
        Value::Object(fields) => fields.into_iter().filter_map(told).collect(),
        _ => Vec::new(),
    };
    html! {
        h2 { (look.t("Set now", "Задано сейчас")) }
        @if set.is_empty() {
            p.quiet { (look.t("Nothing: the service works as it should.", "Ничего: сервис работает как надо.")) }
        } @else {
            dl { @for (name, value) in &set { dt { code { (name) } } dd { code { (value) } } } }
            form method="post" action="/cabinet/faults" {
                (look.form_token())
                button name="act" value="reset" { (look.t("Take all off", "Снять всё")) }
            }
        }
    }
}

/// A fault that is not at its usual value.
fn told((name, value): (String, Value)) -> Option<(String, String)> {
    let is_usual = match &value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::String(_) => false,
    };
    (!is_usual).then(|| (name, value.to_string()))
}

fn form(act: &str, look: &Look<'_>, fields: &Markup) -> Markup {
    html! {
        form.faults method="post" action="/cabinet/faults" {
            (look.form_token())
            (fields)
            button name="act" value=(act) { (look.t("Set", "Задать")) }
        }
    }
}

fn whose(invoice: Option<&str>, id: &str, look: &Look<'_>) -> Markup {
    html! {
        p {
            label for=(id) { (look.t("Of this order or invoice alone (empty: of all)", "Только этого заказа или заявки (пусто: всех)")) }
            input id=(id) type="text" name="invoice" maxlength="200" value=[invoice];
        }
    }
}

fn select(
    name: &str,
    label: &str,
    choices: &[(&str, &'static str, &'static str)],
    look: &Look<'_>,
) -> Markup {
    html! {
        p {
            label for=(name) { (label) }
            select id=(name) name=(name) { @for (word, en, ru) in choices { option value=(word) { (look.t(en, ru)) } } }
        }
    }
}

fn number(name: &str, label: &str, value: usize) -> Markup {
    html! {
        p {
            label for=(name) { (label) }
            input id=(name) type="number" name=(name) min="0" max="600000" value=(value);
        }
    }
}

/// `POST /cabinet/faults`
pub(super) fn act(state: &mut State, form: &Form) -> Posted {
    let refused = Posted::Refused(
        StatusCode::BAD_REQUEST,
        [
            "That cannot be set so. Go back and look at the fields.",
            "Так задать нельзя. Вернитесь и проверьте поля.",
        ],
    );
    if form.get("act") == Some("pool") {
        let Some(free) = form.get("free").and_then(|text| text.parse().ok()) else {
            return refused;
        };
        state.pool.set_free(free);
        return Posted::Done("/cabinet/faults".to_owned());
    }
    let asked = wished(form).and_then(|wished| serde_json::from_value(wished).ok());
    match asked.map(|asked| fault::apply(state, asked)) {
        Some(Ok(())) => Posted::Done("/cabinet/faults".to_owned()),
        Some(Err(_)) | None => refused,
    }
}

/// What the form wishes for, in the control listener's words.
fn wished(form: &Form) -> Option<Value> {
    let number = |name: &str| form.get(name)?.parse::<i64>().ok();
    let mut wished = Map::new();
    match form.get("act")? {
        "reset" => return Some(json!({ "reset": true })),
        "notifications" => {
            let what = form.get("what")?;
            wished.insert(what.to_owned(), times(form.get("times")?)?);
        }
        "sending" => {
            wished.insert("presentation".to_owned(), form.get("presentation")?.into());
            wished.insert("delay_ms".to_owned(), number("delay_ms")?.into());
            wished.insert("give_up_ms".to_owned(), number("give_up_ms")?.into());
            let reorder = form.get("reorder").is_some();
            wished.insert("reorder".to_owned(), reorder.into());
        }
        "service" => {
            let answer = form.get("answer")?;
            let mut api = Map::new();
            let mut put = |name: &str, value: Value| drop(api.insert(name.to_owned(), value));
            put("endpoint", form.get("endpoint")?.into());
            put("times", times(form.get("api_times")?)?);
            match answer.parse::<u16>() {
                Ok(status) => {
                    put("status", status.into());
                    if status == 429 {
                        put("retry_after_s", 5.into());
                    }
                    // An object with an `error` would be the contract's "no requisites free"; an outage says nothing.
                    if status != 503 {
                        let error = json!({ "error": format!("sandbox: {status}") });
                        put("body", error.to_string().into());
                    }
                }
                Err(_word) => put("kind", answer.into()),
            }
            return Some(json!({ "api_status": api }));
        }
        "rates" => {
            let mut rates = Map::new();
            for chance in Chance::ALL {
                rates.insert(chance.word().to_owned(), number(chance.word())?.into());
            }
            return Some(json!({ "rates": rates }));
        }
        "clock" => {
            return Some(json!({
                "clock_skew_ms": number("clock_skew_ms")?,
                "same_instant": form.get("same_instant").is_some(),
            }));
        }
        _ => return None,
    }
    if let Some(invoice) = form.get("invoice") {
        wished.insert("invoice".to_owned(), invoice.trim().into());
    }
    Some(wished.into())
}

fn times(word: &str) -> Option<Value> {
    match word {
        "true" => Some(true.into()),
        "false" => Some(false.into()),
        number => number.parse::<u64>().ok().map(Value::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::state::faults::{Faults, Times};

    #[test]
    fn every_choice_of_the_page_is_one_the_sandbox_knows() {
        for (what, ..) in COUNTED {
            let form = Form::parse(&format!(
                "act=notifications&what={what}&times=1&invoice=A-1"
            ));
            assert!(asked(&form), "{what}");
        }
        for (answer, ..) in ANSWERS {
            for endpoint in Endpoint::ALL {
                let word = endpoint.word();
                let form = Form::parse(&format!(
                    "act=service&endpoint={word}&answer={answer}&api_times=true"
                ));
                assert!(asked(&form), "{answer}");
            }
        }
        for one in PRESENTATIONS {
            let form = Form::parse(&format!(
                "act=sending&presentation={one}&delay_ms=5&give_up_ms=0"
            ));
            assert!(asked(&form), "{one}");
        }
        for (word, ..) in TIMES {
            assert!(times(word).is_some());
        }
    }

    fn asked(form: &Form) -> bool {
        let wished = wished(form).expect("a whole form");
        serde_json::from_value::<fault::Asked>(wished).is_ok()
    }

    #[test]
    fn what_is_as_usual_is_not_shown() {
        let Value::Object(fields) = fault::view(&Faults::new(1)) else {
            panic!("no object");
        };
        let shown: Vec<_> = fields.into_iter().filter_map(told).collect();
        assert_eq!(shown, []);
        let mut faults = Faults::new(1);
        faults.all.lose = Times::Always;
        let Value::Object(fields) = fault::view(&faults) else {
            panic!("no object");
        };
        let shown: Vec<_> = fields.into_iter().filter_map(told).collect();
        assert_eq!(shown, [("lose".to_owned(), "true".to_owned())]);
    }
}
