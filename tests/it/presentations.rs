//! Every way a notification can present its notify token, through the real daemon: tried by itself, and pinned. Signatures
//! are made by the sandbox or by Python, never by what tilld reads them with (A19, A20).

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;

use crate::harness::{Issued, PATIENCE, Setup, World, request, skip, wait_until};

/// One of every form, as the config and the sandbox's control listener have it.
const FORMS: [&str; 7] = [
    "header:x-shop-token",
    "bearer",
    "basic-password",
    "query:shopToken",
    "body:/shop/token",
    "hmac-sha256:header:x-shop-signature",
    "standard-webhooks",
];
/// What is remembered last.
const REMEMBERED: &str = "SELECT value FROM meta WHERE key = 'presentation'";

/// The HMAC-SHA256 of a message, in hex and in base64.
struct Signed {
    hex: String,
    base64: String,
}

/// Signs as somebody else does; `None` without Python.
fn sign(key: &str, message: &str) -> Option<Signed> {
    const SCRIPT: &str = "import base64, hashlib, hmac, sys\n\
        key, _, message = sys.stdin.buffer.read().partition(b'\\n')\n\
        digest = hmac.new(key, message, hashlib.sha256).digest()\n\
        print(digest.hex(), base64.b64encode(digest).decode())";
    let mut python = Command::new("python3")
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = python.stdin.take()?;
    write!(stdin, "{key}\n{message}").expect("it reads");
    drop(stdin);
    let output = python.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).expect("text");
    let (hex, base64) = said.trim_end().split_once(' ')?;
    Some(Signed {
        hex: hex.to_owned(),
        base64: base64.to_owned(),
    })
}

/// A notification that presents `token` in this form and no other; gives the code of the answer.
#[track_caller]
fn present(world: &World, issued: &Issued, form: &str, token: &str) -> Option<u16> {
    let mut target = World::target(&issued.reference);
    let mut body = issued.object.clone();
    let mut headers: Vec<(&str, String)> = Vec::new();
    match form {
        "query:shopToken" => target = format!("{target}?shopToken={token}"),
        "body:/shop/token" => body = issued.with(&json!({ "shop": { "token": token } })),
        _ => {}
    }
    let body = body.to_string();
    match form {
        "header:x-shop-token" => headers.push(("X-Shop-Token", token.to_owned())),
        "bearer" => headers.push(("Authorization", format!("bearer {token}"))),
        "basic-password" => {
            let pair = STANDARD.encode(format!("anybody:{token}"));
            headers.push(("Authorization", format!("Basic {pair}")));
        }
        "hmac-sha256:header:x-shop-signature" => {
            headers.push(("X-Shop-Signature", sign(token, &body)?.base64));
        }
        "standard-webhooks" => {
            let signed = sign(token, &format!("msg_1.1.{body}"))?.base64;
            headers.push(("webhook-id", "msg_1".to_owned()));
            headers.push(("webhook-timestamp", "1".to_owned()));
            headers.push(("webhook-signature", format!("v1,{signed}")));
        }
        _ => {}
    }
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    Some(request(world.listen(), "POST", &target, &headers, &body).status)
}

/// Puts another list into the config, for the next start.
fn pin(world: &World, places: &[&str]) {
    let file = world.dir().join("config.toml");
    let config = fs::read_to_string(&file).expect("a config");
    let lines = config.lines().map(|line| {
        if line.starts_with("listener.presentations = ") {
            format!("listener.presentations = {places:?}\n")
        } else {
            format!("{line}\n")
        }
    });
    fs::write(&file, lines.collect::<String>()).expect("written");
}

/// What every daemon of this world has logged.
fn all_logs(dir: &Path) -> String {
    let files = fs::read_dir(dir).expect("logs");
    files
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|end| end == "err"))
        .map(|path| fs::read_to_string(path).expect("a log"))
        .collect()
}

#[test]
fn auto_takes_the_token_however_the_service_presents_it() {
    let world = Setup::new().plain().quiet().start();
    let invoice = world.create("A-1");
    let forms = [
        "header:x-notification-token",
        "header:x-webhook-token",
        "header:x-webhook-secret",
        "bearer",
        "query:token",
        "query:notificationToken",
        "body:/notificationToken",
        "basic-password",
        "standard-webhooks",
        "hmac-sha256:header:x-notification-signature",
        "hmac-sha256:header:x-signature",
        "hmac-sha256:header:x-signature-256",
        "hmac-sha256:header:x-webhook-signature",
        "hmac-sha256:header:x-hub-signature-256",
    ];
    for (number, form) in forms.into_iter().enumerate() {
        world.faults(&json!({ "presentation": form }));
        let status = format!("step-{number}");
        world.happens(&invoice, &json!({ "status": status }));
        wait_until(PATIENCE, form, || world.invoice("A-1", "status") == status);
        wait_until(PATIENCE, form, || world.sql(REMEMBERED) == [[form]]);
    }
    let heard = "SELECT count(*) FROM heard WHERE source = 'notification'";
    assert_eq!(world.value(heard), forms.len().to_string());
    assert_eq!(world.value("SELECT count(*) FROM refusal"), "0");
}

#[test]
fn a_pinned_place_refuses_all_others() {
    let mut world = Setup::new()
        .quiet()
        .set("listener.presentations", "[\"bearer\"]")
        .start();
    let invoice = world.dictate(&world.create("A-1"), "waiting");
    for pinned in FORMS {
        assert_eq!(world.stop_serve(PATIENCE), 0);
        pin(&world, &[pinned]);
        world.start_serve();
        for form in FORMS {
            let Some(status) = present(&world, &invoice, form, &invoice.token) else {
                skip!("python3 is not there");
            };
            let wanted = if form == pinned { 200 } else { 401 };
            assert_eq!(status, wanted, "{form} where {pinned} is pinned");
        }
        // What `auto` takes first is nothing beside a pinned place.
        assert_eq!(world.tell_as_it_is(&invoice).status, 401, "{pinned}");
        let wrong = invoice.token.to_uppercase();
        let status = present(&world, &invoice, pinned, &wrong);
        assert_eq!(status, Some(401), "{pinned}");
    }
    // Whoever pinned a place knows it.
    assert!(world.sql(REMEMBERED).is_empty());
}

#[test]
fn a_signature_made_with_no_key_is_refused() {
    let world = Setup::new().quiet().start();
    let invoice = world.create("A-1");
    let before = world.invoice("A-1", "status");
    let body = invoice.saying("paid", &invoice.at(120));
    let (Some(forged), Some(webhook)) = (sign("", &body), sign("", &format!("msg_1.1.{body}")))
    else {
        skip!("python3 is not there");
    };
    let hub = format!("sha256={}", forged.hex);
    let listed = format!("v1,{}", webhook.base64);
    let webhook: [(&str, &str); 3] = [
        ("webhook-id", "msg_1"),
        ("webhook-timestamp", "1"),
        ("webhook-signature", &listed),
    ];
    for headers in [
        &[("X-Signature", forged.hex.as_str())][..],
        &[("X-Hub-Signature-256", &hub)],
        &[("X-Webhook-Signature", &forged.base64)],
        &webhook,
    ] {
        let answer = world.notify(&invoice.reference, headers, &body);
        assert_eq!(answer.status, 401, "{headers:?}");
    }
    let reasons = "SELECT reason, count(*) FROM refusal GROUP BY reason";
    wait_until(PATIENCE, "the refusals to be recorded", || {
        world.sql(reasons) == [["signature_wrong", "4"]]
    });
    assert_eq!(world.invoice("A-1", "status"), before);
    assert!(world.sql(REMEMBERED).is_empty());
}

#[test]
fn a_signature_is_over_the_body_to_the_byte() {
    let world = Setup::new().quiet().start();
    let invoice = world.create("A-1");
    // A byte-order mark, and blanks no serialiser of ours would leave.
    let body = format!("\u{feff} {}  ", invoice.saying("waiting", &invoice.at(120)));
    let Some(signed) = sign(&invoice.token, &body) else {
        skip!("python3 is not there");
    };
    let tell = |signature: &str, body: &str| {
        let headers = [("X-Signature-256", signature)];
        world.notify(&invoice.reference, &headers, body).status
    };
    assert_eq!(tell(&signed.hex, body.trim_end()), 401);
    assert_eq!(tell(&signed.hex.to_uppercase(), &body), 200);
    assert_eq!(world.invoice("A-1", "status"), "waiting");
}

#[test]
fn the_place_that_works_is_told_once_with_the_line_that_pins_it() {
    let line = |place: &str| {
        format!("by `{place}`; `presentations = [\"{place}\"]` under `[listener]` pins it")
    };
    let (header, bearer) = (line("header:x-notification-token"), line("bearer"));
    let mut world = Setup::new()
        .quiet()
        .set("listener.presentations", "\"auto\"")
        .start();
    let invoice = world.create("A-1");
    assert_eq!(present(&world, &invoice, "bearer", "wrong"), Some(401));
    let mut told = Vec::new();
    for _ in 0..2 {
        for _ in 0..3 {
            assert_eq!(world.tell_as_it_is(&invoice).status, 200);
        }
        // A stop waits for what is still being written.
        assert_eq!(world.stop_serve(PATIENCE), 0);
        assert_eq!(world.sql(REMEMBERED), [["header:x-notification-token"]]);
        let logs = all_logs(&world.log_dir());
        told.push(logs.matches(&header).count());
        assert!(!logs.contains(&bearer), "{logs}");
        world.start_serve();
    }
    assert_eq!(told, [1, 1]);
    let status = present(&world, &invoice, "bearer", &invoice.token);
    assert_eq!(status, Some(200));
    assert_eq!(world.stop_serve(PATIENCE), 0);
    assert_eq!(world.sql(REMEMBERED), [["bearer"]]);
    let logs = all_logs(&world.log_dir());
    assert_eq!(logs.matches(&header).count(), 1);
    assert_eq!(logs.matches(&bearer).count(), 1);
    // The line is one that the config takes.
    pin(&world, &["bearer"]);
    world.start_serve();
    assert_eq!(world.tell_as_it_is(&invoice).status, 401);
    let status = present(&world, &invoice, "bearer", &invoice.token);
    assert_eq!(status, Some(200));
}
