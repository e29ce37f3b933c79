//! The pages about the first payment: both languages show the same lines, and the sandbox's pages have the buttons and links
//! that they name, in the order in which they are pressed.

use serde_json::Value;

use super::page;
use crate::harness::{Answer, Setup, World, request_to};
use crate::sandbox::press;

/// A page, the language a browser asks for, and the names it gives to links and buttons, in their order.
const PAGES: [(&str, &str, [&str; 4]); 3] = [
    (
        "docs/first-payment.md",
        "en",
        [
            "The codes are the same: confirm",
            "A-1",
            "Play the customer",
            "Paid",
        ],
    ),
    (
        "docs/first-payment.ru.md",
        "ru",
        [
            "Коды совпадают: подтвердить",
            "A-1",
            "Сыграть за покупателя",
            "Оплачено",
        ],
    ),
    ("README.md", "en", ["", "", "Play the customer", "Paid"]),
];

/// The blocks of a page without the marks behind their language.
fn blocks(text: &str) -> Vec<(&str, &str)> {
    let parts = text.split("```").skip(1).step_by(2);
    parts
        .map(|block| {
            let (head, lines) = block.split_once('\n').expect("a block has lines");
            (head.split(' ').next().unwrap_or_default(), lines)
        })
        .collect()
}

#[test]
fn the_russian_page_shows_the_lines_of_the_english_one() {
    let [english, russian] = ["docs/first-payment.md", "docs/first-payment.ru.md"].map(page);
    assert!(blocks(&english).len() > 5, "blocks were found");
    assert_eq!(blocks(&russian), blocks(&english));
}

fn get(world: &World, path: &str, language: &str) -> Answer {
    let service = world.address("service");
    let headers = [("Accept-Language", language)];
    let answer = request_to(&service.to_string(), service, "GET", path, &headers, "");
    assert_eq!(answer.status, 200, "{path}");
    answer
}

/// Where the link with this text leads.
#[track_caller]
fn link(shown: &Answer, text: &str) -> String {
    let mut links = shown.body.split("href=\"").skip(1);
    let found = links.find_map(|rest| {
        let (target, rest) = rest.split_once('"')?;
        let (_, label) = rest.split_once('>')?;
        label
            .starts_with(&format!("{text}</a>"))
            .then(|| target.to_owned())
    });
    found.unwrap_or_else(|| panic!("no link `{text}`: {}", shown.body))
}

/// The name and the value of the button with this text, as a form posts them.
#[track_caller]
fn button(shown: &Answer, text: &str) -> String {
    let mut buttons = shown.body.split("<button ").skip(1);
    let found = buttons.find_map(|rest| {
        let (tag, rest) = rest.split_once('>')?;
        let value = |name: &str| tag.split_once(&format!("{name}=\""))?.1.split('"').next();
        rest.starts_with(&format!("{text}</button>"))
            .then(|| Some(format!("{}={}", value("name")?, value("value")?)))?
    });
    found.unwrap_or_else(|| panic!("no button `{text}`: {}", shown.body))
}

#[test]
fn the_buttons_that_the_pages_name_pay_an_invoice() {
    for (path, language, [confirm, order, play, paid]) in PAGES {
        let text = page(path);
        for name in [confirm, order, play, paid] {
            assert!(
                name.is_empty() || text.contains(&format!("*{name}*")),
                "{path}: {name}"
            );
        }
        assert!(text.contains("<http://127.0.0.1:8490/cabinet>"), "{path}");
        let world = Setup::new().quiet().start();
        if !confirm.is_empty() {
            let begun = world.tilld(&["login", "--start", "--json"]).ends_with(0);
            let begun = begun.json();
            let code = begun.get("user_code").and_then(Value::as_str);
            let at = format!("/activate?code={}", code.expect("a code"));
            let pressed = button(&get(&world, &at, language), confirm);
            assert_eq!(pressed, "decision=confirm");
        }
        world.open("A-1", "150.00", &[]).ends_with(0);
        let invoice = link(&get(&world, "/cabinet", language), "A-1");
        let payment = link(&get(&world, &invoice, language), play);
        let pressed = button(&get(&world, &payment, language), paid);
        let answer = press(world.address("service"), &payment, &pressed);
        assert_eq!(answer.status, 303, "{answer:?}");
        world.tilld(&["invoice", "wait", "A-1"]).ends_with(0);
    }
}
