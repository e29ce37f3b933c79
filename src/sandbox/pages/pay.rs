//! `/pay/{opaque}`: the customer's page of an invoice: what to pay and where, how much time is left, and buttons that say
//! how it ends; then the way to the shop's success, cancel or error address. In H2H mode the real service has no such page;
//! here it is the place to play the customer.

use std::cmp::Ordering;

use hyper::StatusCode;
use maud::{Markup, html};
use serde_json::Value;

use super::Posted;
use super::cabinet::{compared, difference};
use super::frame::{Look, instant};
use crate::sandbox::form::Form;
use crate::sandbox::state::State;
use crate::sandbox::state::invoice::{ChoiceError, Invoice, Mode};
use crate::sandbox::state::login::shop_name;
use crate::sandbox::state::pool::Method;
use crate::sandbox::statuses::{Happening, NEW};
use crate::wire::create::ReturnUrls;

/// The page of one invoice.
pub(super) fn page(state: &State, invoice: &Invoice, look: &Look<'_>) -> Markup {
    let statuses = &state.rules.statuses;
    let is_over = statuses.is_final(&invoice.status);
    let title = format!(
        "{}: {}",
        look.t("Payment", "Оплата"),
        shop_name(invoice.shop)
    );
    let content = html! {
        h1 { (title) }
        p.amount { (invoice.asked) " " (invoice.currency) }
        p {
            (look.t("Order ", "Заказ ")) strong { (invoice.internal_id) }
            (look.t(", status ", ", статус ")) span.status { (invoice.status) }
        }
        @if let Some(difference) = difference(invoice, look) {
            p { (look.t("Reported as paid: ", "Сообщено об оплате: ")) strong { (invoice.amount) " " (invoice.currency) } ", " (difference) }
        }
        @if is_over {
            (ending(state, invoice, look))
        } @else {
            p { (look.t("Time left: ", "Осталось времени: ")) strong { (look.left(invoice.expires_ms)) }
                " " span.quiet { (look.t("until ", "до ")) (instant(invoice.expires_ms)) } }
            @match invoice.method {
                Some(method) => { (requisites(invoice, method, look)) },
                None => { (choose(invoice, look)) },
            }
        }
        (outcomes(state, invoice, look))
        p.quiet {
            a href={ "/cabinet/invoices/" (invoice.opaque) } { (look.t("What the shop was told", "Что сообщено магазину")) }
            " · " a href={ "/pay/" (invoice.opaque) } { (look.t("Look again", "Обновить")) }
        }
    };
    look.page("", &title, &content)
}

fn requisites(invoice: &Invoice, method: Method, look: &Look<'_>) -> Markup {
    let details = invoice.requisite.map(|one| one.details(method));
    // What is typed into the bank's form first stands first.
    let known = [
        ("phoneNumber", look.t("Phone", "Телефон")),
        ("cardNumber", look.t("Card", "Карта")),
        ("bankName", look.t("Bank", "Банк")),
        ("fullName", look.t("Recipient", "Получатель")),
    ];
    let field = |name| details.as_ref()?.get(name).and_then(Value::as_str);
    let fields = known
        .into_iter()
        .filter_map(|(name, shown)| Some((shown, field(name)?)));
    html! {
        h2 {
            (look.t("Transfer the amount ", "Переведите сумму "))
            @match method {
                Method::Sbp => { (look.t("by phone number (SBP)", "по номеру телефона (СБП)")) },
                Method::ToCard => { (look.t("to this card", "на эту карту")) },
            }
        }
        dl.requisites { @for (name, value) in fields { dt { (name) } dd { (value) } } }
        @if invoice.mode == Mode::H2h {
            p.quiet { (look.t(
                "H2H: the shop shows these to its customer. The real service has no page for such an invoice.",
                "H2H: эти данные магазин показывает покупателю сам. У настоящего сервиса нет страницы для такой заявки.",
            )) }
        }
        @if method == Method::ToCard {
            p.quiet { (look.t("The fields for TO_CARD are this sandbox's invention.", "Поля для TO_CARD придуманы песочницей.")) }
        }
    }
}

fn choose(invoice: &Invoice, look: &Look<'_>) -> Markup {
    html! {
        h2 { (look.t("How do you want to pay?", "Как вы хотите оплатить?")) }
        form method="post" action={ "/pay/" (invoice.opaque) } {
            (look.form_token())
            @for method in Method::ALL {
                button.main[method == invoice.asked_method] name="method" value=(method.word()) {
                    @match method {
                        Method::Sbp => { (look.t("By phone number (SBP)", "По номеру телефона (СБП)")) },
                        Method::ToCard => { (look.t("To a card", "На карту")) },
                    }
                }
            }
        }
    }
}

/// What the customer reads when it is over, and the way to the shop.
fn ending(state: &State, invoice: &Invoice, look: &Look<'_>) -> Markup {
    let statuses = &state.rules.statuses;
    let has = |happening| invoice.happened == Some(happening);
    let (text, way) = if statuses.is_paid(&invoice.status) {
        let text = match compared(invoice) {
            Ordering::Equal => look.t("The payment has arrived.", "Платёж получен."),
            Ordering::Less => look.t(
                "A payment has arrived, of less than asked.",
                "Платёж получен, но меньше запрошенного.",
            ),
            Ordering::Greater => look.t(
                "A payment has arrived, of more than asked.",
                "Платёж получен, и больше запрошенного.",
            ),
        };
        (text, (|urls| &urls.success) as fn(&ReturnUrls) -> &String)
    } else if has(Happening::Expired) {
        let text = look.t("The time to pay is over.", "Время на оплату вышло.");
        (text, (|urls| &urls.error) as fn(&ReturnUrls) -> &String)
    } else if has(Happening::Refunded) {
        let text = look.t("The money was given back.", "Деньги возвращены.");
        (text, (|urls| &urls.error) as fn(&ReturnUrls) -> &String)
    } else if has(Happening::Canceled) {
        let text = look.t("The payment was cancelled.", "Оплата отменена.");
        (text, (|urls| &urls.cancel) as fn(&ReturnUrls) -> &String)
    } else {
        let text = look.t("This invoice is over.", "Эта заявка завершена.");
        (text, (|urls| &urls.error) as fn(&ReturnUrls) -> &String)
    };
    html! {
        p.ending role="status" { (text) }
        @if let Mode::Redirect(urls) = &invoice.mode {
            p { a.button.main href=(way(urls)) { (look.t("Back to the shop", "Вернуться в магазин")) } }
        }
    }
}

fn outcomes(state: &State, invoice: &Invoice, look: &Look<'_>) -> Markup {
    let statuses = &state.rules.statuses;
    let has_requisites = invoice.method.is_some();
    // In Redirect mode the choice of a method is this act.
    let can_act = invoice.status == NEW && statuses.name(Happening::Waiting).is_some();
    let choices: &[Happening] = if statuses.is_paid(&invoice.status) {
        &[Happening::Refunded]
    } else if statuses.is_failed(&invoice.status) {
        if has_requisites {
            &[Happening::Paid, Happening::PaidLess, Happening::PaidMore]
        } else {
            &[]
        }
    } else if statuses.is_final(&invoice.status) {
        &[]
    } else if has_requisites && can_act {
        &[
            Happening::Waiting,
            Happening::Paid,
            Happening::PaidLess,
            Happening::PaidMore,
            Happening::Canceled,
            Happening::Expired,
        ]
    } else if has_requisites {
        &[
            Happening::Paid,
            Happening::PaidLess,
            Happening::PaidMore,
            Happening::Canceled,
            Happening::Expired,
        ]
    } else {
        &[Happening::Canceled, Happening::Expired]
    };
    let is_late = statuses.is_failed(&invoice.status);
    html! {
        @if is_late && !has_requisites {
            p { (look.t(
                "No method was chosen before the end, so nobody was told where to pay, and no money can come.",
                "До завершения способ оплаты не выбрали: никто не узнал, куда платить, и денег прийти не может.",
            )) }
        }
        @if !choices.is_empty() {
            section.play {
                h2 { (look.t("What happens next", "Что будет дальше")) }
                p.quiet { (look.t(
                    "Sandbox only: each button changes the status and notifies the shop.",
                    "Только в песочнице: каждая кнопка меняет статус и уведомляет магазин.",
                )) }
                form method="post" action={ "/pay/" (invoice.opaque) } {
                    (look.form_token())
                    @for happening in choices {
                        button.main[*happening == Happening::Paid] name="happening" value=(happening.word()) { (label(*happening, is_late, look)) }
                    }
                }
            }
        }
    }
}

fn label(happening: Happening, is_late: bool, look: &Look<'_>) -> &'static str {
    match (happening, is_late) {
        (Happening::Waiting, _) => look.t("Sent, not yet arrived", "Отправлено, ещё не пришло"),
        (Happening::Paid, false) => look.t("Paid", "Оплачено"),
        (Happening::Paid, true) => look.t("Pay late", "Оплатить с опозданием"),
        (Happening::PaidLess, false) => look.t("Paid too little", "Оплачено меньше"),
        (Happening::PaidLess, true) => {
            look.t("Pay late and too little", "Оплатить с опозданием, меньше")
        }
        (Happening::PaidMore, false) => look.t("Paid too much", "Оплачено больше"),
        (Happening::PaidMore, true) => {
            look.t("Pay late and too much", "Оплатить с опозданием, больше")
        }
        (Happening::Canceled, _) => look.t("Cancel", "Отменить"),
        (Happening::Expired, _) => look.t("Let it expire", "Дать истечь сроку"),
        (Happening::Refunded, _) => look.t("Refund", "Вернуть деньги"),
    }
}

/// `POST /pay/{opaque}`
pub(super) fn act(state: &mut State, opaque: &str, form: &Form, now: i64) -> Posted {
    let done = match (
        form.get("method").and_then(Method::parse),
        form.get("happening").and_then(Happening::parse),
    ) {
        (Some(method), None) => state.choose_method(opaque, method, now),
        (None, Some(happening)) if state.happen(opaque, happening, now) => Ok(()),
        (None | Some(_), Some(_)) | (None, None) => Err(ChoiceError::Over),
    };
    match done {
        Ok(()) => Posted::Done(format!("/pay/{opaque}")),
        Err(ChoiceError::Over) => Posted::Refused(
            StatusCode::CONFLICT,
            [
                "That cannot happen to this invoice any more.",
                "С этой заявкой такого уже не может случиться.",
            ],
        ),
        Err(ChoiceError::NoRequisites) => Posted::Refused(
            StatusCode::CONFLICT,
            [
                "All requisites are occupied. Go back and choose again later.",
                "Все реквизиты заняты. Вернитесь и выберите снова позже.",
            ],
        ),
    }
}
