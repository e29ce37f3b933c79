//! `/cabinet`: the merchant's side. Shops, logins that wait, tokens and their revocation, invoices with what came of their
//! notifications.

use std::cmp::Ordering;

use hyper::StatusCode;
use maud::{Markup, html};
use rust_decimal::Decimal;

use super::Posted;
use super::faults;
use super::frame::{Look, instant, table};
use crate::sandbox::form::Form;
use crate::sandbox::state::faults::Presentation;
use crate::sandbox::state::invoice::{Invoice, Mode};
use crate::sandbox::state::login::{Decision, Token, shop_name};
use crate::sandbox::state::notice::{Answer, Attempt};
use crate::sandbox::state::{SHOPS, State};

/// Rows of a list on a page, the newest ones. The control listener shows all.
const MOST_ROWS: usize = 50;

/// The page.
pub(super) fn page(state: &State, look: &Look<'_>) -> Markup {
    let title = look.t("Cabinet", "Кабинет");
    let waiting = state
        .logins()
        .filter(|login| login.decision == Decision::Pending && look.now < login.expires_ms);
    let content = html! {
        h1 { (title) }
        @for login in waiting {
            p.trouble {
                strong { (login.client_name) } (look.t(" waits for its login: ", " ждёт подтверждения входа: "))
                a href={ "/activate?code=" (login.user_code) } { (login.user_code) }
            }
        }
        h2 { (look.t("Shops", "Магазины")) }
        ul {
            @for (index, shop) in SHOPS.iter().enumerate() {
                li { (shop) " " span.quiet { (look.t("invoices: ", "заявок: ")) (state.invoices().filter(|one| one.shop == index).count()) } }
            }
        }
        h2 { (look.t("Tokens", "Токены")) }
        (tokens(state, look))
        h2 { (look.t("Invoices", "Заявки")) }
        (invoices(look, state.invoices().rev().take(MOST_ROWS)))
        @if state.invoice_count() > MOST_ROWS {
            p.quiet { (look.t("The newest ", "Последние ")) (MOST_ROWS) (look.t(" of ", " из ")) (state.invoice_count()) "." }
        }
    };
    look.page("/cabinet", title, &content)
}

/// All that are in use, for each can be revoked here, and the newest of the others.
fn tokens(state: &State, look: &Look<'_>) -> Markup {
    let shown: Vec<&Token> = state
        .tokens()
        .rev()
        .enumerate()
        .filter(|(at, token)| *at < MOST_ROWS || token.revoked_ms.is_none())
        .map(|(_, token)| token)
        .collect();
    let hidden = state.tokens().count().saturating_sub(shown.len());
    let heads = [
        look.t("Given to", "Кому выдан"),
        look.t("Shop", "Магазин"),
        look.t("Issued", "Выдан"),
        look.t("Last used", "Последний запрос"),
        look.t("State", "Состояние"),
    ];
    let rows = shown.into_iter().map(|token| {
        [
            html! { (token.client_name) br; span.quiet { (token.id) } },
            html! { (shop_name(token.shop)) },
            instant(token.issued_ms),
            html! { @match token.used_ms { Some(at) => { (instant(at)) }, None => { (look.t("never", "не было")) } } },
            html! { @match token.revoked_ms {
                Some(at) => { (look.t("revoked ", "отозван ")) (instant(at)) },
                None => { (revocation(token, look)) },
            } },
        ]
    });
    let none = html! { (look.t("None yet. ", "Пока нет. ")) code { "tilld login" } (look.t(" asks for one.", " запросит токен.")) };
    html! {
        (table(look.t("Tokens", "Токены"), heads, rows, &none))
        @if hidden > 0 { p.quiet { (look.t("Revoked longer ago and not shown: ", "Отозваны раньше и не показаны: ")) (hidden) "." } }
    }
}

fn revocation(token: &Token, look: &Look<'_>) -> Markup {
    let revoke = look.t("Revoke", "Отозвать");
    html! {
        form method="post" action="/cabinet/revoke" {
            (look.form_token())
            button name="token" value=(token.id) aria-label={ (revoke) " " (token.client_name) " " (token.id) } { (revoke) }
        }
    }
}

/// A list of invoices; each leads to its own page.
pub(super) fn invoices<'s>(look: &Look<'_>, rows: impl Iterator<Item = &'s Invoice>) -> Markup {
    let heads = [
        look.t("Order", "Заказ"),
        look.t("Amount", "Сумма"),
        look.t("Status", "Статус"),
        look.t("Last notification", "Последнее уведомление"),
        look.t("Payment page", "Страница оплаты"),
    ];
    let open = look.t("Open the payment page of ", "Открыть страницу оплаты ");
    let rows = rows.map(|invoice| {
        [
            html! {
                a href={ "/cabinet/invoices/" (invoice.opaque) } { (invoice.internal_id) }
                br; span.quiet { (shop_name(invoice.shop)) ", " (mode(invoice)) }
            },
            html! {
                span.sum { (invoice.amount) " " (invoice.currency) }
                @if let Some(difference) = difference(invoice, look) {
                    br; span.quiet { (difference) (look.t(": ordered ", ": заказано ")) (invoice.asked) }
                }
            },
            html! { span.status { (invoice.status) } },
            html! { @match invoice.attempts.back() {
                Some(last) => {
                    (last.status) ": " (answer(look, &last.answer))
                    @if let Some(faults) = on_purpose(last, look) { br; span.quiet { (look.t("on purpose: ", "нарочно: ")) (faults) } }
                },
                None => span.quiet { (look.t("none", "нет")) },
            } },
            html! { a href={ "/pay/" (invoice.opaque) } aria-label={ (open) (invoice.internal_id) } { (look.t("Open", "Открыть")) } },
        ]
    });
    let none = html! { (look.t("None yet. ", "Пока нет. ")) code { "tilld invoice create" } (look.t(" opens one.", " откроет заявку.")) };
    table(look.t("Invoices", "Заявки"), heads, rows, &none)
}

/// How the amount that is reported stands to the one that was asked for.
pub(super) fn compared(invoice: &Invoice) -> Ordering {
    let amount = |text| Decimal::from_str_exact(text).ok();
    match (amount(&invoice.amount), amount(&invoice.asked)) {
        (Some(reported), Some(asked)) => reported.cmp(&asked),
        // A test may dictate any text: one that is no amount is not compared.
        (None, _) | (_, None) => Ordering::Equal,
    }
}

/// The same in words, where they differ.
pub(super) fn difference(invoice: &Invoice, look: &Look<'_>) -> Option<&'static str> {
    match compared(invoice) {
        Ordering::Less => Some(look.t("less than asked", "меньше запрошенного")),
        Ordering::Greater => Some(look.t("more than asked", "больше запрошенного")),
        Ordering::Equal => None,
    }
}

/// What came of an attempt, in words.
pub(super) fn answer(look: &Look<'_>, answer: &Answer) -> String {
    match answer {
        Answer::Code(200) => look.t("accepted (200)", "принято (200)").to_owned(),
        Answer::Code(code) => format!("{} ({code})", look.t("refused", "отклонено")),
        Answer::None(why) => format!(
            "{}: {}",
            look.t("no answer", "нет ответа"),
            reason(look, why)
        ),
        Answer::Lost => look.t("lost on purpose", "потеряно нарочно").to_owned(),
        Answer::NotLoopback => look
            .t(
                "not sent: not a loopback address",
                "не отправлено: адрес не этого компьютера",
            )
            .to_owned(),
        Answer::Overflow => look
            .t(
                "dropped: too many were waiting",
                "отброшено: слишком много ждало",
            )
            .to_owned(),
    }
}

/// What was done wrong to an attempt on purpose, if anything: the shop's answer is to be read by it.
pub(super) fn on_purpose(attempt: &Attempt, look: &Look<'_>) -> Option<String> {
    let faults = attempt.sent.faults.iter();
    let mut told: Vec<String> = faults.map(|fault| faults::done(fault, look)).collect();
    let is_left_away = attempt.sent.faults.iter().any(|one| one == "missing_token");
    let place = attempt.sent.presentation.as_ref();
    let usual = Presentation::default();
    if let Some(place) = place.filter(|place| **place != usual && !is_left_away) {
        told.push(match place {
            Presentation::Missing => look.t("without a token", "без токена").to_owned(),
            place => format!("{} {}", look.t("token as", "токен как"), place.word()),
        });
    }
    (!told.is_empty()).then(|| told.join(", "))
}

/// Why the shop did not answer. The state has it in English.
fn reason(look: &Look<'_>, why: &'static str) -> &'static str {
    let ru = match why {
        "stopping" => "остановка песочницы",
        "the token does not fit into a header" => "токен не помещается в заголовок",
        "torn on purpose" => "оборвано нарочно",
        "time-out" => "время вышло",
        "no connection" => "нет соединения",
        "connection closed" => "соединение закрыто",
        other => other,
    };
    look.t(why, ru)
}

/// How the invoice works, in a word.
pub(super) fn mode(invoice: &Invoice) -> &'static str {
    match invoice.mode {
        Mode::H2h => "H2H",
        Mode::Redirect(_) => "Redirect",
    }
}

/// `POST /cabinet/revoke`
pub(super) fn revoke(state: &mut State, form: &Form, now: i64) -> Posted {
    match form.get("token") {
        Some(id) if state.revoke_tokens(Some(id), now) > 0 => Posted::Done("/cabinet".to_owned()),
        _ => Posted::Refused(
            StatusCode::NOT_FOUND,
            [
                "There is no such token, or it was already revoked.",
                "Такого токена нет, или он уже отозван.",
            ],
        ),
    }
}
