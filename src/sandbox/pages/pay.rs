//! `/pay/{opaque}`: the customer's page of an invoice, with buttons that say how it ends. In H2H mode the real service has
//! no such page; here it is the place to play the customer.

use hyper::StatusCode;
use maud::{Markup, html};
use serde_json::Value;

use super::cabinet::mode;
use super::{Posted, form_token, instant, layout};
use crate::sandbox::form::Form;
use crate::sandbox::state::State;
use crate::sandbox::state::invoice::{ChoiceError, Invoice, Mode};
use crate::sandbox::state::login::shop_name;
use crate::sandbox::state::pool::Method;
use crate::sandbox::statuses::Happening;
use crate::wire::create::ReturnUrls;

/// The page of one invoice.
pub(super) fn page(state: &State, invoice: &Invoice, token: &str) -> Markup {
    let statuses = &state.rules.statuses;
    let ended = statuses.is_final(&invoice.status);
    layout(
        "Payment",
        &html! {
            h1 { "Payment to " (shop_name(invoice.shop)) }
            p.amount { (invoice.asked) " " (invoice.currency) }
            p { "Order " strong { (invoice.internal_id) } ", status " span.status { (invoice.status) } }
            @if invoice.amount != invoice.asked { p { "Reported amount: " strong { (invoice.amount) " " (invoice.currency) } } }
            @match invoice.method {
                Some(method) => { (requisites(invoice, method)) }
                None if !ended => { (choose(invoice, token)) }
                None => {}
            }
            @if !ended { p.quiet { "To be paid until " (instant(invoice.expires_ms)) "." } }
            @if let (true, Mode::Redirect(urls)) = (ended, &invoice.mode) { (way_back(state, invoice, urls)) }
            (outcomes(state, invoice, token))
            (told(state, invoice))
        },
    )
}

fn requisites(invoice: &Invoice, method: Method) -> Markup {
    let details = invoice.requisite.map(|one| one.details(method));
    let fields = details.as_ref().and_then(Value::as_object);
    let fields = fields.into_iter().flatten();
    html! {
        h2 { "Transfer the amount to (" (method.word()) ")" }
        dl {
            @for (name, value) in fields { dt { (name) } dd { (value.as_str().unwrap_or_default()) } }
        }
        @if invoice.mode == Mode::H2h {
            p.quiet { "H2H: the shop shows these to its customer. The real service has no page for such an invoice." }
        }
        @if method == Method::ToCard {
            p.quiet { "The fields for " code { "TO_CARD" } " are this sandbox's invention." }
        }
    }
}

fn choose(invoice: &Invoice, token: &str) -> Markup {
    html! {
        h2 { "How do you want to pay?" }
        form method="post" action={ "/pay/" (invoice.opaque) } {
            (form_token(token))
            @for method in Method::ALL {
                button.main[method == invoice.asked_method] name="method" value=(method.word()) { (method.word()) }
            }
        }
    }
}

fn outcomes(state: &State, invoice: &Invoice, token: &str) -> Markup {
    let statuses = &state.rules.statuses;
    let choices: &[(Happening, &str)] = if statuses.is_paid(&invoice.status) {
        &[(Happening::Refunded, "Refund")]
    } else if statuses.is_failed(&invoice.status) {
        &[(Happening::Paid, "A late payment arrives")]
    } else if statuses.is_final(&invoice.status) {
        &[]
    } else {
        &[
            (Happening::Paid, "Paid"),
            (Happening::PaidLess, "Paid too little"),
            (Happening::Canceled, "Cancel"),
            (Happening::Expired, "Let it expire"),
        ]
    };
    html! {
        @if !choices.is_empty() {
            h2 { "What happens next" }
            p.quiet { "Sandbox only. Each button changes the status and notifies the shop." }
            form method="post" action={ "/pay/" (invoice.opaque) } {
                (form_token(token))
                @for (happening, label) in choices {
                    button.main[*happening == Happening::Paid] name="happening" value=(happening.word()) { (label) }
                }
            }
        }
    }
}

fn way_back(state: &State, invoice: &Invoice, urls: &ReturnUrls) -> Markup {
    let statuses = &state.rules.statuses;
    let canceled = statuses.name(Happening::Canceled) == Some(invoice.status.as_str());
    let url = if statuses.is_paid(&invoice.status) {
        &urls.success
    } else if canceled {
        &urls.cancel
    } else {
        &urls.error
    };
    html! { p { a href=(url) { "Back to the shop" } } }
}

fn told(state: &State, invoice: &Invoice) -> Markup {
    html! {
        h2 { "Notifications" }
        @if invoice.attempts.is_empty() {
            p.quiet { "None sent yet." }
        } @else {
            div.table { table {
                tr { th { "No." } th { "Try" } th { "Status" } th { "When" } th { "Answer of the shop" } }
                @for attempt in &invoice.attempts {
                    tr {
                        td { (attempt.notice) }
                        td { (attempt.number) }
                        td { (attempt.status) }
                        td { (instant(attempt.at_ms)) }
                        td { (attempt.answer.word()) }
                    }
                }
            } }
        }
        p { a href={ "/pay/" (invoice.opaque) } { "Look again" } }
        p.quiet { (mode(invoice)) " invoice " code { (invoice.id) } }
        details {
            summary { "The invoice object" }
            dl { @for (name, value) in object(state, invoice) { dt { (name) } dd { (value) } } }
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
            "That cannot happen to this invoice any more. Reload its page.",
        ),
        Err(ChoiceError::NoRequisites) => Posted::Refused(
            StatusCode::CONFLICT,
            "All requisites are occupied. Go back and choose again later.",
        ),
    }
}
