//! What keeps the sandbox a sandbox: no address beyond this machine, no token of it towards the real service, and no word
//! that could be taken for the service's.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{JSON, Started, tilld};
use crate::harness::{PATIENCE, Setup, next_name, run, wait_until};

/// It hands out tokens to everybody who asks, and speaks without TLS.
#[test]
fn it_listens_where_nobody_else_can_reach_it_or_not_at_all() {
    let dir = tempfile::tempdir().expect("a directory");
    for flag in ["--listen", "--control"] {
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let other = ["--listen", "--control"].map(|flag| format!("{flag}=127.0.0.1:0"));
            let mut args: Vec<String> = other.into_iter().collect();
            args.retain(|given| !given.starts_with(flag));
            args.push(format!("{flag}={address}"));
            let mut command = tilld(dir.path());
            let ran = run(command.arg("sandbox").args(&args), dir.path(), &next_name());
            ran.clone().ends_with(1);
            let refused = format!("loopback addresses only, not on `{address}`");
            assert!(ran.stderr.contains(&refused), "{ran:?}");
            assert!(
                ran.stderr.contains("\nhint: use an address such as"),
                "{ran:?}"
            );
            assert_eq!(ran.stdout, "");
        }
    }
}

#[test]
fn it_says_at_its_start_what_it_is() {
    let sandbox = Started::new(&[]);
    let said = sandbox.process.stderr();
    for promise in [
        "An imitation of the payment service",
        "no real money",
        "in memory only",
        "on this machine only",
        "only `new` is the service's own",
    ] {
        assert!(said.contains(promise), "{promise}: {said}");
    }
    sandbox.ends();
}

/// The shop's public address is in a config that was copied: nothing may go there, and whoever runs the shop must learn of it
/// on both sides.
#[test]
fn an_invoice_that_would_be_told_of_elsewhere_is_refused_at_once() {
    let world = Setup::new().quiet().not_served().start();
    let public = [("TILLD_LISTENER__PUBLIC_URL", "https://shop.example/n")];
    let order = [
        "invoice",
        "create",
        "--order=A-1",
        "--amount=5",
        "--currency=RUB",
        "--method=SBP",
    ];
    let ran = world.tilld_with(&public, &order);
    assert_ne!(ran.code, 0, "{ran:?}");
    let said = "the sandbox's own guard: `notificationUrl` does not lead to this machine";
    assert!(ran.stderr.contains(said), "{ran:?}");
    let state = world.control("GET", "/state", &Value::Null);
    assert_eq!(state.get("invoices"), Some(&json!([])), "none was made");
    let log = std::fs::read_to_string(world.log_dir().join("sandbox.err")).expect("its talk");
    let line = log.lines().find(|line| line.contains(" WARN "));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    assert!(
        line.contains("its notificationUrl leads to shop.example"),
        "{line}"
    );
    // The last segment of the address is secret.
    assert!(!line.contains("/n/"), "{line}");
}

/// A merchant who has proved the shop here takes the sandbox's token along.
#[test]
fn its_token_goes_to_no_other_service() {
    let world = Setup::new().quiet().logged_out().not_served().start();
    let issued = world.control("POST", "/tokens/issue", &json!({}));
    let token = issued
        .get("token")
        .and_then(Value::as_str)
        .expect("a token");
    let given = world.dir().join("access-token");
    std::fs::write(given, format!("{token}\n")).expect("written");
    let real = [
        ("TILLD_SERVICE__URL", "https://service.example"),
        ("TILLD_SERVICE__CABINET_URL", "https://cabinet.example"),
    ];
    let refused =
        "is one of tilld's sandbox, and the configured service is `https://service.example`";
    let [url, cabinet] = real;
    let ran = world.tilld_with(
        &[("SERVICE_TOKEN", token), url, cabinet],
        &["whoami", "--check"],
    );
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains(refused), "{ran:?}");
    assert!(!ran.stderr.contains(token), "{ran:?}");
    // The daemon takes none from its environment, but one that systemd hands it. It goes on hearing notifications.
    let mut under = vec![format!("CREDENTIALS_DIRECTORY={}", world.dir().display())];
    under.extend(real.map(|(name, value)| format!("{name}={value}")));
    under.insert(0, "env".to_owned());
    let under: Vec<&str> = under.iter().map(String::as_str).collect();
    let mut serve = world.start_under(&under, &["serve"]);
    wait_until(PATIENCE, "the daemon to refuse it", || {
        serve.stderr().contains(refused)
    });
    assert!(serve.stderr().contains("ERROR") && !serve.stderr().contains(token));
    serve.signal(Signal::TERM);
    assert_eq!(serve.wait(PATIENCE), 0);
}

/// Ids, tokens and codes come from the seed: a course of events can be told to somebody else by a number.
#[test]
fn a_seed_makes_the_same_ids_again_and_another_one_others() {
    let made = |seed: &str| {
        let sandbox = Started::new(&[seed]);
        let bearer = sandbox.bearer();
        let created = sandbox.create(&bearer, "http://127.0.0.1:9/n", &json!({}));
        assert_eq!(created.status, 201, "{created:?}");
        let login = json!({ "clientName": "shop" }).to_string();
        let login = sandbox
            .ask("POST", "/api/v1/agent/login", &[JSON], &login)
            .json();
        let (page, id) = (sandbox.invoice("/page"), sandbox.invoice("/invoice/id"));
        let port = sandbox.at("service").port().to_string();
        let page = page.as_str().expect("an address").replace(&port, "PORT");
        let code = login.get("userCode").cloned();
        assert!(code.is_some(), "{login}");
        sandbox.ends();
        (bearer, id, page, code)
    };
    let first = made("--seed=7");
    assert_eq!(made("--seed=7"), first);
    let other = made("--seed=8");
    assert!(other.0 != first.0 && other.1 != first.1, "{other:?}");
    assert!(other.2 != first.2 && other.3 != first.3, "{other:?}");
}
