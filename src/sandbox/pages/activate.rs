//! `/activate`: type or follow the code, compare it, choose a shop, confirm or refuse; and what happens after. The real
//! cabinet asks who one is; this one is open to everybody on this machine.

use hyper::StatusCode;
use maud::{Markup, html};

use super::Posted;
use super::frame::Look;
use crate::sandbox::form::Form;
use crate::sandbox::state::login::{DecideError, Decision, Login, shop_name};
use crate::sandbox::state::{SHOPS, State};

const UNKNOWN: [&str; 2] = [
    "This code is unknown or has expired. Start the login again.",
    "Этот код неизвестен или истёк. Начните вход заново.",
];

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
                confirmed(login, shop, look),
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
                legend { (look.t("Shop", "Магазин")) }
                @for (index, shop) in SHOPS.iter().enumerate() {
                    label { input type="radio" name="shop" value=(shop) checked[index == 0]; " " (shop) }
                }
            }
            button.main name="decision" value="confirm" { (look.t("The codes are the same: confirm", "Коды совпадают: подтвердить")) }
            button name="decision" value="refuse" { (look.t("Refuse", "Отказать")) }
        }
        p.quiet { (look.t(
            "After that the program fetches its token by itself, within seconds. It appears in the cabinet, where it can be revoked.",
            "После этого программа сама получит токен за несколько секунд. Он появится в кабинете, где его можно отозвать.",
        )) }
    }
}

fn confirmed(login: &Login, shop: usize, look: &Look<'_>) -> Markup {
    html! {
        h1 { (look.t("Login confirmed", "Вход подтверждён")) }
        p {
            strong { (login.client_name) }
            @if login.spent { (look.t(" has its token for the shop ", " получила токен магазина ")) }
            @else { (look.t(" gets a token for the shop ", " получит токен магазина ")) }
            strong { (shop_name(shop)) } "."
        }
        p.quiet { (look.t(
            "You can close this page and go back to where the login was started.",
            "Страницу можно закрыть и вернуться туда, где начат вход.",
        )) }
        p { a href="/cabinet" { (look.t("See the token in the cabinet", "Посмотреть токен в кабинете")) } }
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
