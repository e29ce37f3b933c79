//! What the control listener shows. Device codes and access tokens are left out; the notify token of an invoice is there,
//! under a name that says why: tests send notifications of their own.

use serde_json::{Value, json};

use super::fault;
use crate::invoice::moment::Moment;
use crate::sandbox::state::State;
use crate::sandbox::state::faults::Presentation;
use crate::sandbox::state::invoice::{Invoice, Mode};
use crate::sandbox::state::login::{Decision, shop_name};
use crate::sandbox::state::notice::{Answer, Attempt};

/// `GET /state`
pub(super) fn state(state: &State) -> Value {
    let logins: Vec<Value> = state
        .logins()
        .map(|login| {
            let (decision, shop) = match login.decision {
                Decision::Pending => ("pending", None),
                Decision::Confirmed(shop) => ("confirmed", Some(shop_name(shop))),
                Decision::Refused => ("refused", None),
            };
            json!({
                "userCode": login.user_code,
                "clientName": login.client_name,
                "expiresAt": instant(login.expires_ms),
                "decision": decision,
                "shop": shop,
                "spent": login.spent,
            })
        })
        .collect();
    let tokens: Vec<Value> = state
        .tokens()
        .map(|token| {
            json!({
                "id": token.id,
                "shop": shop_name(token.shop),
                "clientName": token.client_name,
                "issuedAt": instant(token.issued_ms),
                "usedAt": token.used_ms.map(instant),
                "revokedAt": token.revoked_ms.map(instant),
            })
        })
        .collect();
    let requests: serde_json::Map<String, Value> = state
        .counts()
        .map(|(endpoint, count)| (endpoint.word().to_owned(), count.into()))
        .collect();
    let invoices: Vec<Value> = state.invoices().map(|one| invoice(state, one)).collect();
    json!({
        "invoices": invoices,
        "logins": logins,
        "tokens": tokens,
        "requests": requests,
        "pool": pool(state),
        "faults": fault::view(&state.faults),
        "speed": state.rules.speed,
    })
}

/// One invoice: the object as the shop sees it, what came of its notifications, and what tests need.
pub(super) fn invoice(state: &State, invoice: &Invoice) -> Value {
    let attempts: Vec<Value> = invoice.attempts.iter().map(attempt).collect();
    json!({
        "invoice": invoice.body(&state.rules.payment_url),
        "shop": shop_name(invoice.shop),
        "mode": match invoice.mode { Mode::H2h => "h2h", Mode::Redirect(_) => "redirect" },
        "page": format!("{}/{}", state.rules.payment_url, invoice.opaque),
        "notifications": invoice.notices,
        "attempts": attempts,
        "for_tests": {
            "notificationToken": invoice.token.expose(),
            "notificationUrl": invoice.notification_url,
        },
    })
}

/// How full the pool is.
pub(super) fn pool(state: &State) -> Value {
    json!({ "free": state.pool.free(), "occupied": state.pool.busy() })
}

fn attempt(attempt: &Attempt) -> Value {
    json!({
        "notification": attempt.notice,
        "attempt": attempt.number,
        "at": instant(attempt.at_ms),
        "status": attempt.status,
        "presentation": attempt.sent.presentation.as_ref().map(Presentation::word),
        "faults": attempt.sent.faults,
        "body": &*attempt.body,
        "answer": answer(&attempt.answer),
    })
}

/// An HTTP status as a number, anything else as a text.
pub(super) fn answer(answer: &Answer) -> Value {
    match answer {
        Answer::Code(code) => (*code).into(),
        Answer::None(_) | Answer::Lost | Answer::NotLoopback | Answer::Overflow => {
            answer.word().into()
        }
    }
}

fn instant(ms: i64) -> String {
    Moment::from_ms(ms).to_string()
}
