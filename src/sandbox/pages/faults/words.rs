//! The words of `POST /faults` as a person reads them, in English and Russian.

use super::super::frame::Look;

/// A word, and what it says in both languages.
pub(super) type Choice = (&'static str, &'static str, &'static str);

/// A setting: its word, its label in both languages, and what is said of it where it is set, `#` being its value.
pub(super) type Said = (&'static str, [&'static str; 2], [&'static str; 2]);

/// Every setting.
pub(super) const SAID: [Said; 8] = [
    (
        "presentation",
        ["Where the token stands", "Где стоит токен"],
        ["the token stands as #", "токен стоит как #"],
    ),
    (
        "delay_ms",
        ["Delay before each, ms", "Задержка перед каждым, мс"],
        ["each delayed by # ms", "каждое с задержкой # мс"],
    ),
    (
        "give_up_ms",
        [
            "The sender gives up after, ms (0: as usual)",
            "Отправитель ждёт ответа, мс (0: как обычно)",
        ],
        [
            "the sender gives up after # ms",
            "отправитель ждёт ответа # мс",
        ],
    ),
    (
        "copies",
        [
            "Extra copies when sent more than once",
            "Лишних копий при отправке не один раз",
        ],
        [
            "extra copies when sent more than once: #",
            "лишних копий при отправке не один раз: #",
        ],
    ),
    (
        "reorder",
        [
            "out of order: each after the next one",
            "не по порядку: каждое после следующего",
        ],
        [
            "out of order: each after the next one",
            "не по порядку: каждое после следующего",
        ],
    ),
    (
        "hold_create_ms",
        [
            "Delay of the answer, with a notification before it, ms",
            "Задержка ответа, уведомление уходит раньше, мс",
        ],
        [
            "answered # ms late, after a notification",
            "ответ с задержкой # мс, после уведомления",
        ],
    ),
    (
        "clock_skew_ms",
        ["updatedAt is off by, ms", "updatedAt сдвинут на, мс"],
        ["updatedAt is off by # ms", "updatedAt сдвинут на # мс"],
    ),
    (
        "same_instant",
        [
            "updatedAt stays when the status changes",
            "updatedAt не меняется при смене статуса",
        ],
        [
            "updatedAt stays when the status changes",
            "updatedAt не меняется при смене статуса",
        ],
    ),
];

/// What a person reads on the page where this word is set, if it is a word of the page.
pub(super) fn label(word: &str, look: &Look<'_>) -> Option<&'static str> {
    let field = match word {
        "free" => Some(look.t("Free requisites", "Свободные реквизиты")),
        "percent" | "rates" => Some(look.t("of a hundred", "из ста")),
        "invoice" => Some(look.t("Order or invoice", "Заказ или заявка")),
        _ => None,
    };
    let setting = SAID.iter().find(|(known, ..)| *known == word);
    let setting = setting.map(|(_, [en, ru], _)| look.t(en, ru));
    field
        .or(setting)
        .or_else(|| found(&CHANCES, word, look))
        .or_else(|| found(&OF_NOTIFICATIONS, word, look))
        .or_else(|| found(&OF_OPENING, word, look))
}

/// A choice's text, by its word.
pub(super) fn found(choices: &[Choice], word: &str, look: &Look<'_>) -> Option<&'static str> {
    let choice = choices.iter().find(|(known, ..)| *known == word);
    choice.map(|(_, en, ru)| look.t(en, ru))
}

/// Faults of notifications that are counted.
pub(super) const OF_NOTIFICATIONS: [Choice; 6] = [
    ("lose", "never sent", "не отправлять"),
    ("repeat", "sent more than once", "отправить не один раз"),
    ("wrong_token", "with a wrong token", "с чужим токеном"),
    ("missing_token", "without a token", "без токена"),
    ("torn", "cut off in its middle", "оборвать посередине"),
    ("slow", "in slow pieces", "медленно, по частям"),
];
/// Faults of opening an invoice that are counted.
pub(super) const OF_OPENING: [Choice; 2] = [
    (
        "no_requisites",
        "no requisites are free",
        "нет свободных реквизитов",
    ),
    (
        "drop_create_answer",
        "the invoice is made, the answer is lost",
        "создать заявку, но потерять ответ",
    ),
];
/// What an endpoint answers instead. A number is an HTTP status.
pub(super) const ANSWERS: [Choice; 11] = [
    ("401", "401: the token is refused", "401: токен отвергнут"),
    ("403", "403", "403"),
    ("404", "404", "404"),
    ("429", "429, try again later", "429: повторить позже"),
    ("500", "500", "500"),
    ("503", "503, an outage", "503: авария"),
    ("html", "a proxy's HTML page", "HTML-страница прокси"),
    ("redirect", "a redirect", "перенаправление"),
    ("hang", "nothing, it hangs", "ничего, зависает"),
    (
        "cut",
        "nothing, the connection closes",
        "ничего, соединение закрывается",
    ),
    (
        "drop_answer",
        "the request is done, the connection closes",
        "запрос выполняется, соединение закрывается",
    ),
];
/// How often.
pub(super) const TIMES: [Choice; 4] = [
    ("1", "once", "один раз"),
    ("3", "three times", "три раза"),
    ("true", "always", "всегда"),
    ("false", "never (take it off)", "ни разу (снять)"),
];
/// What may happen by chance.
pub(super) const CHANCES: [Choice; 14] = [
    ("lose", "never sent", "не отправлять"),
    ("repeat", "sent twice", "отправить дважды"),
    ("late", "sent late", "отправить поздно"),
    ("reorder", "after the next one", "после следующего"),
    ("wrong_token", "with a wrong token", "с чужим токеном"),
    ("missing_token", "without a token", "без токена"),
    ("torn", "cut off in its middle", "оборвать посередине"),
    ("slow", "in slow pieces", "медленно, по частям"),
    ("presentation", "token elsewhere", "токен в другом месте"),
    ("give_up", "given up after 3 s", "ждать ответа лишь 3 с"),
    ("api", "any endpoint fails", "сбой любого метода"),
    ("no_requisites", "no requisites free", "нет реквизитов"),
    ("clock_skew", "the clock is off", "часы сбились"),
    ("same_instant", "updatedAt stays", "updatedAt не меняется"),
];

/// A fault that was done to a notification, as the book has it: a word of `POST /faults`, for some with a number.
pub(in super::super) fn done(fault: &str, look: &Look<'_>) -> String {
    let (word, number) = fault.split_once(' ').unwrap_or((fault, ""));
    let text = match word {
        "lose" => look.t("never sent", "не отправлено"),
        "reorder" => look.t("after the next one", "после следующего"),
        "delay_ms" => look.t("late by # ms", "позже на # мс"),
        "copies" => look.t("with # more at once", "и ещё # одновременно"),
        "wrong_token" => look.t("with a wrong token", "с чужим токеном"),
        "missing_token" => look.t("without a token", "без токена"),
        "torn" => look.t("cut off in its middle", "оборвано посередине"),
        "slow" => look.t("in slow pieces", "медленно, по частям"),
        "give_up_ms" => look.t("given up after # ms", "ожидание ответа # мс"),
        "clock_skew_ms" => look.t("updatedAt off by # ms", "updatedAt сдвинут на # мс"),
        "same_instant" => look.t("updatedAt left as it was", "updatedAt не изменён"),
        other => other,
    };
    text.replace('#', number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::pages::lang::Lang;
    use crate::sandbox::state::faults::{Chance, Flow, Presentation, Token, Treatment};

    #[test]
    fn every_chance_has_its_words() {
        for chance in Chance::ALL {
            let word = chance.word();
            assert!(CHANCES.iter().any(|(known, ..)| *known == word), "{word}");
        }
        assert_eq!(CHANCES.len(), Chance::ALL.len());
    }

    #[test]
    fn what_was_done_to_a_notification_is_told_in_russian_too() {
        let treatment = |token, flow| Treatment {
            lost: true,
            copies: 3,
            token,
            flow,
            delay_ms: 7,
            give_up_ms: Some(3_000),
            presentation: Presentation::default(),
            reordered: true,
        };
        for treated in [
            treatment(Token::Wrong, Flow::Torn),
            treatment(Token::Missing, Flow::Slow),
        ] {
            let faults = treated.sent(1).faults;
            assert_eq!(faults.len(), 7, "{faults:?}");
            for fault in faults {
                let look = Look {
                    lang: Lang::Ru,
                    token: "",
                    now: 0,
                };
                let told = done(&fault, &look);
                assert!(!told.contains(['#', '_']) && told != fault, "{told}");
            }
        }
        let look = Look {
            lang: Lang::En,
            token: "",
            now: 0,
        };
        assert_eq!(done("delay_ms 250", &look), "late by 250 ms");
    }
}
