//! `/cabinet/faults`: what is to go wrong, in forms; the same words as the control listener's `POST /faults`. The page is
//! about all invoices, or about one; it shows what is set for them. What is rarely wanted is folded away until it is set.

mod fields;
mod shown;
mod wished;
mod words;

use maud::{Markup, html};

use self::fields::{Wrong, number, select, setting, was, within};
use self::words::{ANSWERS, CHANCES, Choice, OF_NOTIFICATIONS, OF_OPENING, TIMES};
use super::Posted;
use super::frame::Look;
use crate::sandbox::control::fault;
use crate::sandbox::form::{Form, encode};
use crate::sandbox::state::State;
use crate::sandbox::state::faults::{Chance, Endpoint, Wrongs};

pub(super) use words::done;

/// Most requisites the page sets free.
const MOST_FREE: i64 = 600_000;

/// Whose faults the page is about, and how they are set.
struct Scope<'p> {
    /// An invoice or an order; all when there is none.
    whose: Option<&'p str>,
    wrongs: Wrongs,
    look: &'p Look<'p>,
}

/// The page. `invoice` is whose faults are to be set, by id or order.
pub(super) fn page(state: &State, invoice: Option<&str>, look: &Look<'_>) -> Markup {
    let title = look.t("Faults", "Сбои");
    let whose = invoice.map(str::trim).filter(|name| !name.is_empty());
    let own = whose.and_then(|name| state.faults.owners().find(|(owner, _)| *owner == name));
    let scope = Scope {
        whose,
        wrongs: match whose {
            None => state.faults.all.clone(),
            Some(_) => own.map(|(_, own)| own.clone()).unwrap_or_default(),
        },
        look,
    };
    let content = html! {
        h1 { (title) }
        p { (look.t(
            "A fault you set here shows from the next time on, until it has shown as often as you said or you take it off.",
            "Заданный сбой действует со следующего раза: столько раз, сколько указано, или пока его не снимут.",
        )) }
        (shown::set_now(state, whose, look))
        h2 { (look.t("Set more", "Задать ещё")) }
        (scope.choice())
        h3 { (look.t("Notifications", "Уведомления")) }
        (scope.counted("what-notifications", look.t("What goes wrong", "Какой сбой"), &OF_NOTIFICATIONS))
        (scope.sending())
        h3 { (look.t("The service", "Сервис")) }
        (scope.service())
        (scope.opening(state))
        @if scope.whose.is_none() { (chances(&scope, state)) }
        (scope.clock())
    };
    look.page("/cabinet/faults", title, &content)
}

impl Scope<'_> {
    /// Says whose faults these are, and asks for another one's.
    fn choice(&self) -> Markup {
        let look = self.look;
        html! {
            @match self.whose {
                Some(name) => p {
                    (look.t("Only for ", "Только для ")) strong { (name) } ". "
                    a href="/cabinet/faults" { (look.t("For all invoices", "Для всех заявок")) }
                },
                None => details {
                    summary { (look.t("For all invoices. Set faults for one only", "Для всех заявок. Задать сбои для одной")) }
                    form.faults method="get" action="/cabinet/faults" {
                        p {
                            label for="whose" { (look.t("Order or invoice; it need not exist yet", "Заказ или заявка, можно ещё не созданные")) }
                            input #whose type="text" name="invoice" maxlength="200" required;
                        }
                        button { (look.t("Next", "Далее")) }
                    }
                },
            }
        }
    }

    fn form(&self, act: &str, fields: &Markup) -> Markup {
        html! {
            form.faults method="post" action="/cabinet/faults" {
                (self.look.form_token())
                @if let Some(name) = self.whose { input type="hidden" name="invoice" value=(name); }
                (fields)
                button name="act" value=(act) { (self.look.t("Set", "Задать")) }
            }
        }
    }

    fn counted(&self, id: &str, label: &str, choices: &[Choice]) -> Markup {
        let look = self.look;
        self.form(
            "count",
            &html! {
                p {
                    label for=(id) { (label) }
                    select id=(id) name="what" { @for (word, en, ru) in choices { option value=(word) { (look.t(en, ru)) } } }
                }
                (self.times(&format!("times-{id}")))
            },
        )
    }

    fn times(&self, id: &str) -> Markup {
        let look = self.look;
        html! {
            p {
                label for=(id) { (look.t("How often", "Сколько раз")) }
                select id=(id) name="times" { @for (word, en, ru) in TIMES { option value=(word) { (look.t(en, ru)) } } }
            }
        }
    }

    fn setting(&self, word: &str) -> Markup {
        setting(word, &self.wrongs, self.look)
    }

    fn sending(&self) -> Markup {
        let plain = Wrongs::default();
        let is_set = |now: &Wrongs| {
            (
                &now.presentation,
                now.delay_ms,
                now.give_up_ms,
                now.copies,
                now.reorder,
            ) != (
                &plain.presentation,
                plain.delay_ms,
                plain.give_up_ms,
                plain.copies,
                plain.reorder,
            )
        };
        let form = self.form(
            "set",
            &html! {
                (self.setting("presentation"))
                (self.setting("delay_ms"))
                (self.setting("give_up_ms"))
                (self.setting("copies"))
                (self.setting("reorder"))
            },
        );
        let title = self.look.t("How they are sent", "Как они отправляются");
        folded(title, is_set(&self.wrongs), &form)
    }

    fn service(&self) -> Markup {
        let look = self.look;
        // Nobody logs in for an invoice.
        let of_one = [Endpoint::Create, Endpoint::Fetch];
        let endpoints: &[Endpoint] = match self.whose {
            None => &Endpoint::ALL,
            Some(_) => &of_one,
        };
        self.form(
            "service",
            &html! {
                p {
                    label for="endpoint" { (look.t("Endpoint", "Метод API")) }
                    select #endpoint name="endpoint" { @for one in endpoints { option value=(one.word()) { (one.word()) } } }
                }
                (select("answer", look.t("Answers instead", "Отвечает вместо своего"), &ANSWERS, look))
                (self.times("times-service"))
            },
        )
    }

    fn opening(&self, state: &State) -> Markup {
        let look = self.look;
        let hold = self.form(
            "set",
            &html! {
                (self.setting("hold_create_ms"))
            },
        );
        let pool = self.form("pool", &html! {
            (number("free", "free", look.t("Free requisites", "Свободные реквизиты"), &state.pool.free().to_string(), (0, MOST_FREE)))
        });
        let content = html! {
            (self.counted("what-opening", look.t("What goes wrong", "Какой сбой"), &OF_OPENING))
            (hold)
            @if self.whose.is_none() { (pool) }
        };
        let title = look.t("Opening an invoice", "Открытие заявки");
        folded(title, self.wrongs.hold_create_ms > 0, &content)
    }

    fn clock(&self) -> Markup {
        let form = self.form(
            "set",
            &html! {
                (self.setting("clock_skew_ms"))
                (self.setting("same_instant"))
            },
        );
        let is_set = self.wrongs.clock_skew_ms != 0 || self.wrongs.same_instant;
        folded(self.look.t("The clock", "Часы"), is_set, &form)
    }
}

fn chances(scope: &Scope<'_>, state: &State) -> Markup {
    let (look, rates) = (scope.look, &state.faults.rates);
    let percent = |word: &str| {
        Chance::parse(word)
            .map_or(0, |one| rates.get(one))
            .to_string()
    };
    let form = scope.form("rates", &html! {
        div.grid {
            @for (word, en, ru) in CHANCES {
                (number(&format!("chance-{word}"), word, look.t(en, ru), &percent(word), (0, 100)))
                (was(word, &percent(word)))
            }
        }
        p {
            label for="of" { (look.t("And this endpoint", "И ещё метод")) }
            select #of name="of" { @for one in Endpoint::ALL { option value=(one.word()) { (one.word()) } } }
        }
        p {
            label for="by" { (look.t("answers instead", "отвечает вместо своего")) }
            select #by name="by" {
                option value="" { (look.t("any fault that passes by itself", "любой временный сбой")) }
                @for (word, en, ru) in ANSWERS { option value=(word) { (look.t(en, ru)) } }
            }
        }
        (number("percent", "percent", look.t("times in a hundred", "раз из ста"), "", (0, 100)))
    });
    let is_set = !rates.shown().is_empty();
    folded(
        look.t("At random, times in a hundred", "Случайно, раз из ста"),
        is_set,
        &form,
    )
}

/// What is rarely wanted: open where something of it is set.
fn folded(title: &str, is_open: bool, content: &Markup) -> Markup {
    html! { details open[is_open] { summary { (title) } (content) } }
}

/// The address of the page about one invoice, or about all.
pub(super) fn way(invoice: Option<&str>) -> String {
    let Some(invoice) = invoice else {
        return "/cabinet/faults".to_owned();
    };
    format!("/cabinet/faults?invoice={}", encode(invoice))
}

/// `POST /cabinet/faults`
pub(super) fn act(state: &mut State, form: &Form, look: &Look<'_>) -> Posted {
    match set(state, form) {
        Ok(()) => Posted::Done(way(form.get("invoice"))),
        Err(wrong) => Posted::Unfit(refusal(wrong, look)),
    }
}

fn set(state: &mut State, form: &Form) -> Result<(), Wrong> {
    if form.get("act") == Some("pool") {
        let free = within(form.get("free").unwrap_or("0"), "free", (0, MOST_FREE))?;
        let free = usize::try_from(free).map_err(|_range| Wrong::Form)?;
        state.pool.set_free(free);
        return Ok(());
    }
    let asked = serde_json::from_value(wished::wished(form)?).map_err(|_form| Wrong::Form)?;
    fault::apply(state, asked).map_err(|_words| Wrong::Form)
}

/// What a person reads whose form cannot be meant.
fn refusal(wrong: Wrong, look: &Look<'_>) -> String {
    match wrong {
        Wrong::Number(word, (least, most)) => format!(
            "{}{}{}{least}{}{most}.",
            look.t("\u{201c}", "«"),
            words::label(word, look).unwrap_or(word),
            look.t(
                "\u{201d} takes a whole number from ",
                "»: нужно целое число от "
            ),
            look.t(" to ", " до "),
        ),
        Wrong::Form => look
            .t(
                "This cannot be set: the sandbox does not know it, or too much is set already.",
                "Так задать нельзя: песочница такого не знает, или задано уже слишком много.",
            )
            .to_owned(),
    }
}
