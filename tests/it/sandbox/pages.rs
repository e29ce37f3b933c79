//! The pages as a browser asks for them: in the language it likes, and by the forms it posts.

use serde_json::{Value, json};

use super::{FORM, Started};
use crate::harness::{PATIENCE, Service, wait_for};

/// Every page, with an invoice of order 1042.
fn pages(sandbox: &Started) -> Vec<String> {
    let page = sandbox.invoice("/page");
    let (_, opaque) = page
        .as_str()
        .and_then(|page| page.rsplit_once('/'))
        .expect("a page");
    let own = [
        format!("/pay/{opaque}"),
        format!("/cabinet/invoices/{opaque}"),
    ];
    let fixed = ["/", "/activate", "/cabinet", "/cabinet/faults"].map(str::to_owned);
    fixed.into_iter().chain(own).collect()
}

#[test]
fn every_page_speaks_the_browsers_language() {
    let sandbox = Started::new(&[]);
    let url = "http://127.0.0.1:9/n";
    assert_eq!(
        sandbox.create(&sandbox.bearer(), url, &json!({})).status,
        201
    );
    // Letters of the alphabet that stand in a page beside the names of shops and people, which are Russian on purpose.
    let russian = |text: &str| text.chars().filter(|c| ('а'..='я').contains(c)).count();
    for page in pages(&sandbox) {
        let asked = |languages: &str| {
            let answer = sandbox.ask("GET", &page, &[("Accept-Language", languages)], "");
            assert_eq!(answer.status, 200, "{page}");
            answer.body
        };
        let ru = asked("ru-RU,ru;q=0.9,en-US;q=0.8,en;q=0.7");
        let en = asked("en-US,en;q=0.9,ru;q=0.8");
        assert!(ru.contains("<html lang=\"ru\""), "{page}");
        assert!(en.contains("<html lang=\"en\""), "{page}");
        assert!(russian(&ru) > russian(&en) + 100, "{page}: {ru}");
        assert!(
            ru.contains("песочниц") && en.contains("sandbox"),
            "{page}: {ru}"
        );
        // Neither of the two: English.
        assert!(
            asked("de, fr;q=0.5").contains("<html lang=\"en\""),
            "{page}"
        );
    }
    sandbox.ends();
}

/// A form's post, as a browser encodes it, does what it says, to the order it names and no other.
#[test]
fn the_form_of_faults_loses_the_notifications_of_one_order() {
    let shop = Service::start(|_heard| (200, String::new()));
    let sandbox = Started::new(&[]);
    let (bearer, url) = (sandbox.bearer(), format!("{}/n", shop.url()));
    for order in ["Заказ № 1", "1043"] {
        let more = json!({ "internalId": order });
        assert_eq!(sandbox.create(&bearer, &url, &more).status, 201, "{order}");
    }
    let page = "/cabinet/faults";
    let fields =
        "invoice=%D0%97%D0%B0%D0%BA%D0%B0%D0%B7+%E2%84%96+1&what=lose&times=true&act=count";
    assert_eq!(sandbox.press(page, fields).status, 303);
    let set = sandbox.control("GET", "/state", &json!({}));
    let own = set.pointer("/faults/own/Заказ № 1/lose");
    assert_eq!(own, Some(&json!(true)), "{set}");
    let shown = sandbox.ask("GET", page, &[], "").body;
    assert!(shown.contains("Заказ № 1"), "{shown}");
    for (order, wanted) in [
        (
            "%D0%97%D0%B0%D0%BA%D0%B0%D0%B7%20%E2%84%96%201",
            json!("lost on purpose"),
        ),
        ("1043", json!(200)),
    ] {
        let path = format!("/invoices/{order}/status");
        sandbox.control("POST", &path, &json!({ "status": "paid" }));
        let answer = wait_for(PATIENCE, "an attempt", || {
            let state = sandbox.control("GET", "/state", &json!({}));
            let number = usize::from(order == "1043");
            state
                .pointer(&format!("/invoices/{number}/attempts/0/answer"))
                .cloned()
        });
        assert_eq!(answer, wanted, "{order}");
    }
    assert_eq!(shop.heard().len(), 1);
    // What was set is taken off by the page's own button.
    assert_eq!(sandbox.press(page, "act=reset").status, 303);
    let set = sandbox.control("GET", "/state", &json!({}));
    assert_eq!(set.pointer("/faults/own"), Some(&json!({})), "{set}");
    sandbox.ends();
}

/// What a foreign page could post in the browser of somebody who runs a sandbox changes nothing.
#[test]
fn a_form_of_another_page_changes_nothing() {
    let sandbox = Started::new(&[]);
    let fields = "what=lose&times=true&act=count";
    let own = format!("http://{}", sandbox.at("service"));
    for (origin, token) in [
        ("http://shop.example", "guessed"),
        (own.as_str(), "guessed"),
    ] {
        let body = format!("form_token={token}&{fields}");
        let headers = [FORM, ("Origin", origin)];
        let answer = sandbox.ask("POST", "/cabinet/faults", &headers, &body);
        assert_eq!(answer.status, 403, "{answer:?}");
    }
    let set = sandbox.control("GET", "/state", &Value::Null);
    assert_eq!(set.pointer("/faults/lose"), Some(&json!(false)), "{set}");
    sandbox.ends();
}
