//! What a form of the page wishes for, in the words of `POST /faults`.

use serde_json::{Map, Value, json};

use super::fields::{SETTINGS, Wrong, changed_number, changed_setting, within};
use super::words::CHANCES;
use crate::sandbox::form::Form;

/// Chances are of a hundred.
pub(super) const PERCENT: (i64, i64) = (0, 100);

/// What the form wishes for.
pub(super) fn wished(form: &Form) -> Result<Value, Wrong> {
    let mut wished = match form.get("act").ok_or(Wrong::Form)? {
        "reset" => Map::from_iter([("reset".to_owned(), true.into())]),
        "count" => {
            let count = times(form.get("times").unwrap_or_default())?;
            Map::from_iter([(form.get("what").ok_or(Wrong::Form)?.to_owned(), count)])
        }
        "set" => settings(form)?,
        "service" => Map::from_iter([("api_status".to_owned(), instead(form)?)]),
        "rates" => Map::from_iter([("rates".to_owned(), rates(form)?)]),
        _ => return Err(Wrong::Form),
    };
    if let Some(invoice) = form.get("invoice") {
        wished.insert("invoice".to_owned(), invoice.trim().into());
    }
    Ok(wished.into())
}

/// The settings that the form changes.
fn settings(form: &Form) -> Result<Map<String, Value>, Wrong> {
    let mut changed = Map::new();
    for (word, kind, _now) in SETTINGS {
        if let Some(value) = changed_setting(form, word, kind) {
            changed.insert(word.to_owned(), value?);
        }
    }
    Ok(changed)
}

/// What an endpoint is to answer instead of its own.
fn instead(form: &Form) -> Result<Value, Wrong> {
    let answer = form.get("answer").ok_or(Wrong::Form)?;
    let mut api = Map::new();
    let mut put = |name: &str, value: Value| drop(api.insert(name.to_owned(), value));
    put("endpoint", form.get("endpoint").ok_or(Wrong::Form)?.into());
    put("times", times(form.get("times").unwrap_or_default())?);
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
    Ok(api.into())
}

/// The rates that the form changes, and the one of an endpoint's answer that it adds.
fn rates(form: &Form) -> Result<Value, Wrong> {
    let mut rates = Map::new();
    for (word, ..) in CHANCES {
        if let Some(percent) = changed_number(form, word, PERCENT) {
            rates.insert(word.to_owned(), percent?.into());
        }
    }
    if let Some(percent) = form.get("percent") {
        let percent = within(percent, "percent", PERCENT)?;
        let endpoint = form.get("of").ok_or(Wrong::Form)?;
        let word = match form.get("by") {
            Some(answer) => format!("{endpoint}.{answer}"),
            None => endpoint.to_owned(),
        };
        rates.insert(word, percent.into());
    }
    Ok(rates.into())
}

fn times(word: &str) -> Result<Value, Wrong> {
    match word {
        "true" => Ok(true.into()),
        "false" => Ok(false.into()),
        number => number
            .parse::<u64>()
            .map(Value::from)
            .map_err(|_text| Wrong::Form),
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::{ANSWERS, OF_NOTIFICATIONS, OF_OPENING, TIMES};
    use super::*;
    use crate::sandbox::control::fault::Asked;
    use crate::sandbox::state::faults::{Endpoint, Presentation, RateOf};

    fn of(form: &str) -> Result<Value, Wrong> {
        wished(&Form::parse(form))
    }

    #[track_caller]
    fn is_known(form: &str) {
        let wished = of(form).expect("a whole form");
        let asked = serde_json::from_value::<Asked>(wished);
        assert!(asked.is_ok(), "{form}: {:?}", asked.err());
    }

    #[test]
    fn every_choice_of_the_page_is_one_the_sandbox_knows() {
        for (what, ..) in OF_NOTIFICATIONS.iter().chain(&OF_OPENING) {
            is_known(&format!("act=count&what={what}&times=1&invoice=A-1"));
        }
        for (answer, ..) in ANSWERS {
            for endpoint in Endpoint::ALL {
                let word = endpoint.word();
                is_known(&format!(
                    "act=service&endpoint={word}&answer={answer}&times=true"
                ));
                let rate = format!("{word}.{answer}");
                assert!(RateOf::parse(&rate).is_some(), "{rate}");
            }
        }
        for one in Presentation::EXAMPLES {
            is_known(&format!("act=set&presentation={one}&delay_ms=5"));
        }
        for (word, ..) in TIMES {
            assert!(times(word).is_ok());
        }
    }

    #[test]
    fn what_is_left_alone_is_not_wished_for() {
        let left = "was.presentation=bearer&presentation=bearer&was.reorder=true&reorder=true&was.give_up_ms=3000&give_up_ms=3000";
        let delay = format!("act=set&{left}&was.delay_ms=0&delay_ms=250");
        assert_eq!(of(&delay), Ok(json!({ "delay_ms": 250 })));
        let unchecked = "act=set&was.reorder=true&was.same_instant=&was.copies=2&copies=";
        let wanted = json!({ "reorder": false, "copies": 1 });
        assert_eq!(of(unchecked), Ok(wanted));
        for typed in ["soon", "-1", "600001"] {
            let form = format!("act=set&was.delay_ms=0&delay_ms={typed}");
            assert_eq!(of(&form), Err(Wrong::Number("delay_ms", (0, 600_000))));
        }
        let usual = Ok(json!({ "presentation": "usual" }));
        for back in ["usual", ""] {
            let form = format!("act=set&was.presentation=bearer&presentation={back}");
            assert_eq!(of(&form), usual);
        }
        assert_eq!(
            of("act=rates&was.lose=5&lose=5&was.late=0&late=2&of=fetch&by=404&percent=3"),
            Ok(json!({ "rates": { "late": 2, "fetch.404": 3 } }))
        );
        assert_eq!(
            of("act=rates&of=create&by=&percent=9"),
            Ok(json!({ "rates": { "create": 9 } }))
        );
        assert_eq!(
            of("act=rates&of=create&by=&percent="),
            Ok(json!({ "rates": {} }))
        );
    }
}
