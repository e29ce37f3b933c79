//! Secrets that others write down: a notification, an answer of the service, a header, a path (A21). Whatever a sender makes of
//! them is cut out whole before anything is shortened, kept or told; each search is tried on a place where the text is.

use std::fs;

use base64::{Engine as _, engine::general_purpose};
use serde_json::{Value, json};

use crate::harness::{Issued, PATIENCE, Setup, World, access_token, holding, request, wait_until};

/// What is searched for in vain: long enough to be no chance.
fn nowhere(world: &World, needle: &str) {
    let found = holding(world.dir(), needle, &["/secret/"]);
    assert!(found.is_empty(), "`{needle}` in {found:?}");
}

fn access(world: &World) -> String {
    let file = world.state_dir().join("secret/credentials");
    access_token(&fs::read_to_string(file).expect("a login"))
}

fn hex(text: &str) -> String {
    let spell = |digits: String, byte| digits + &format!("{byte:02x}");
    text.bytes().fold(String::new(), spell)
}

fn percent(text: &str) -> String {
    let spell = |text: String, byte| text + &format!("%{byte:02X}");
    text.bytes().fold(String::new(), spell)
}

/// A secret as JSON, addresses, pages and dumps spell it.
fn forms(secret: &str) -> Vec<String> {
    let every_other = secret.bytes().enumerate().map(|(at, byte)| match at % 2 {
        0 => format!("%{byte:02x}"),
        _ => char::from(byte).to_string(),
    });
    vec![
        secret.to_owned(),
        percent(secret),
        percent(secret).to_lowercase(),
        every_other.collect(),
        hex(secret),
        hex(secret).to_uppercase(),
        general_purpose::STANDARD.encode(format!("u:{secret}")),
        percent(&general_purpose::STANDARD.encode(secret)),
        secret
            .bytes()
            .fold(String::new(), |text, byte| text + &format!("&#{byte};")),
    ]
}

/// An authentic notification with these fields, as of a microsecond of its own.
fn tell(world: &World, issued: &Issued, number: usize, fields: &Value) {
    let mut fields = fields.clone();
    if let Some(own) = fields.as_object_mut() {
        own.insert("updatedAt".to_owned(), issued.at_us(number).into());
    }
    let body = issued.with(&fields).to_string();
    assert_eq!(world.tell(issued, &body).status, 200, "{body}");
}

#[test]
fn no_spelling_of_a_secret_in_an_authentic_notification_is_kept() {
    let world = Setup::new()
        .set("log_level", "\"trace\"")
        .quiet()
        .hook("told", &["*"], "cat >> \"$1\"")
        .start();
    let issued = world.create("A-1");
    let secrets = [issued.token.clone(), access(&world)];
    let mut number = 0;
    for form in secrets.iter().flat_map(|secret| forms(secret)) {
        number += 1;
        let fields = json!({
            "status": format!("waiting-{number}"),
            "extra": form,
            "paymentUrl": format!("https://pay.example/?t={form}"),
            // Cut after they were shortened, the first sixteen letters of these would stay.
            "paymentMethod": format!("{form}{form}"),
            "direction": format!("{form}{form}"),
        });
        tell(&world, &issued, number, &fields);
    }
    world.settle();
    let cut = "SELECT count(*) FROM event WHERE raw LIKE '%[cut]%'";
    assert_eq!(
        world.value(cut),
        number.to_string(),
        "{:?}",
        world.sql("SELECT * FROM event")
    );
    assert!(world.hook_log("told").len() > number);
    // Another currency is doubted, and no event: it is kept all the same.
    for form in secrets.iter().flat_map(|secret| forms(secret)) {
        number += 1;
        tell(
            &world,
            &issued,
            number,
            &json!({ "currency": format!("{form}{form}") }),
        );
    }
    for secret in &secrets {
        for form in forms(secret) {
            // The second twelve of it, as what stands at a seam is a neighbour's too.
            let core: String = form.chars().skip(12).take(12).collect();
            nowhere(&world, &core);
            nowhere(&world, &form.chars().take(16).collect::<String>());
        }
    }
    assert!(!holding(&world.state_dir(), &issued.id, &[]).is_empty());
}

#[test]
fn a_status_a_header_and_a_path_show_no_secret() {
    let world = Setup::new().set("log_level", "\"trace\"").quiet().start();
    let issued = world.create("A-1");
    let (notify, access) = (issued.token.clone(), access(&world));
    tell(
        &world,
        &issued,
        1,
        &json!({ "status": format!("no {access}") }),
    );
    let kept = world.value("SELECT status FROM invoice");
    assert_eq!(kept, "no [cut]");

    let body = issued.saying("paid", &issued.at(1));
    let headers = [
        (format!("X-{notify}"), "1"),
        (hex(&notify), "1"),
        (access.replace(':', "%3A"), "1"),
    ];
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    assert_eq!(world.notify(&issued.reference, &headers, &body).status, 401);
    wait_until(PATIENCE, "the refusal", || {
        world.value("SELECT count(*) FROM refusal WHERE reason = 'token_missing'") == "1"
    });
    let kept = world.value("SELECT header_names FROM refusal");
    assert!(kept.contains("x-[cut]"), "{kept}");

    let path = format!(
        "/elsewhere/{}/{}",
        access.replace(':', "%3a"),
        percent(&notify)
    );
    assert_eq!(
        request(world.listen(), "POST", &path, &[], "{}").status,
        404
    );
    wait_until(PATIENCE, "the path to be told", || {
        world
            .serve_log()
            .contains("a POST came to `/elsewhere/[cut]/")
    });
    for secret in [&notify, &access] {
        let first: String = secret.chars().take(16).collect();
        nowhere(&world, &first);
        nowhere(&world, &first.to_lowercase());
        nowhere(&world, &first.replace(':', "%3a"));
        nowhere(&world, &hex(&first));
    }
    let shown = world.tilld(&["refusal", "list", "--json"]).ends_with(0);
    assert!(shown.stdout.contains("[cut]"), "{shown:?}");
}

/// A browser would run it: neither the shop nor a customer is sent there, and the payment page sends nobody there.
#[test]
fn an_address_that_a_browser_would_run_is_nobodys_link() {
    let world = Setup::new()
        .quiet()
        .hook("told", &["*"], "cat >> \"$1\"")
        .start();
    let issued = world.create("A-1");
    let bad = "javascript:alert(document.domain)";
    tell(
        &world,
        &issued,
        1,
        &json!({ "status": "waiting", "paymentUrl": bad }),
    );
    wait_until(PATIENCE, "it to be told", || {
        let log = world.serve_log();
        log.contains("`paymentUrl` is no http or https address")
    });
    assert_eq!(world.value("SELECT payment_url IS NULL FROM invoice"), "1");
    let shown = world
        .tilld(&["invoice", "show", "A-1", "--json"])
        .ends_with(0);
    assert_eq!(shown.json().get("payment_url"), Some(&Value::Null));
    world.settle();
    let told = world.hook_log("told").concat();
    assert!(
        told.contains("\"payment_url\":null") && !told.contains("\"payment_url\":\"j"),
        "{told}"
    );
    // What came stands in the service's own document, as ever.
    assert_eq!(
        shown.json().pointer("/service/paymentUrl"),
        Some(&json!(bad))
    );
    tell(
        &world,
        &issued,
        2,
        &json!({ "status": "waiting", "paymentUrl": "https://pay.example/1" }),
    );
    assert_eq!(
        world.value("SELECT payment_url FROM invoice"),
        "https://pay.example/1"
    );

    let urls = [
        format!("--success-url={bad}"),
        "--cancel-url=https://a.example".to_owned(),
        "--error-url=https://a.example".to_owned(),
    ];
    let mut more = vec!["--redirect"];
    more.extend(urls.iter().map(String::as_str));
    let refused = world.open("B-1", "1.00", &more).ends_with(2);
    assert!(
        refused.stderr.contains("http:// or https://"),
        "{refused:?}"
    );
}

/// The service knows the notify token of the invoice it is asked about, and its texts are told and kept.
#[test]
fn the_services_texts_show_no_secret_of_an_invoice_or_a_login() {
    let world = Setup::new().set("log_level", "\"trace\"").start();
    let issued = world.create("A-1");
    let access = access(&world);
    let forms = [forms(&issued.token), forms(&access)].concat();
    for form in &forms {
        let echo = json!({ "error": format!("{}{form}", "x".repeat(280)) }).to_string();
        let asked = world.requests("fetch");
        world.faults(&json!({ "api_status": {
            "endpoint": "fetch", "status": 422, "body": echo, "times": 1
        }}));
        let polled = world.tilld(&["invoice", "poll", "A-1"]);
        assert!(world.requests("fetch") > asked, "{polled:?}");
    }
    for form in forms {
        nowhere(&world, &form.chars().take(16).collect::<String>());
    }
    let explained = world.tilld(&["explain", "A-1", "--json"]);
    assert!(!explained.stdout.contains(&access), "{explained:?}");
}
