//! `tilld doctor` through the real program: what is well is told so, and each thing that would lose a payment is found before
//! one is lost. What is at stake: a shop that hears nothing looks to itself like one with few customers.

mod certificates;
mod recorded;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Ran, Service, Setup, World, request, wait_until};

/// The findings, ended with this code.
#[track_caller]
fn doctor(world: &World, code: i32, variables: &[(&str, &str)]) -> Vec<Value> {
    let ran = world
        .tilld_with(variables, &["doctor", "--json"])
        .ends_with(code);
    let told = ran.json();
    told.as_array().expect("a list").clone()
}

/// What was found for a check, with its state in front.
#[track_caller]
fn found(findings: &[Value], check: &str) -> String {
    let of = findings.iter().filter(|found| found["check"] == check);
    let told = of.map(|found| {
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        format!("{}: {} ({})", text("state"), text("told"), text("hint"))
    });
    let told: Vec<String> = told.collect();
    assert!(!told.is_empty(), "no {check}: {findings:?}");
    told.join("\n")
}

#[test]
fn a_shop_where_all_is_well_is_told_so_and_nothing_secret() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    let paid = world.pay("A-1");
    world.settle();
    let told = doctor(&world, 0, &[]);
    for check in [
        "config",
        "daemon",
        "login",
        "service",
        "clock",
        "public_url",
        "public_address",
        "hook",
        "ledger",
        "permissions",
        "unit",
    ] {
        assert!(found(&told, check).starts_with("ok: "), "{check}: {told:?}");
    }
    let public = found(&told, "public_address");
    assert!(
        public.contains("asked from this machine, http://127."),
        "{public}"
    );
    assert!(
        public.contains("every header that may carry a notify token arrives"),
        "{public}"
    );
    // The one trace of it: a refusal that no count includes.
    let refused = || world.value("SELECT group_concat(reason) FROM refusal");
    assert_eq!(refused(), "doctor");
    let status = world.tilld(&["status", "--json"]).ends_with(0).json();
    let counted = status.pointer("/refusals_24h/count");
    assert_eq!(counted, Some(&json!(0)), "{status}");
    let listed = world.tilld(&["refusal", "list"]).ends_with(0).stdout;
    assert!(listed.contains("doctor"), "{listed}");
    // Anybody may send the header; only the ledger's own key makes what stands in it.
    let liar = [("x-tilld-doctor", "dGlsbGQtZG9jdG9y")];
    let nobodys = "0123456789abcdef0123456789abcdef";
    assert_eq!(
        world
            .notify(nobodys, &liar, r#"{"id":"x","status":"new"}"#)
            .status,
        401
    );
    wait_until(PATIENCE, "the refusal", || {
        refused() == "doctor,ref_unknown"
    });
    let Ran { stdout, .. } = world.tilld(&["doctor"]).ends_with(0);
    assert!(
        stdout.contains("ok  public_address  asked from this machine"),
        "{stdout}"
    );
    let token = fs::read_to_string(world.state_dir().join("secret/credentials")).expect("a login");
    let token: Value = serde_json::from_str(&token).expect("JSON");
    let token = token.get("token").and_then(Value::as_str).expect("a token");
    for text in [stdout, format!("{told:?}")] {
        assert!(
            !text.contains(token) && !text.contains(&paid.token),
            "{text}"
        );
    }
    // A slash at the end, and one too many between.
    let slash = format!("http://{}/n/", world.listen());
    let told = doctor(&world, 0, &[("TILLD_LISTENER__PUBLIC_URL", &slash)]);
    assert!(
        found(&told, "public_address").starts_with("ok: "),
        "{told:?}"
    );
    let doubled = format!("http://{}//n", world.listen());
    let told = doctor(&world, 16, &[("TILLD_LISTENER__PUBLIC_URL", &doubled)]);
    assert!(
        found(&told, "public_url").contains("two slashes in a row"),
        "{told:?}"
    );
}

/// A13, A14: each of these looks well to a payment service, or to the merchant's browser.
#[test]
fn a_public_address_that_leads_elsewhere_is_found() {
    let world = Setup::new().quiet().start();
    let public = |url: &str| {
        let told = doctor(&world, 16, &[("TILLD_LISTENER__PUBLIC_URL", url)]);
        found(&told, "public_address")
    };
    // As Caddy answers for a name it has no site for.
    let proxy = Service::start(|_| (200, String::new()));
    let told = public(&format!("{}/n", proxy.url()));
    assert!(
        told.starts_with("fail: ") && told.contains("answers by itself"),
        "{told}"
    );
    assert_eq!(proxy.heard().len(), 1, "it is asked once");
    // A prefix that the proxy takes away, as tilld meets it.
    let told = public(&format!("http://{}/pay", world.listen()));
    assert!(
        told.contains("reaches tilld, which has no such path"),
        "{told}"
    );
    // `localhost` is not where tilld listens.
    let port = world.listen().port();
    let told = public(&format!("http://localhost:{port}/n"));
    assert!(told.contains("gives no answer"), "{told}");
    let proxy = Service::start(|_| (502, String::new()));
    let told = public(&format!("{}/n", proxy.url()));
    assert!(
        told.contains("does not reach tilld") && told.contains("`::1`"),
        "{told}"
    );
    // Another tilld's refusal is not this one's.
    let proxy = Service::start(|_| (401, "unauthorized\n".to_owned()));
    let told = public(&format!("{}/n", proxy.url()));
    assert!(told.contains("another tilld answers there"), "{told}");
}

/// A14: a header that a proxy drops may be the one with the token.
#[test]
fn a_header_that_a_proxy_drops_is_named() {
    let world = Setup::new().quiet().start();
    let listen = world.listen();
    let proxy = Service::start(move |heard| {
        let lines = heard
            .headers
            .lines()
            .filter_map(|line| line.split_once(':'));
        let kept: Vec<(&str, &str)> = lines
            .map(|(name, value)| (name, value.trim()))
            .filter(|(name, _)| {
                let name = name.to_ascii_lowercase();
                !["x-webhook-token", "host", "content-length"].contains(&name.as_str())
            })
            .collect();
        let passed_on = request(listen, "POST", heard.path(), &kept, &heard.body);
        (passed_on.status, passed_on.body)
    });
    let url = format!("{}/n", proxy.url());
    let told = doctor(&world, 0, &[("TILLD_LISTENER__PUBLIC_URL", &url)]);
    let told = found(&told, "public_address");
    assert!(
        told.starts_with("warn: ") && told.contains("lost on the way: x-webhook-token ("),
        "{told}"
    );
    // The one in which the last authentic notification had its token is needed.
    let paid = world.dictate(&world.create("A-1"), "paid");
    let token = [("X-Webhook-Token", paid.token.as_str())];
    let body = paid.object.to_string();
    assert_eq!(world.notify(&paid.reference, &token, &body).status, 200);
    wait_until(PATIENCE, "the place to be remembered", || {
        let place = "SELECT count(*) FROM meta WHERE key = 'presentation'";
        world.value(place) == "1"
    });
    let told = doctor(&world, 16, &[("TILLD_LISTENER__PUBLIC_URL", &url)]);
    assert!(
        found(&told, "public_address").starts_with("fail: "),
        "{told:?}"
    );
    let pinned = [
        ("TILLD_LISTENER__PUBLIC_URL", url.as_str()),
        (
            "TILLD_LISTENER__PRESENTATIONS",
            "[\"header:X-Webhook-Token\"]",
        ),
    ];
    let told = doctor(&world, 16, &pinned);
    assert!(
        found(&told, "public_address").starts_with("fail: "),
        "{told:?}"
    );
}

#[test]
fn without_a_daemon_it_says_what_could_not_be_asked() {
    let mut world = Setup::new().quiet().start();
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let told = doctor(&world, 16, &[]);
    assert!(
        found(&told, "daemon").starts_with("fail: none runs"),
        "{told:?}"
    );
    assert!(
        found(&told, "public_address").starts_with("warn: not asked"),
        "{told:?}"
    );
    for check in ["service", "clock", "login", "ledger"] {
        assert!(found(&told, check).starts_with("ok: "), "{told:?}");
    }
    let told = doctor(&world, 16, &[("TILLD_SERVICE__URL", "http://127.0.0.1:9")]);
    assert!(
        found(&told, "service").starts_with("fail: http://127.0.0.1:9 gives no answer"),
        "{told:?}"
    );
    assert!(
        found(&told, "clock").starts_with("warn: not compared"),
        "{told:?}"
    );
    let told = doctor(&world, 16, &[("TILLD_LISTNER", "x")]);
    assert!(found(&told, "config").starts_with("fail: "), "{told:?}");
    assert_eq!(told.len(), 1);
}

/// What stands in front of a service answers while the service is gone.
#[test]
fn a_service_in_trouble_is_warned_of() {
    let world = Setup::new().quiet().start();
    for (status, wanted) in [(401, "ok: "), (502, "warn: "), (503, "warn: ")] {
        let front = Service::start(move |_| (status, String::new()));
        let url = front.url();
        // Nobody is logged in there.
        let told = doctor(&world, 16, &[("TILLD_SERVICE__URL", &url)]);
        let service = found(&told, "service");
        let answers = format!("{wanted}{url} answers ({status})");
        assert!(service.starts_with(&answers), "{service}");
    }
}

/// A token that the unit hands over is the daemon's alone to see: its own word counts.
#[test]
fn a_daemon_with_a_credential_of_its_unit_is_logged_in() {
    let mut world = Setup::new().quiet().logged_out().not_served().start();
    let issued = world.control("POST", "/tokens/issue", &json!({}));
    let token = issued.get("token").and_then(Value::as_str);
    fs::write(world.dir().join("access-token"), token.expect("a token")).expect("written");
    world.under = vec![
        "env".to_owned(),
        format!("CREDENTIALS_DIRECTORY={}", world.dir().display()),
    ];
    world.start_serve();
    world.pay("A-1");
    let told = doctor(&world, 0, &[]);
    let login = found(&told, "login");
    assert!(login.starts_with("ok: the daemon has a token"), "{login}");
    let status = world.tilld(&["status"]).ends_with(0).stdout;
    assert!(
        status.contains("token in a credential of the daemon's unit"),
        "{status}"
    );
    world.stop_serve(PATIENCE);
    let told = doctor(&world, 16, &[]);
    let login = found(&told, "login");
    assert!(login.starts_with("fail: none is stored"), "{login}");
}

/// A38: it runs in the merchant's shell.
#[test]
fn a_script_that_will_not_run_for_the_service_is_found() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    let script = world.dir().join("hooks/fulfil.sh");
    let mode = |mode| fs::set_permissions(&script, Permissions::from_mode(mode)).expect("ours");
    mode(0o666);
    let told = doctor(&world, 16, &[]);
    assert!(
        found(&told, "hook").contains("anybody may change"),
        "{told:?}"
    );
    mode(0o644);
    fs::write(&script, "#!/usr/bin/env no-such-interpreter\n").expect("written");
    let told = doctor(&world, 16, &[]);
    assert!(
        found(&told, "hook").contains("`no-such-interpreter`, which is in none of the directories"),
        "{told:?}"
    );
    fs::write(&script, "true\n").expect("written");

    // The unit's sandbox, as systemd tells it.
    let bin = tempfile::tempdir().expect("a directory");
    let systemctl = bin.path().join("systemctl");
    let says = |text: &str| {
        fs::write(&systemctl, format!("#!/bin/sh\nprintf '{text}'\n")).expect("written");
        fs::set_permissions(&systemctl, Permissions::from_mode(0o755)).expect("ours");
    };
    says("LoadState=loaded\\nPrivateTmp=yes\\nProtectSystem=strict\\n");
    let path = format!("{}:/usr/bin:/bin", bin.path().display());
    let told = doctor(&world, 16, &[("PATH", &path)]);
    let unit = found(&told, "unit");
    assert!(
        world.dir().starts_with(Path::new("/tmp")),
        "where the scripts of tests are"
    );
    assert!(
        unit.starts_with("fail: fulfil: `/tmp/") && unit.contains("PrivateTmp=yes"),
        "{unit}"
    );
    // What runs a script is what its first line says, whatever its name.
    let (node, raise) = (bin.path().join("node"), bin.path().join("raise.sh"));
    fs::copy("/bin/true", &node).expect("a program");
    fs::write(&raise, format!("#!{}\n", node.display())).expect("written");
    fs::set_permissions(&raise, Permissions::from_mode(0o755)).expect("ours");
    let run = format!("[\"{}\"]", raise.display());
    let raised = [("PATH", path.as_str()), ("TILLD_ATTENTION__RUN", &run)];
    says("LoadState=loaded\\nMemoryDenyWriteExecute=yes\\n");
    let unit = found(&doctor(&world, 16, &raised), "unit");
    assert!(
        unit.starts_with("fail: ") && unit.contains("/node` makes code as it runs"),
        "{unit}"
    );
    says("LoadState=loaded\\nMemoryDenyWriteExecute=no\\n");
    let unit = found(&doctor(&world, 0, &raised), "unit");
    assert!(unit.starts_with("ok: "), "{unit}");
    says("LoadState=not-found\\n");
    let told = doctor(&world, 0, &[("PATH", &path)]);
    assert!(
        found(&told, "unit").starts_with("ok: not under systemd"),
        "{told:?}"
    );
}

#[test]
fn files_that_others_may_read_are_found() {
    let world = Setup::new().quiet().start();
    let ledger = world.ledger();
    fs::set_permissions(&ledger, Permissions::from_mode(0o644)).expect("ours");
    let told = doctor(&world, 16, &[]);
    let modes = found(&told, "permissions");
    assert!(
        modes.contains("has mode 0644") && modes.contains("chmod 0640 "),
        "{modes}"
    );
    fs::set_permissions(&ledger, Permissions::from_mode(0o640)).expect("ours");
    let credentials = world.state_dir().join("secret/credentials");
    fs::set_permissions(&credentials, Permissions::from_mode(0o644)).expect("ours");
    let told = doctor(&world, 16, &[]);
    assert!(found(&told, "login").starts_with("fail: "), "{told:?}");
    fs::set_permissions(&credentials, Permissions::from_mode(0o600)).expect("ours");
}

/// A program that may only read needs the files beside the ledger too.
#[test]
fn a_ledger_its_readers_cannot_open_is_found() {
    let mut world = Setup::new().quiet().start();
    world.pay("A-1");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let told = doctor(&world, 16, &[]);
    assert!(found(&told, "ledger").starts_with("ok: "), "{told:?}");
    let index = world.state_dir().join("ledger.db-shm");
    fs::set_permissions(&index, Permissions::from_mode(0o600)).expect("ours");
    let narrow = found(&doctor(&world, 16, &[]), "ledger");
    assert!(narrow.contains("warn: the readers' group"), "{narrow}");
    assert!(narrow.contains("(chmod 0640 "), "{narrow}");
    fs::set_permissions(&index, Permissions::from_mode(0o640)).expect("ours");
    let told = doctor(&world, 16, &[]);
    assert!(!found(&told, "ledger").contains("readers"), "{told:?}");
}
