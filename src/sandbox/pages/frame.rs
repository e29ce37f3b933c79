//! What every page stands in: the head, the ways to the other pages, and the word that this is a sandbox. No script; style
//! from this address alone.

use hyper::StatusCode;
use hyper::header::{
    CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
    HeaderValue, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use maud::{DOCTYPE, Markup, html};

use super::lang::Lang;
use crate::http::{self, Response};
use crate::invoice::moment::Moment;

const STYLE: &str = include_str!("style.css");

/// How a page is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look<'w> {
    /// The language.
    pub(super) lang: Lang,
    /// What every form carries.
    pub(super) token: &'w str,
    /// The present time, ms.
    pub(super) now: i64,
}

impl Look<'_> {
    /// The text in the page's language.
    pub(super) fn t(&self, en: &'static str, ru: &'static str) -> &'static str {
        self.lang.t(en, ru)
    }

    /// The hidden field of every form.
    pub(super) fn form_token(&self) -> Markup {
        html! { input type="hidden" name="form_token" value=(self.token); }
    }

    /// How much time is left until an instant, in words.
    pub(super) fn left(&self, until_ms: i64) -> String {
        let left_ms = until_ms.saturating_sub(self.now).max(0);
        self.lasting(u64::try_from(left_ms).unwrap_or(0) / 1_000)
    }

    /// How long something lasts, in words.
    pub(super) fn lasting(&self, seconds: u64) -> String {
        let (h, m, s) = (self.t("h", "ч"), self.t("min", "мин"), self.t("s", "с"));
        let (large, small, less) = match seconds {
            0..60 => return format!("{seconds} {s}"),
            60..3_600 => (format!("{} {m}", seconds / 60), seconds % 60, s),
            _ => (format!("{} {h}", seconds / 3_600), seconds % 3_600 / 60, m),
        };
        if small == 0 {
            return large;
        }
        format!("{large} {small:02} {less}")
    }

    /// A page. `here` is the address whose link is shown as the present one.
    pub(super) fn page(&self, here: &str, title: &str, content: &Markup) -> Markup {
        let ways = [
            ("/", self.t("Overview", "Обзор")),
            ("/activate", self.t("Login", "Вход")),
            ("/cabinet", self.t("Cabinet", "Кабинет")),
            ("/cabinet/faults", self.t("Faults", "Сбои")),
        ];
        html! {
            (DOCTYPE)
            html lang=(self.lang.code()) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (title) " · tilld sandbox" }
                    link rel="stylesheet" href="/style.css";
                    link rel="icon" href="data:,";
                }
                body {
                    a.skip href="#main" { (self.t("To the content", "К содержанию")) }
                    header {
                        strong { "tilld sandbox" }
                        nav aria-label=(self.t("Pages", "Страницы")) {
                            @for (address, name) in ways {
                                a href=(address) aria-current=[(address == here).then_some("page")] { (name) }
                            }
                        }
                    }
                    aside.sandbox aria-label=(self.t("What this is", "Что это")) {
                        (self.t(
                            "This is a sandbox: an imitation of the payment service on this machine, kept in memory only. No money moves here. Of the status names only ",
                            "Это песочница: имитация платёжного сервиса на этом компьютере, только в памяти. Деньги здесь не движутся. Из названий статусов лишь ",
                        ))
                        code { "new" }
                        (self.t(
                            " is the service's own; all the others are this sandbox's invention.",
                            " принадлежит самому сервису, остальные придуманы песочницей.",
                        ))
                    }
                    main #main { (content) }
                }
            }
        }
    }

    /// A page that says one thing. `back` is where whoever reads it came from, if there is such a page.
    pub(super) fn message(&self, status: StatusCode, text: &str, back: Option<&str>) -> Response {
        let content = html! {
            h1 { (text) }
            p {
                @match back {
                    Some(back) => a.button.main href=(back) { (self.t("Go back", "Вернуться")) },
                    None => a href="/" { (self.t("To the overview", "К обзору")) },
                }
            }
        };
        self.respond(status, self.page("", text, &content))
    }

    /// The answer with a page.
    pub(super) fn respond(&self, status: StatusCode, page: Markup) -> Response {
        // `no-referrer` would make browsers send `Origin: null` with the page's own forms.
        let headers: [(HeaderName, &'static str); 6] = [
            (
                CONTENT_SECURITY_POLICY,
                "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
            ),
            (CACHE_CONTROL, "no-store"),
            (REFERRER_POLICY, "same-origin"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (CONTENT_LANGUAGE, self.lang.code()),
            (VARY, "accept-language"),
        ];
        let mut response = http::html(status, page.into_string());
        for (name, value) in headers {
            response
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// The style of all pages.
pub(super) fn stylesheet() -> Response {
    let mut response = http::plain(StatusCode::OK, STYLE);
    let kind = HeaderValue::from_static("text/css; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// An instant as the pages show it: by the second, in UTC. Where there is no room it breaks between day and time alone.
pub(super) fn instant(ms: i64) -> Markup {
    let exact = Moment::from_ms(ms).to_string();
    let shown = exact.get(..19).unwrap_or(&exact);
    let (day, time) = shown.split_once('T').unwrap_or((shown, ""));
    html! { time datetime=(exact) { span { (day) } " " span { (time) " UTC" } } }
}

/// A list as a table, or what is said where it is empty. Where the page is narrow each row stands by itself and its cells
/// below each other: then the style puts the heads in front of all but the first, from their `data-head`.
pub(super) fn table<const N: usize>(
    name: &str,
    heads: [&str; N],
    rows: impl IntoIterator<Item = [Markup; N]>,
    none: &Markup,
) -> Markup {
    let mut rows = rows.into_iter().peekable();
    html! {
        @if rows.peek().is_none() {
            p.quiet { (none) }
        } @else {
            table aria-label=(name) {
                thead { tr { @for head in heads { th scope="col" { (head) } } } }
                tbody { @for cells in rows { tr {
                    @for (at, (head, cell)) in heads.iter().zip(cells).enumerate() {
                        td data-head=[(at > 0).then_some(head)] { (cell) }
                    }
                } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_told_in_words() {
        let look = |lang| Look {
            lang,
            token: "",
            now: 1_000,
        };
        for (until, en, ru) in [
            (0, "0 s", "0 с"),
            (60_999, "59 s", "59 с"),
            (91_000, "1 min 30 s", "1 мин 30 с"),
            (1_801_000, "30 min", "30 мин"),
            (7_261_000, "2 h 01 min", "2 ч 01 мин"),
        ] {
            assert_eq!(look(Lang::En).left(until), en);
            assert_eq!(look(Lang::Ru).left(until), ru);
        }
    }
}
