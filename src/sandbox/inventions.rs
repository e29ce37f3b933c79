//! What the sandbox made up because the service's documentation shows nothing there, in one list: the first page, `--help`
//! and the `OpenAPI` text say it from here, so that nobody takes any of it for a fact about the service.

/// An invention, in English and in Russian.
pub(crate) type Invention = [&'static str; 2];

/// All of them. Whoever reads them has the documentation of tilld alone: no section of another text is cited.
pub(crate) const INVENTIONS: [Invention; 12] = [
    [
        "every status name beside `new`, and what can follow what",
        "все имена статусов, кроме `new`, и порядок их смены",
    ],
    [
        "how notifications come: the token in the header `X-Notification-Token`, every answer but 200 taken for a refusal, two more tries with a pause of `--notify-retry` and then none (a sibling service documents it so; of this one nothing is shown)",
        "как приходят уведомления: токен в заголовке `X-Notification-Token`, любой ответ, кроме 200, считается отказом, ещё две попытки с паузой `--notify-retry` и больше ни одной (так описан родственный сервис; об этом ничего не сказано)",
    ],
    [
        "a Redirect invoice is told of as the create answered it: with the same fewer fields, in status checks and notifications too",
        "о заявке Redirect сообщается так же, как при создании: с тем же неполным набором полей, и при проверке статуса, и в уведомлениях",
    ],
    [
        "requisites: as many of each method as `--pool` says, each for one open invoice of an amount at a time; the banks, people, phones and cards, `paymentOption`, and the fields for TO_CARD",
        "реквизиты: каждого способа столько, сколько задано `--pool`, каждый на одну открытую заявку одной суммы; банки, люди, телефоны и карты, `paymentOption` и поля для TO_CARD",
    ],
    [
        "a Redirect invoice is opened whatever is occupied: its customer chooses the method on the page, and takes a requisite only then, or is told that none is free",
        "заявка Redirect открывается всегда: покупатель выбирает способ на странице и только тогда занимает реквизит или узнаёт, что свободных нет",
    ],
    [
        "`dealRate` is 1, and the amount that is paid is the amount that is reported",
        "`dealRate` равен 1, сообщается та сумма, которая уплачена",
    ],
    [
        "for how long an invoice can be paid (`--window`), and that it can be paid late, from its page, by a customer who was told in time where to pay",
        "сколько времени заявку можно оплатить (`--window`) и что с её страницы можно оплатить и с опозданием, если покупатель вовремя узнал, куда платить",
    ],
    [
        "all error answers but `authorization_pending` and the 503 for want of requisites: `slow_down`, `expired_token` and `access_denied` are those of RFC 8628, every other text and status (400, 401, 403, 404, 405, 408, 413, 415, 421, 429) is its own",
        "все ответы об ошибках, кроме `authorization_pending` и 503 об отсутствии реквизитов: `slow_down`, `expired_token` и `access_denied` взяты из RFC 8628, прочие тексты и коды (400, 401, 403, 404, 405, 408, 413, 415, 421, 429) свои",
    ],
    [
        "its strictness: which fields are required and how long they may be; one JSON object without a byte-order mark or doubled names; `Content-Type: application/json` on each; no Authorization header on the two login endpoints, and never two",
        "строгость: какие поля обязательны и какой длины; один объект JSON без метки порядка байтов и повторённых имён; `Content-Type: application/json` у каждого; никакого Authorization у двух методов входа, и никогда двух",
    ],
    [
        "its spelling, unless `--plain`: ids of any form, fields in any order, unknown ones, some that no client needs absent or null, amounts with more or fewer zeros, times with more or fewer digits",
        "написание, если не задано `--plain`: id любого вида, поля в любом порядке, незнакомые поля, ненужные клиенту отсутствуют или null, у сумм больше или меньше нулей, у времени больше или меньше цифр",
    ],
    [
        "access tokens begin with `sandbox-tilld-`, and notifications go to this machine alone",
        "токены доступа начинаются с `sandbox-tilld-`, уведомления уходят только на эту машину",
    ],
    [
        "the look of the cabinet and the payment pages, and the three shops",
        "вид кабинета и платёжных страниц и три магазина",
    ],
];

/// What stands above the list.
pub(crate) const ABOVE: Invention = [
    "The sandbox's own inventions, where the service's documentation shows nothing; the service may do otherwise:",
    "Придумано песочницей там, где документация сервиса ничего не говорит; сервис может вести себя иначе:",
];

/// The list as a text, in English, an invention a line.
pub(crate) fn text() -> String {
    let mut text = ABOVE[0].to_owned();
    for [english, _] in INVENTIONS {
        text.push_str("\n- ");
        text.push_str(english);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_said_in_both_languages() {
        for [english, russian] in INVENTIONS {
            assert!(english.is_ascii(), "{english}");
            assert!(!russian.is_ascii(), "{russian}");
            assert!(text().contains(english));
            let names = |text: &str| text.split('`').skip(1).step_by(2).count();
            assert_eq!(names(english), names(russian), "{english}");
        }
    }
}
