//! `GET /` of the control listener: the requests it takes, for a person or a program that has only its address.

use serde_json::{Value, json};

/// Every request, its body as far as it has one, and what it does.
const REQUESTS: [(&str, &str, &str); 10] = [
    ("GET /", "", "these requests"),
    (
        "GET /state",
        "",
        "everything that happened, what is set to go wrong, and how full the pool is",
    ),
    (
        "POST /login/confirm",
        r#"{"userCode", "shop"?}"#,
        "a login is confirmed, for the first shop unless named",
    ),
    (
        "POST /login/refuse",
        r#"{"userCode"}"#,
        "a login is refused",
    ),
    (
        "POST /tokens/issue",
        r#"{"shop"?, "clientName"?}"#,
        "an access token as the cabinet gives it, `token` in the answer",
    ),
    (
        "POST /tokens/revoke",
        r#"{"token"?}"#,
        "a token is revoked, by its id or text; without it all are",
    ),
    (
        "POST /invoices/ID/status",
        r#"{"status"?, "amount"?, "currency"?, "updatedAt"?, "notify"?}"#,
        "an invoice is moved, and notified of unless `notify` is false; ID is its id or its order's, percent-encoded",
    ),
    (
        "POST /invoices/ID/notify",
        r#"{"times"?}"#,
        "its notification is sent as it stands, so many times at once; gives the answers",
    ),
    (
        "POST /pool",
        r#"{"free"}"#,
        "so many more invoices have a requisite, of any method and amount",
    ),
    (
        "POST /faults",
        r#"{"lose"?, "reset"?, …}"#,
        "what is to go wrong",
    ),
];

/// All requests, for whoever asks what there is.
pub(super) fn all() -> Value {
    let listed = REQUESTS
        .map(|(request, body, what)| json!({ "request": request, "body": body, "what": what }));
    json!({ "requests": listed })
}
