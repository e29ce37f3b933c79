//! The same failure is told in the same words with the same code, whether the command works directly or has a daemon do it.

use serde_json::{Value, json};

use super::{Booth, CREATE, NOWHERE, lacks};
use crate::harness::{Ran, Setup, skip};

/// The owner, working directly: no daemon is asked.
const DIRECTLY: [&str; 2] = ["env", NOWHERE];

/// Runs it both ways.
#[track_caller]
fn alike(booth: &Booth, args: &[&str], code: i32) -> Ran {
    let direct = booth.world.tilld_under(&DIRECTLY, args).ends_with(code);
    same(&direct, &booth.shop(args))
}

/// Asserts that both ended with the same words.
#[track_caller]
fn same(direct: &Ran, remote: &Ran) -> Ran {
    assert_eq!(direct.stderr, remote.stderr);
    assert_eq!(direct.stdout, remote.stdout);
    assert_eq!(direct.code, remote.code);
    direct.clone()
}

/// As [`alike`], but for the way to a login: a daemon's clients are told whom to become for it.
#[track_caller]
fn alike_but_for_the_login(booth: &Booth, args: &[&str], code: i32) -> Ran {
    let direct = booth.world.tilld_under(&DIRECTLY, args).ends_with(code);
    let mut remote = booth.shop(args);
    let (own, owners) = ("run `tilld ", "run `sudo -u root tilld ");
    // With `--json` a failure is told on stdout.
    let all = [remote.stdout.as_str(), &remote.stderr].concat();
    assert!(all.contains(owners), "{remote:?}");
    remote.stdout = remote.stdout.replace(owners, own);
    remote.stderr = remote.stderr.replace(owners, own);
    same(&direct, &remote)
}

fn create<'a>(order: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&CREATE as &[&str], &["--order", order], more].concat()
}

/// Lets the service refuse creates with this, until something else is said.
fn refuse(booth: &Booth, status: u16, body: &str) {
    booth.world.faults(&json!({ "api_status": {
        "endpoint": "create", "status": status, "body": body, "times": true,
    } }));
}

#[test]
fn what_is_refused_before_anything_is_sent_is_told_alike() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    let booth = Booth::start(Setup::new().quiet());
    booth.open("1", &[]).ends_with(0);
    booth.open("paid", &[]).ends_with(0);
    let issued = booth.world.issued("paid").expect("the service has it");
    booth.world.happens(&issued, &json!({ "status": "paid" }));
    booth.shop(&["invoice", "wait", "paid"]).ends_with(0);
    let requests = booth.world.requests("create");
    for (args, code) in [
        (
            &[
                "invoice",
                "create",
                "--order=1",
                "--amount=600",
                "--currency=RUB",
                "--method=SBP",
            ] as &[&str],
            1,
        ),
        (
            &[
                "invoice",
                "create",
                "--order=1",
                "--amount=599.80",
                "--currency=RUB",
                "--method=TO_CARD",
            ],
            1,
        ),
        (&create("paid", &[]), 1),
        (
            &[
                "invoice",
                "create",
                "--order=9",
                "--amount=1,5",
                "--currency=RUB",
                "--method=SBP",
            ],
            2,
        ),
        (
            &[
                "invoice",
                "create",
                "--order=9",
                "--amount=0",
                "--currency=RUB",
                "--method=SBP",
            ],
            2,
        ),
        (
            &[
                "invoice",
                "create",
                "--order=9",
                "--amount=1",
                "--currency=rubles",
                "--method=SBP",
            ],
            2,
        ),
        (&create("", &[]), 2),
        (&create("a\nb", &[]), 2),
        (&["invoice", "show", "absent"], 3),
        (&["invoice", "wait", "absent"], 3),
        (&["invoice", "poll", "absent"], 3),
        (&["invoice", "poll", ""], 2),
        (&["invoice", "show", ""], 3),
        (&["invoice", "wait", "1", "--timeout=0"], 6),
    ] {
        let ran = alike(&booth, args, code);
        assert!(ran.stderr.contains("error: "), "{ran:?}");
    }
    assert_eq!(booth.world.requests("create"), requests);
}

#[test]
fn what_the_service_refuses_is_told_alike() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    let booth = Booth::start(Setup::new().quiet());
    booth.open("1", &[]).ends_with(0);
    for (status, code) in [(400, 1), (403, 1), (404, 1), (422, 1)] {
        refuse(&booth, status, r#"{"error":"no \"such\" thing"}"#);
        let ran = alike(&booth, &create("x", &[]), code);
        assert!(ran.stderr.contains("order `x`"), "{ran:?}");
    }
    booth.world.faults(&json!({ "reset": true, "lose": true }));
    booth.world.control("POST", "/pool", &json!({ "free": 0 }));
    alike(&booth, &create("x", &[]), 7);
    booth.world.control("POST", "/pool", &json!({ "free": 5 }));

    // Whose answer was lost has a row of its own, which is shown by its ref.
    booth.world.faults(&json!({ "drop_create_answer": 2 }));
    let direct = booth.world.tilld_under(&DIRECTLY, &create("lost-a", &[]));
    let remote = booth.shop(&create("lost-b", &[])).ends_with(9);
    assert_eq!(direct.stderr.replace("lost-a", "lost-b"), remote.stderr);
    for order in ["lost-a", "lost-b"] {
        alike(&booth, &create(order, &["--json"]), 9);
        alike(&booth, &["invoice", "wait", order], 9);
        alike(&booth, &["invoice", "poll", order], 9);
    }

    for (status, code) in [(403, 1), (404, 3)] {
        booth.world.faults(&json!({ "api_status": {
            "endpoint": "fetch", "status": status, "body": "{}", "times": 2,
        } }));
        alike(&booth, &["invoice", "poll", "1", "--json"], code);
    }

    // Last, since each shuts the gate of who was told.
    refuse(&booth, 401, "{}");
    alike_but_for_the_login(&booth, &create("x", &[]), 4);
    booth.world.faults(&json!({ "api_status": {
        "endpoint": "create", "status": 429, "body": "{\"error\":\"slow down\"}", "retry_after_s": 1, "times": true,
    } }));
    let busy = alike(&booth, &create("x", &[]), 8);
    assert!(busy.stderr.contains("try again in 1 s"), "{busy:?}");
}

#[test]
fn a_login_that_lacks_or_is_revoked_is_told_alike() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    let booth = Booth::start(Setup::new().quiet());
    booth.open("1", &[]).ends_with(0);
    booth.world.control("POST", "/tokens/revoke", &Value::Null);
    alike_but_for_the_login(&booth, &create("x", &[]), 4);
    alike_but_for_the_login(&booth, &["invoice", "poll", "1", "--json"], 4);
    booth.world.tilld(&["logout"]).ends_with(0);
    for args in [&create("x", &[]) as &[&str], &["invoice", "poll", "1"]] {
        let ran = alike_but_for_the_login(&booth, args, 4);
        assert!(ran.stderr.contains("no login is stored"), "{ran:?}");
        assert!(ran.stderr.contains(" login`"), "{ran:?}");
    }
}
