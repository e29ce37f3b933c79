//! `/activate`: type or follow the code, compare it, choose a shop, confirm or refuse; and what happens after. The real
//! cabinet asks who one is; this one is open to everybody on this machine.

use hyper::StatusCode;
use maud::{Markup, html};

use super::Posted;
use super::frame::Look;
use crate::sandbox::form::{Form, encode};
use crate::sandbox::state::login::{DecideError, Decision, Login, shop_name};
use crate::sandbox::state::{SHOPS, State};

const UNKNOWN: [&str; 2] = [
    "This code is unknown or has expired. Start the login again.",
    "Этот код неизвестен или истёк. Начните вход заново.",
];

/// After how many seconds the browser is to ask for the page of this code again, if at all: while the program has still to
/// fetch its token, as often as it may ask for it. Only where nothing is to be filled in; it ends with the token, or with the
/// life of the code.
pub(super) fn again_after_s(state: &State, code: Option<&str>, now: i64) -> Option<u64> {
    let login = state.find_login(code?, now)?;
    let is_due = matches!(login.decision, Decision::Confirmed(_)) && !login.spent;
    (is_due && now < login.expires_ms).then_some(state.rules.interval_s.max(1))
}

/// The page.
pub(super) fn page(state: &State, code: Option<&str>, look: &Look<'_>) -> Markup {
    let found = code.and_then(|code| state.find_login(code, look.now));
    let (title, content) = match found {
        None => (
            look.t("Confirm a login", "Подтвердить вход"),
            type_code(look, code),
        ),
        Some(login) => match login.decision {
            Decision::Pending => (
                look.t("Confirm a login", "Подтвердить вход"),
                decide_form(login, look),
            ),
            Decision::Confirmed(shop) => (
                look.t("Login confirmed", "Вход подтверждён"),
                confirmed(login, shop, state.rules.interval_s, look),
            ),
            Decision::Refused => (
                look.t("Login refused", "Вход отклонён"),
                refused(login, look),
            ),
        },
    };
    look.page("/activate", title, &content)
}

/// Asks for the code; with one that leads nowhere, says so and keeps it to be corrected.
fn type_code(look: &Look<'_>, typed: Option<&str>) -> Markup {
    let [en, ru] = UNKNOWN;
    let is_wrong = typed.is_some();
    html! {
        h1 { (look.t("Confirm a login", "Подтвердить вход")) }
        @if is_wrong { p.trouble #trouble role="alert" { (look.t(en, ru)) } }
        form method="get" action="/activate" {
            p {
                label for="code" { (look.t("Code shown by the program that asks", "Код, который показывает программа")) }
                input #code type="text" name="code" placeholder="ABCD-EFGH" autocomplete="off" autocapitalize="characters" spellcheck="false" required
                    value=[typed] aria-invalid=[is_wrong.then_some("true")] aria-describedby=[is_wrong.then_some("trouble")];
            }
            button.main { (look.t("Next", "Далее")) }
        }
    }
}

fn decide_form(login: &Login, look: &Look<'_>) -> Markup {
    html! {
        h1 { (login.client_name) (look.t(" asks for access to a shop", " просит доступ к магазину")) }
        p { (look.t("Is this the code you see there?", "Там показан этот код?")) }
        p.code { (login.user_code) }
        p.quiet {
            (look.t(
                "The real cabinet asks you to sign in first. Refuse if you did not start this yourself. The code is good for another ",
                "Настоящий кабинет сначала попросит вас войти. Откажите, если начали это не вы. Код действует ещё ",
            ))
            (look.left(login.expires_ms)) "."
        }
        form method="post" action="/activate" {
            (look.form_token())
            input type="hidden" name="code" value=(login.user_code);
            fieldset {
                legend { (look.t("Choose the shop it may act for", "Выберите магазин, к которому дать доступ")) }
                @for shop in SHOPS {
                    label { input type="radio" name="shop" value=(shop) required; " " (shop) }
                }
            }
            button.main name="decision" value="confirm" { (look.t("The codes are the same: confirm", "Коды совпадают: подтвердить")) }
            // Who refuses need choose no shop.
            button name="decision" value="refuse" formnovalidate { (look.t("Refuse", "Отказать")) }
        }
        p.quiet { (look.t(
            "After that the program fetches its token by itself, within seconds. It appears in the cabinet, where it can be revoked.",
            "После этого программа сама получит токен за несколько секунд. Он появится в кабинете, где его можно отозвать.",
        )) }
    }
}

fn confirmed(login: &Login, shop: usize, interval_s: u64, look: &Look<'_>) -> Markup {
    let is_late = !login.spent && look.now >= login.expires_ms;
    let is_due = !login.spent && !is_late;
    html! {
        h1 { (look.t("Login confirmed", "Вход подтверждён")) }
        p role="status" {
            (look.t("", "Программа ")) strong { (login.client_name) }
            @if login.spent { (look.t(" has its token for the shop ", " получила токен магазина ")) }
            @else if is_late { (look.t(" did not fetch its token in time. It was to be for the shop ", " не успела получить токен. Он был бы для магазина ")) }
            @else { (look.t(" gets a token for the shop ", " получит токен магазина ")) }
            strong { (shop_name(shop)) } "."
        }
        @if is_due {
            p.quiet {
                (look.t("It asks for it by itself. This page looks again every ", "Она запросит его сама. Страница обновляется каждые "))
                (interval_s) (look.t(" s until then; you need not wait for it. ", " с, пока это не случится; ждать не обязательно. "))
                a href={ "/activate?code=" (login.user_code) } { (look.t("Look now", "Обновить сейчас")) }
            }
        }
        @if is_late {
            p { (look.t("Start the login there again.", "Начните вход там заново.")) " " (another(look)) }
        } @else {
            p.quiet { (look.t(
                "You can close this page and go back to where the login was started.",
                "Страницу можно закрыть и вернуться туда, где начат вход.",
            )) }
            p { a href="/cabinet" { (look.t("See the token in the cabinet", "Посмотреть токен в кабинете")) } }
        }
    }
}

fn refused(login: &Login, look: &Look<'_>) -> Markup {
    html! {
        h1 { (look.t("Login refused", "Вход отклонён")) }
        p { strong { (login.client_name) } (look.t(" gets no token.", " не получит токен.")) }
        p.quiet { (look.t(
            "It is told so when it asks next. Was it a mistake? Start the login there again: it gets a new code.",
            "Программа узнает об этом при следующем запросе. Если это ошибка, начните вход там заново: код будет новым.",
        )) }
        p { (another(look)) " · " a href="/cabinet" { (look.t("To the cabinet", "В кабинет")) } }
    }
}

/// The way to the next login.
fn another(look: &Look<'_>) -> Markup {
    html! { a href="/activate" { (look.t("Enter another code", "Ввести другой код")) } }
}

/// The address of the page about this code.
pub(super) fn way(code: Option<&str>) -> String {
    match code {
        Some(code) => format!("/activate?code={}", encode(code)),
        None => "/activate".to_owned(),
    }
}

/// `POST /activate`
pub(super) fn decide(state: &mut State, form: &Form, now: i64) -> Posted {
    let code = form.get("code").unwrap_or("");
    let decided = match (form.get("decision"), form.get("shop")) {
        (Some("confirm"), Some(shop)) => state.decide_login(code, Some(shop), now),
        (Some("confirm"), None) => Err(DecideError::NoSuchShop),
        (Some("refuse"), _) => state.decide_login(code, None, now),
        _ => {
            let texts = [
                "Neither confirmed nor refused.",
                "Не подтверждено и не отклонено.",
            ];
            return Posted::Refused(StatusCode::BAD_REQUEST, texts);
        }
    };
    match decided {
        Ok(()) => {
            let found = state.find_login(code, now);
            let code = found.map_or("", |login| login.user_code.as_str());
            Posted::Done(format!("/activate?code={code}"))
        }
        Err(DecideError::Unknown) => Posted::Refused(StatusCode::NOT_FOUND, UNKNOWN),
        Err(DecideError::Decided) => Posted::Refused(
            StatusCode::CONFLICT,
            [
                "This login was already decided.",
                "Это решение уже принято.",
            ],
        ),
        Err(DecideError::NoSuchShop) => Posted::Refused(
            StatusCode::BAD_REQUEST,
            ["Choose one of the shops.", "Выберите один из магазинов."],
        ),
    }
}
