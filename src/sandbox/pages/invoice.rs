//! `/cabinet/invoices/{opaque}`: one invoice as the merchant sees it: the notifications of it, what was done to them, what
//! the shop answered, the object itself. Another notification can be sent from here.

use hyper::StatusCode;
use maud::{Markup, html};
use serde_json::Value;

use super::Posted;
use super::cabinet::{answer, difference, mode, on_purpose};
use super::faults;
use super::frame::{Look, instant, table};
use crate::sandbox::state::State;
use crate::sandbox::state::invoice::Invoice;
use crate::sandbox::state::login::shop_name;
use crate::sandbox::state::notice::Attempt;

/// The page.
pub(super) fn page(state: &State, invoice: &Invoice, look: &Look<'_>) -> Markup {
    let order = look.t("Order", "Заказ");
    let title = format!("{order} {}", invoice.internal_id);
    let content = html! {
        h1 { (title) }
        dl {
            dt { (look.t("Shop", "Магазин")) } dd { (shop_name(invoice.shop)) }
            @match difference(invoice, look) {
                None => { dt { (look.t("Amount", "Сумма")) } dd { (invoice.amount) " " (invoice.currency) } },
                Some(difference) => {
                    dt { (look.t("Ordered", "Заказано")) } dd { (invoice.asked) " " (invoice.currency) }
                    dt { (look.t("Reported", "Сообщено")) } dd { (invoice.amount) " " (invoice.currency) ", " (difference) }
                },
            }
            dt { (look.t("Status", "Статус")) } dd.status { (invoice.status) }
            dt { (look.t("Mode", "Режим")) } dd { (mode(invoice)) }
            dt { (look.t("Opened", "Открыта")) } dd { (instant(invoice.created_ms)) }
            dt { (look.t("Invoice", "Заявка")) } dd { code { (invoice.id) } }
            dt { (look.t("Notified at", "Адрес уведомлений")) } dd { code { (invoice.notification_url) } }
        }
        p { a.button href={ "/pay/" (invoice.opaque) } { (look.t("Play the customer", "Сыграть за покупателя")) } }
        h2 { (look.t("Notifications", "Уведомления")) }
        (told(invoice, look))
        form method="post" action={ "/cabinet/invoices/" (invoice.opaque) } {
            (look.form_token())
            button name="act" value="notify" { (look.t("Send another notification of its present state", "Отправить ещё одно уведомление о текущем состоянии")) }
        }
        p { a href=(faults::way(Some(&invoice.id))) { (look.t("Make something go wrong with this invoice only", "Устроить сбой только для этой заявки")) } }
        details {
            summary { (look.t("The invoice object", "Объект заявки")) }
            dl { @for (name, value) in object(state, invoice) { dt { (name) } dd { (value) } } }
        }
    };
    look.page("", &title, &content)
}

fn told(invoice: &Invoice, look: &Look<'_>) -> Markup {
    let heads = [
        look.t("Number", "Номер"),
        look.t("Status", "Статус"),
        look.t("When", "Когда"),
        look.t("How it was sent", "Как отправлено"),
        look.t("Answer of the shop", "Ответ магазина"),
    ];
    let again = look.t(", try ", ", попытка ");
    let rows = invoice.attempts.iter().map(|attempt| {
        [
            html! {
                span.no { (look.t("Notification ", "Уведомление ")) } (attempt.notice)
                @if attempt.number > 1 { (again) (attempt.number) }
            },
            html! { span.status { (attempt.status) } },
            instant(attempt.at_ms),
            sent(attempt, look),
            html! { (answer(look, &attempt.answer)) },
        ]
    });
    let none = html! { (look.t("None sent yet.", "Ещё не отправлялись.")) };
    let name = look.t("Notifications", "Уведомления");
    table(name, heads, rows, &none)
}

/// What was done to it on purpose, and what went out. The token is told by its place alone.
fn sent(attempt: &Attempt, look: &Look<'_>) -> Markup {
    let place = attempt.sent.presentation.as_ref();
    html! {
        @match on_purpose(attempt, look) {
            Some(faults) => strong { (look.t("On purpose: ", "Нарочно: ")) (faults) },
            None => { (look.t("as usual", "как обычно")) },
        }
        details {
            summary { (look.t("Token and body", "Токен и тело")) }
            p {
                (look.t("Token: ", "Токен: "))
                @match place {
                    Some(place) => { code { (place.word()) } (look.t(", not shown here", ", здесь не показан")) },
                    None => { (look.t("not sent", "не отправлен")) },
                }
            }
            pre { code { (*attempt.body) } }
        }
    }
}

fn object(state: &State, invoice: &Invoice) -> Vec<(String, String)> {
    let Value::Object(fields) = invoice.body(&state.rules.payment_url) else {
        return Vec::new();
    };
    let text = |value: Value| value.as_str().unwrap_or_default().to_owned();
    fields
        .into_iter()
        .map(|(name, value)| (name, text(value)))
        .collect()
}

/// `POST /cabinet/invoices/{opaque}`
pub(super) fn act(state: &mut State, opaque: &str) -> Posted {
    let id = state.invoice_of_page(opaque).map(|found| found.id.clone());
    match id {
        Some(id) => {
            state.notify_of(&id);
            Posted::Done(format!("/cabinet/invoices/{opaque}"))
        }
        None => Posted::Refused(
            StatusCode::NOT_FOUND,
            ["There is no such invoice.", "Такой заявки нет."],
        ),
    }
}
