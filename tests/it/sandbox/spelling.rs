//! How answers are spelt: to the letter of the contract with `--plain`, and otherwise with all the freedom it leaves. tilld
//! works with both, for it relies on nothing that nobody promised.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Started, TOKEN};
use crate::harness::{PATIENCE, Service, Setup, segment, wait_for, wait_until};

/// The invoice object of contract 2.3 without requisites: its Redirect subset, but for `paymentUrl`.
const BOTH: [&str; 10] = [
    "id",
    "direction",
    "status",
    "amount",
    "currency",
    "dealRate",
    "createdAt",
    "updatedAt",
    "internalId",
    "merchantName",
];
/// What H2H has beside it.
const H2H: [&str; 5] = [
    "paymentMethod",
    "paymentOption",
    "expireAt",
    "requisiteId",
    "dealRequisites",
];
/// What tilld or a shop could need of an H2H object: without these it would be no answer.
const NEEDED: [&str; 9] = [
    "id",
    "direction",
    "status",
    "amount",
    "currency",
    "updatedAt",
    "internalId",
    "expireAt",
    "dealRequisites",
];

/// The names of an object in the order they are written in. No value of ours has a quote before a colon but
/// `dealRequisites`, which is a text and escapes its quotes.
fn names(text: &str) -> Vec<String> {
    let object: Value = serde_json::from_str(text).expect("JSON");
    let object = object.as_object().expect("an object");
    let mut names: Vec<String> = object.keys().cloned().collect();
    names.sort_by_key(|name| text.find(&format!("\"{name}\":")));
    names
}

/// The texts of creating, of asking for and of being told of one invoice, several times.
fn texts(flags: &[&str], more: &Value) -> Vec<String> {
    let shop = Service::start(|_heard| (200, String::new()));
    let sandbox = Started::new(flags);
    let bearer = sandbox.bearer();
    let created = sandbox.create(&bearer, &format!("{}/n", shop.url()), more);
    assert_eq!(created.status, 201, "{created:?}");
    let id = created
        .json()
        .get("id")
        .and_then(Value::as_str)
        .expect("an id")
        .to_owned();
    let mut texts = vec![created.body];
    for _ in 0..10 {
        let path = format!("/api/v1/invoices/{}", segment(&id));
        let fetched = sandbox.ask("GET", &path, &[("Authorization", &bearer)], "");
        assert_eq!(fetched.status, 200, "{fetched:?}");
        texts.push(fetched.body);
        sandbox.control("POST", "/invoices/1042/notify", &json!({}));
    }
    let heard = shop.heard();
    assert_eq!(heard.len(), 10);
    for told in heard {
        assert!(
            told.headers
                .to_ascii_lowercase()
                .contains(&format!("x-notification-token: {TOKEN}"))
        );
        texts.push(told.body);
    }
    sandbox.ends();
    texts
}

fn all_of(names: &[&[&str]]) -> BTreeSet<String> {
    names.concat().into_iter().map(str::to_owned).collect()
}

/// The three addresses that make it a Redirect invoice.
fn back() -> Value {
    json!({ "successUrl": "https://shop.example/1", "cancelUrl": "https://shop.example/2",
            "errorUrl": "https://shop.example/3" })
}

#[test]
fn plain_answers_are_the_contracts_to_the_letter() {
    for (more, wanted) in [
        (json!({}), all_of(&[&BOTH, &H2H])),
        (back(), all_of(&[&BOTH, &["paymentUrl"]])),
    ] {
        let texts = texts(&["--plain"], &more);
        let order = names(texts.first().expect("a text"));
        for text in &texts {
            assert_eq!(names(text), order, "one order: {text}");
            assert_eq!(names(text).into_iter().collect::<BTreeSet<_>>(), wanted);
            let object: Value = serde_json::from_str(text).expect("JSON");
            let object = object.as_object().expect("an object");
            // All values are strings (2.3), the amount too, although it is sent as a number.
            assert!(object.values().all(Value::is_string), "{text}");
            let Some(requisites) = object.get("dealRequisites").and_then(Value::as_str) else {
                continue;
            };
            let requisites = names(requisites).into_iter().collect::<BTreeSet<_>>();
            assert_eq!(
                requisites,
                all_of(&[&["bankName", "phoneNumber", "fullName"]])
            );
        }
    }
}

#[test]
fn otherwise_order_fields_and_company_vary_and_nothing_needed_is_missing() {
    let texts = texts(&["--seed=3"], &json!({}));
    let known = all_of(&[&BOTH, &H2H]);
    let (mut first, mut unknown, mut absent) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for text in &texts {
        let names = names(text);
        first.extend(names.first().cloned());
        let names: BTreeSet<String> = names.into_iter().collect();
        assert!(all_of(&[&NEEDED]).is_subset(&names), "{text}");
        unknown.extend(names.difference(&known).cloned());
        absent.extend(known.difference(&names).cloned());
    }
    assert!(first.len() > 3, "{first:?}");
    assert!(unknown.len() > 1, "{unknown:?}");
    assert!(absent.len() > 3, "{absent:?}");
}

/// Orders paid by a notification, and by a poll when it is lost, in both modes.
#[track_caller]
fn tilld_works_with(flags: &[&str]) {
    let world = Setup::new()
        .sandbox(flags)
        .noting_hook("fulfil", &["paid"])
        .start();
    let redirect = [
        "--redirect",
        "--success-url=https://shop.example/1",
        "--cancel-url=https://shop.example/2",
        "--error-url=https://shop.example/3",
    ];
    for number in 0..4 {
        let (told, asked) = (format!("told-{number}"), format!("asked-{number}"));
        world.open(&told, "150.00", &[]).ends_with(0);
        world.open(&asked, "150.00", &redirect).ends_with(0);
        for (order, found_by) in [(&told, "notification"), (&asked, "poll")] {
            if order == &asked {
                world.faults(&json!({ "lose": 1, "invoice": asked }));
            }
            let issued = world.issued(order).expect("the service has it");
            world.happens(&issued, &json!({ "status": "paid" }));
            wait_until(PATIENCE, "the order to be paid", || {
                world.invoice(order, "outcome") == "paid"
            });
            assert_eq!(world.invoice(order, "found_by"), found_by, "{order}");
        }
    }
    world.settle();
    let lines = wait_for(PATIENCE, "the hook's notes", || {
        let lines = world.hook_log("fulfil");
        (lines.len() == 8).then_some(lines)
    });
    assert!(
        lines.iter().all(|line| line.contains(" paid ")),
        "{lines:?}"
    );
}

#[test]
fn tilld_works_with_plain_answers() {
    tilld_works_with(&["--plain"]);
}

#[test]
fn tilld_works_with_answers_of_any_spelling() {
    tilld_works_with(&[]);
}
