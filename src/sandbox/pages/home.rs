//! `/`: what this is, what is running, what to try next.

use std::path::Path;

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
    let tokens = tokens.count();
    let config = state.config.as_deref().map(shell_word);
    let tilld = format!("tilld --config {}", config.as_deref().unwrap_or("FILE"));
    let content = html! {
        h1 { (title) }
        p { (look.t(
            "Everything you need to develop and test a shop without the real service: an API, a cabinet for the merchant, payment pages for the customer, and faults on demand.",
            "Всё, чтобы разработать и проверить магазин без настоящего сервиса: API, кабинет мерчанта, платёжные страницы для покупателя и намеренные сбои.",
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
            dt { (look.t("Tokens in use", "Действующие токены")) } dd { (tokens) }
            dt { (look.t("Invoices", "Заявки")) } dd { (state.invoice_count()) }
            dt { (look.t("Requisites", "Реквизиты")) }
            dd {
                (look.t("free: ", "свободно: ")) (state.pool.free()) (look.t(", occupied: ", ", занято: ")) (state.pool.busy())
                p.quiet { (look.t(
                    "This counts the method and amount with the fewest free. A requisite takes one open invoice of the same amount at a time.",
                    "Это для способа и суммы, где свободных меньше всего. Один реквизит одновременно принимает одну открытую заявку на одну и ту же сумму.",
                )) }
            }
            @for (endpoint, count) in state.counts() {
                dt { (look.t("Requests", "Запросы")) " " code { (endpoint.word()) } } dd { (count) }
            }
        }
        h2 { (look.t("What to try next", "Что попробовать")) }
        ol {
            li {
                @if tokens > 0 {
                    (look.t("A program is logged in. Start the daemon, unless it is running already.", "Программа уже вошла. Запустите демон, если он ещё не запущен."))
                    pre { code { (tilld) " serve" } }
                } @else {
                    (look.t("Log in and start the daemon; the login is confirmed ", "Войдите и запустите демон; вход подтверждается "))
                    a href="/activate" { (look.t("here", "здесь")) } "."
                    pre { code { (tilld) " login\n" (tilld) " serve" } }
                }
            }
            li {
                (look.t("Open an invoice, then play its customer: you will find it below and in the ", "Откройте заявку и сыграйте за покупателя: она появится ниже и в "))
                a href="/cabinet" { (look.t("cabinet", "кабинете")) } "."
                pre { code { (tilld) " \\\n  invoice create --order A-1 \\\n  --amount 150.00 --currency RUB \\\n  --method SBP" } }
            }
            li {
                (look.t("Lose a notification, tear one, occupy all requisites: ", "Потеряйте уведомление, оборвите его, займите все реквизиты: "))
                a href="/cabinet/faults" { (look.t("faults", "сбои")) } "."
            }
        }
        @if state.config.is_none() {
            p.quiet {
                code { "FILE" }
                (look.t(" is a config that fits this sandbox, such as ", " — конфигурация для этой песочницы, её записывает "))
                code { "tilld sandbox --write-config FILE" }
                (look.t(" writes.", "."))
            }
        }
        details {
            summary { (look.t(ABOVE[0], ABOVE[1])) }
            ul { @for [en, ru] in INVENTIONS { li { (with_code(look.t(en, ru))) } } }
        }
        h2 { (look.t("Newest invoices", "Последние заявки")) }
        (invoices(look, state.invoices().rev().take(NEWEST)))
    };
    look.page("/", title, &content)
}

/// A path as a shell takes it.
fn shell_word(path: &Path) -> String {
    let path = path.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%".contains(c);
    if path.chars().all(is_plain) {
        path.into_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

/// A text whose words between backticks are code.
fn with_code(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// The times as they are, whatever the speed.
fn times(state: &State, look: &Look<'_>) -> Markup {
    let rules = &state.rules;
    let retry_s = rules.notify_retry_ms / 1_000;
    let rest_ms = rules.notify_retry_ms % 1_000;
    html! {
        dt { (look.t("A login is open for", "Вход ждёт подтверждения")) } dd { (look.lasting(rules.login_lifetime_s)) }
        dt { (look.t("Programs ask about it every", "Программа проверяет его каждые")) } dd { (look.lasting(rules.interval_s)) }
        dt { (look.t("An invoice can be paid for", "Заявку можно оплатить")) } dd { (look.lasting(rules.invoice_lifetime_s)) }
        dt { (look.t("A refused notification is sent again after", "Повтор уведомления через")) }
        dd {
            @if rest_ms == 0 { (look.lasting(retry_s)) } @else { (rules.notify_retry_ms) (look.t(" ms", " мс")) }
        }
    }
}
