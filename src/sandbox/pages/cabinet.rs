//! The merchant's side: overview, confirming a login, tokens and invoices. The real cabinet asks who one is; this one is
//! open to everybody on this machine.

use hyper::StatusCode;
use maud::{Markup, html};

use super::{Posted, form_token, instant, layout};
use crate::sandbox::form::Form;
use crate::sandbox::state::invoice::{Invoice, Mode};
use crate::sandbox::state::login::{DecideError, Decision, Login, shop_name};
use crate::sandbox::state::{SHOPS, State};

/// Rows of a list on a page, the newest ones. The control listener shows all.
const MOST_ROWS: usize = 50;

/// `/`: what there is and what has happened.
pub(super) fn overview(state: &State, now: i64) -> Markup {
    let pending = state
        .logins()
        .filter(|login| login.decision == Decision::Pending && now < login.expires_ms)
        .count();
    layout(
        "Overview",
        &html! {
            h1 { "The imitation payment service" }
            dl {
                dt { "Service" } dd { code { (state.rules.cabinet_url) "/api/v1" } }
                dt { "Cabinet" } dd { a href="/cabinet" { (state.rules.cabinet_url) "/cabinet" } }
                dt { "Logins waiting" } dd { (pending) }
                dt { "Tokens" } dd { (state.tokens().filter(|token| token.revoked_ms.is_none()).count()) }
                dt { "Invoices" } dd { (state.invoice_count()) }
                @if state.rules.speed > 1 { dt { "Speed" } dd { "times pass " (state.rules.speed) " times faster" } }
                dt { "Requisites" } dd { (state.pool.free()) " free, " (state.pool.busy()) " occupied" }
            }
            h2 { "Requests so far" }
            dl {
                @for (endpoint, count) in state.counts() { dt { (endpoint.word()) } dd { (count) } }
            }
            h2 { "Newest invoices" }
            (invoices(state.invoices().rev().take(5)))
        },
    )
}

/// `/activate`: compare the code, choose a shop, confirm or refuse.
pub(super) fn activate(state: &State, code: Option<&str>, token: &str, now: i64) -> Markup {
    let content = match code {
        None => type_code(None),
        Some(code) => match state.find_login(code, now) {
            None => type_code(Some(
                "This code is unknown or has expired. Start the login again.",
            )),
            Some(login) => match login.decision {
                Decision::Pending => decide_form(login, token, now),
                Decision::Confirmed(shop) => html! {
                    h1 { "Confirmed" }
                    p { strong { (login.client_name) } " gets a token for the shop " strong { (shop_name(shop)) } "." }
                    p.quiet { "You can close this page and go back to where the login was started." }
                },
                Decision::Refused => html! {
                    h1 { "Refused" }
                    p { strong { (login.client_name) } " gets no token." }
                },
            },
        },
    };
    layout("Confirm a login", &content)
}

fn type_code(trouble: Option<&str>) -> Markup {
    html! {
        h1 { "Confirm a login" }
        @if let Some(trouble) = trouble { p { strong { (trouble) } } }
        form method="get" action="/activate" {
            p { label for="code" { "Code shown by the program that asks" } }
            p {
                input #code type="text" name="code" placeholder="ABCD-EFGH" autocomplete="off" autocapitalize="characters" required;
                " " button.main { "Next" }
            }
        }
    }
}

fn decide_form(login: &Login, token: &str, now: i64) -> Markup {
    html! {
        h1 { strong { (login.client_name) } " asks for access to a shop" }
        p { "Is this the code you see there?" }
        p.code { (login.user_code) }
        p.quiet { "The real cabinet asks you to sign in first. Refuse if you did not start this yourself. The code is good for another " ((login.expires_ms - now) / 1_000) " s." }
        form method="post" action="/activate" {
            (form_token(token))
            input type="hidden" name="code" value=(login.user_code);
            fieldset {
                legend { "Shop" }
                @for (index, shop) in SHOPS.iter().enumerate() {
                    label { input type="radio" name="shop" value=(shop) checked[index == 0]; " " (shop) }
                }
            }
            button.main name="decision" value="confirm" { "The codes are the same: confirm" }
            button name="decision" value="refuse" { "Refuse" }
        }
    }
}

/// `POST /activate`
pub(super) fn decide(state: &mut State, form: &Form, now: i64) -> Posted {
    let code = form.get("code").unwrap_or("");
    let decided = match (form.get("decision"), form.get("shop")) {
        (Some("confirm"), Some(shop)) => state.decide_login(code, Some(shop), now),
        (Some("confirm"), None) => Err(DecideError::NoSuchShop),
        (Some("refuse"), _) => state.decide_login(code, None, now),
        _ => return Posted::Refused(StatusCode::BAD_REQUEST, "Neither confirmed nor refused."),
    };
    match decided {
        Ok(()) => {
            let found = state.find_login(code, now);
            let code = found.map_or("", |login| login.user_code.as_str());
            Posted::Done(format!("/activate?code={code}"))
        }
        Err(DecideError::Unknown) => Posted::Refused(
            StatusCode::NOT_FOUND,
            "This code is unknown or has expired. Start the login again.",
        ),
        Err(DecideError::Decided) => {
            Posted::Refused(StatusCode::CONFLICT, "This login was already decided.")
        }
        Err(DecideError::NoSuchShop) => {
            Posted::Refused(StatusCode::BAD_REQUEST, "Choose one of the shops.")
        }
    }
}

/// `POST /cabinet/revoke`
pub(super) fn revoke(state: &mut State, form: &Form, now: i64) -> Posted {
    match form.get("token") {
        Some(id) if state.revoke_tokens(Some(id), now) > 0 => Posted::Done("/cabinet".to_owned()),
        _ => Posted::Refused(
            StatusCode::NOT_FOUND,
            "There is no such token, or it was already revoked.",
        ),
    }
}

/// `/cabinet`: tokens and invoices.
pub(super) fn cabinet(state: &State, token: &str, now: i64) -> Markup {
    layout(
        "Cabinet",
        &html! {
            h1 { "Cabinet" }
            @let waiting = state.logins().filter(|login| login.decision == Decision::Pending && now < login.expires_ms);
            @for login in waiting {
                p { strong { (login.client_name) } " waits for its login: " a href={ "/activate?code=" (login.user_code) } { (login.user_code) } }
            }
            h2 { "Tokens" }
            (tokens(state, token))
            h2 { "Invoices" }
            (invoices(state.invoices().rev().take(MOST_ROWS)))
            @if state.invoice_count() > MOST_ROWS { p.quiet { "The newest " (MOST_ROWS) " of " (state.invoice_count()) "." } }
        },
    )
}

fn tokens(state: &State, form: &str) -> Markup {
    html! {
        @if state.tokens().next().is_none() {
            p.quiet { "None yet. " code { "tilld login" } " asks for one." }
        } @else {
            div.table { table {
                tr { th { "Given to" } th { "Shop" } th { "Issued" } th { "Last used" } th { "" } }
                @for token in state.tokens().rev().take(MOST_ROWS) {
                    tr {
                        td { (token.client_name) br; span.quiet { (token.id) } }
                        td { (shop_name(token.shop)) }
                        td { (instant(token.issued_ms)) }
                        td { (token.used_ms.map_or_else(|| "never".to_owned(), instant)) }
                        td {
                            @if let Some(at) = token.revoked_ms { "revoked " (instant(at)) } @else {
                                form method="post" action="/cabinet/revoke" {
                                    (form_token(form))
                                    button name="token" value=(token.id) { "Revoke" }
                                }
                            }
                        }
                    }
                }
            } }
        }
    }
}

fn invoices<'s>(rows: impl Iterator<Item = &'s Invoice>) -> Markup {
    let mut rows = rows.peekable();
    html! {
        @if rows.peek().is_none() {
            p.quiet { "None yet. " code { "tilld invoice create" } " opens one." }
        } @else {
            div.table { table {
                tr { th { "Order" } th { "Amount" } th { "Status" } th { "Last notification" } th { "" } }
                @for invoice in rows {
                    tr {
                        td { (invoice.internal_id) br; span.quiet { (shop_name(invoice.shop)) ", " (mode(invoice)) } }
                        td { (invoice.amount) " " (invoice.currency) }
                        td.status { (invoice.status) }
                        td { @match invoice.attempts.back() {
                            Some(last) => { (last.status) ": " (last.answer.word()) },
                            None => span.quiet { "none" },
                        } }
                        td { a href={ "/pay/" (invoice.opaque) } { "Open" } }
                    }
                }
            } }
        }
    }
}

/// How the invoice works, in a word.
pub(super) fn mode(invoice: &Invoice) -> &'static str {
    match invoice.mode {
        Mode::H2h => "H2H",
        Mode::Redirect(_) => "Redirect",
    }
}
