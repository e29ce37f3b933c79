//! `whoami --check`: exactly what is known of the token, and never more.

use serde_json::{Value, json};

use super::field;
use crate::harness::{Ran, Setup, World};

#[track_caller]
fn check(world: &World) -> (Ran, Value) {
    let ran = world.tilld(&["whoami", "--check", "--json"]);
    let answer: Value = serde_json::from_str(&ran.stdout).expect("one object");
    let verdict = field(&answer, "check").clone();
    assert_eq!(field(&answer, "source"), "file");
    (ran, verdict)
}

#[test]
fn the_newest_invoice_tells_whether_the_token_is_good() {
    let world = Setup::new().not_served().start();
    let (ran, verdict) = check(&world);
    assert_eq!((ran.code, field(&verdict, "state")), (0, &json!("unknown")));
    assert_eq!(field(&verdict, "invoice_id"), &Value::Null);

    world.create("A-1");
    let newest = world.create("A-2");
    let asked = world.requests("fetch");
    let (ran, verdict) = check(&world);
    assert_eq!((ran.code, field(&verdict, "state")), (0, &json!("valid")));
    assert_eq!(field(&verdict, "invoice_id"), newest.id.as_str());
    assert_eq!(world.requests("fetch"), asked + 1);

    // What the service says, the word for it, and the end.
    let error = json!({ "error": "no\u{1b}[2J" }).to_string();
    for (status, body, state, code) in [
        (401, error.as_str(), "refused", 4),
        (403, &error, "not_refused", 0),
        (404, &error, "not_refused", 0),
        (422, &error, "not_refused", 0),
        (503, "<html>", "unreachable", 8),
        (200, "<html>", "unreachable", 8),
        (302, "", "unreachable", 10),
    ] {
        world.next_fetch(status, body);
        let (ran, verdict) = check(&world);
        assert_eq!(
            (ran.code, field(&verdict, "state")),
            (code, &json!(state)),
            "{status}: {ran:?}"
        );
        assert_eq!(ran.stderr.contains("hint: "), code != 0, "{ran:?}");
        assert_eq!(ran.stderr.contains("error: "), code != 0, "{ran:?}");
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'));
    }
    world.next_fetch(404, &error);
    let ran = world.tilld(&["whoami", "--check"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stdout
            .contains("not refused, but the invoice was not given"),
        "{ran:?}"
    );

    // A token that no header can carry is no question to the service.
    let asked = world.requests("fetch");
    let unusable = [("SERVICE_TOKEN", "shop:\u{1}")];
    let ran = world.tilld_with(&unusable, &["whoami", "--check", "--json"]);
    let answer: Value = serde_json::from_str(&ran.stdout).expect("one object");
    let verdict = field(&answer, "check");
    assert_eq!((ran.code, field(verdict, "state")), (4, &json!("refused")));
    assert_eq!(field(verdict, "invoice_id"), &Value::Null);
    assert!(!ran.stdout.contains("asked about"), "{ran:?}");
    assert_eq!(world.requests("fetch"), asked);

    world.control("POST", "/tokens/revoke", &Value::Null);
    let ran = world.tilld(&["whoami", "--check"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.stderr.contains(" login`"), "{ran:?}");
    let ran = world.tilld(&["whoami"]);
    assert_eq!(ran.code, 0, "without the flag nobody is asked: {ran:?}");
}
