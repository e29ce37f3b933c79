//! `/`: what this is, what is running, what to try next.

use maud::{Markup, html};

use super::cabinet::invoices;
use super::frame::Look;
use crate::sandbox::inventions::{ABOVE, INVENTIONS};
use crate::sandbox::state::State;
use crate::sandbox::state::login::Decision;

/// Invoices on the first page. The cabinet shows more.
const NEWEST: usize = 5;

/// The page.
pub(super) fn page(state: &State, look: &Look<'_>) -> Markup {
    let title = look.t(
        "The imitation payment service",
        "Имитация платёжного сервиса",
    );
    let waiting = state
        .logins()
        .filter(|login| login.decision == Decision::Pending && look.now < login.expires_ms)
        .count();
    let tokens = state.tokens().filter(|token| token.revoked_ms.is_none());
    let content = html! {
        h1 { (title) }
        p { (look.t(
            "Everything a shop needs to be developed and proved without the real service: an API, a cabinet for the merchant, payment pages for the customer, and faults on demand.",
            "Всё, чтобы разработать и проверить магазин без настоящего сервиса: API, кабинет мерчанта, платёжные страницы для покупателя и сбои по заказу.",
        )) }
        h2 { (look.t("What is running", "Что запущено")) }
        dl {
            dt { "API" } dd { code { (state.rules.cabinet_url) "/api/v1" } }
            dt { (look.t("Control listener", "Управление")) } dd { code { (state.rules.control_url) } }
            (times(state, look))
            @if state.rules.speed > 1 {
                dt { (look.t("Speed", "Скорость")) }
                dd { (look.t("times pass ", "время идёт быстрее в ")) (state.rules.speed) (look.t(" times faster", " раз")) }
            }
            dt { (look.t("Logins waiting", "Ждут подтверждения")) } dd { (waiting) }
            dt { (look.t("Tokens in use", "Действующие токены")) } dd { (tokens.count()) }
            dt { (look.t("Invoices", "Заявки")) } dd { (state.invoice_count()) }
            dt { (look.t("Requisites", "Реквизиты")) }
            dd {
                (look.t("free: ", "свободно: ")) (state.pool.free()) (look.t(", occupied: ", ", занято: ")) (state.pool.busy())
                p.quiet { (look.t(
                    "Of the method and amount with the fewest left. Each method has so many, and each of them takes one open invoice of an amount.",
                    "У способа и суммы, которых осталось меньше всего. У каждого способа столько реквизитов, и каждый берёт одну открытую заявку одной суммы.",
                )) }
            }
            @for (endpoint, count) in state.counts() {
                dt { (look.t("Requests", "Запросы")) " " code { (endpoint.word()) } } dd { (count) }
            }
        }
        h2 { (look.t("What to try next", "Что попробовать")) }
        ol {
            li {
                (look.t("Log in and start the daemon; the login is confirmed ", "Войдите и запустите демон; вход подтверждается "))
                a href="/activate" { (look.t("here", "здесь")) } "."
                pre { code { "tilld --config sandbox.toml login\ntilld --config sandbox.toml serve" } }
            }
            li {
                (look.t("Open an invoice, then play its customer: it stands below and in the ", "Откройте заявку и сыграйте за покупателя: она появится ниже и в "))
                a href="/cabinet" { (look.t("cabinet", "кабинете")) } "."
                pre { code { "tilld --config sandbox.toml \\\n  invoice create --order A-1 \\\n  --amount 150.00 --currency RUB \\\n  --method SBP" } }
            }
            li {
                (look.t("Lose a notification, tear one, occupy all requisites: ", "Потеряйте уведомление, оборвите его, займите все реквизиты: "))
                a href="/cabinet/faults" { (look.t("faults", "сбои")) } "."
            }
        }
        p.quiet {
            code { "sandbox.toml" }
            (look.t(" is what ", " записывает ")) code { "tilld sandbox --write-config sandbox.toml" }
            (look.t(" writes.", "."))
        }
        details {
            summary { (look.t(ABOVE[0], ABOVE[1])) }
            ul { @for [en, ru] in INVENTIONS { li { (look.t(en, ru)) } } }
        }
        h2 { (look.t("Newest invoices", "Последние заявки")) }
        (invoices(look, state.invoices().rev().take(NEWEST)))
    };
    look.page("/", title, &content)
}

/// The times as they are, whatever the speed.
fn times(state: &State, look: &Look<'_>) -> Markup {
    let rules = &state.rules;
    let retry_s = rules.notify_retry_ms / 1_000;
    let rest_ms = rules.notify_retry_ms % 1_000;
    html! {
        dt { (look.t("Login lives", "Вход действует")) } dd { (rules.login_lifetime_s) (look.t(" s", " с")) }
        dt { (look.t("Polls of it every", "Опрос входа каждые")) } dd { (rules.interval_s) (look.t(" s", " с")) }
        dt { (look.t("Payable for", "Срок оплаты")) } dd { (rules.invoice_lifetime_s) (look.t(" s", " с")) }
        dt { (look.t("Notified again after", "Повтор уведомления через")) }
        dd {
            @if rest_ms == 0 { (retry_s) (look.t(" s", " с")) } @else { (rules.notify_retry_ms) (look.t(" ms", " мс")) }
        }
    }
}
