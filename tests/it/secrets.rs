//! Where secrets are not (A21, A22): in no log at any level, no output, no command line, no environment, no plain text of
//! the ledger; and that the files which hold them are private. Each search is tried on a place where the secret is.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use base64::{Engine as _, engine::general_purpose};
use serde_json::{Value, json};

use crate::harness::{
    ACCESS_TOKEN, DEVICE_CODE, Heard, PATIENCE, Service, Setup, World, access_token, holding,
    wait_until,
};

const WRONG_TOKEN: &str = "a-wrong-token-that-was-presented-by-a-stranger";
/// Something the daemon was started with and no script is told.
const INHERITED: &str = "hunter2-of-the-shops-database";

fn nowhere(world: &World, what: &str, needle: &str, but: &[&str]) {
    assert!(
        needle.len() > 6,
        "{what}: `{needle}` is too short to be searched for"
    );
    let found = holding(world.dir(), needle, but);
    assert!(found.is_empty(), "{what} in {found:?}");
    for file in ["cmdline", "environ"] {
        let path = format!("/proc/{}/{file}", world.serve_pid());
        let bytes = fs::read(&path).expect("the daemon runs");
        assert!(
            !String::from_utf8_lossy(&bytes).contains(needle),
            "{what} in {path}"
        );
    }
}

/// Digits of the invoice's requisites.
fn phone(object: &Value) -> String {
    let text = object
        .get("dealRequisites")
        .and_then(Value::as_str)
        .expect("H2H");
    let requisites: Value = serde_json::from_str(text).expect("JSON");
    let phone = requisites.get("phoneNumber").and_then(Value::as_str);
    phone.expect("SBP").trim_start_matches('+').to_owned()
}

#[test]
fn secrets_stay_in_their_files_whatever_happens() {
    let failing =
        "env > \"$1\"; tr '\\0' ' ' < /proc/$PPID/environ >> \"$1.parent\"; env; env >&2; exit 1";
    let world = Setup::new()
        .set("log_level", "\"trace\"")
        .set("outbox.schedule_s", "[0]")
        .hook("tells", &["paid"], failing)
        .under(&["/usr/bin/env", &format!("SHOP_DB_PASSWORD={INHERITED}")])
        .start();
    let credentials =
        fs::read_to_string(world.state_dir().join("secret/credentials")).expect("stored");
    let access = access_token(&credentials);
    let invoice = world.create("A-1");

    // Asked and answered; then asked, and everything that was sent comes back in the answer.
    wait_until(PATIENCE, "a poll", || world.requests("fetch") > 0);
    let echo = json!({ "error": format!("bad: Authorization: Bearer {access}") }).to_string();
    let fault = |endpoint: &str| json!({ "api_status": { "endpoint": endpoint, "status": 500, "body": echo, "times": 1 } });
    let asked = world.requests("fetch");
    world.faults(&fault("fetch"));
    wait_until(PATIENCE, "more polls", || {
        world.requests("fetch") > asked + 1
    });
    world.faults(&fault("create"));
    let failed = world.try_create("A-2");
    assert_ne!(failed.code, 0, "{failed:?}");

    let body = invoice.saying("paid", &invoice.at(1));
    let wrong = [("X-Notification-Token", WRONG_TOKEN)];
    assert_eq!(world.notify(&invoice.reference, &wrong, &body).status, 401);
    let wrong = format!("Bearer {WRONG_TOKEN}");
    assert_eq!(
        world
            .notify(&invoice.reference, &[("Authorization", &wrong)], &body)
            .status,
        401
    );

    // An authentic one that carries its token in the body as well, and a hook that fails loudly.
    let invoice = world.dictate(&invoice, "paid");
    let body = invoice
        .with(&json!({ "notificationToken": invoice.token }))
        .to_string();
    assert_eq!(world.tell(&invoice, &body).status, 200);
    wait_until(PATIENCE, "the hook to be given up", || {
        world.value("SELECT count(*) FROM deliveries WHERE state = 'abandoned'") == "1"
    });
    assert_eq!(
        world.value("SELECT length(stdout) > 100 AND length(stderr) > 100 FROM attempt"),
        "1"
    );
    assert!(
        world.serve_log().contains("TRACE"),
        "this is the most verbose level"
    );

    nowhere(&world, "the access token", &access, &["/secret/"]);
    nowhere(&world, "the notify token", &invoice.token, &[]);
    nowhere(&world, "the wrong token", WRONG_TOKEN, &[]);
    // What the customer pays to is data: in the ledger and on stdout, and told to the hook on its standard input.
    let digits = phone(&invoice.object);
    nowhere(&world, "the phone number", &digits, &["/ledger.db", ".out"]);
    let sought = holding(&world.state_dir(), &digits, &[]);
    assert!(!sought.is_empty(), "the search finds what is there");
    assert_eq!(holding(&world.state_dir(), &access, &[]).len(), 1);

    told_to_the_hook(&world);
}

/// The hook's environment is made from nothing.
fn told_to_the_hook(world: &World) {
    let told = world.hook_log("tells");
    assert!(
        told.iter().any(|line| line == "TILLD_ORDER_ID=A-1"),
        "{told:?}"
    );
    let shells = ["PWD", "OLDPWD", "SHLVL", "_"];
    let given = ["PATH", "HOME", "LANG"];
    for line in &told {
        let name = line.split('=').next().unwrap_or_default();
        let known = name.starts_with("TILLD_") || shells.contains(&name) || given.contains(&name);
        assert!(known, "{line}");
    }
    // It is the daemon's: had it reached the hook, it would stand there.
    let environ = fs::read(format!("/proc/{}/environ", world.serve_pid())).expect("it runs");
    assert!(String::from_utf8_lossy(&environ).contains(INHERITED));
    let lines = holding(&world.dir().join("hooks"), INHERITED, &[".parent"]);
    assert!(lines.is_empty(), "{lines:?}");
}

/// A21, A11: a notification that carries its token in the document as well, in whatever wrapping, is kept without it.
#[test]
fn a_token_in_the_document_is_cut_out_in_every_wrapping() {
    let world = Setup::new()
        .quiet()
        .hook("told", &["*"], "cat >> \"$1\"")
        .start();
    let invoice = world.create("A-1");
    let token = invoice.token.as_str();
    let letters = token.chars().map(u32::from);
    let escaped: Vec<_> = letters.map(|letter| format!("\\u{letter:04x}")).collect();
    let escaped = escaped.concat();
    let wrap = |text: &str| Value::from(text).to_string();
    // Where the encoded token begins within three letters makes three different texts of it.
    let encoded =
        ["", "u", "u:"].map(|before| general_purpose::STANDARD.encode(format!("{before}{token}")));
    let cores = encoded
        .clone()
        .map(|text| text.chars().skip(4).take(24).collect::<String>());
    let mut wrapped = vec![
        wrap(token),
        format!("\"{escaped}\""),
        wrap(&format!("\"{escaped}\"")),
        wrap(&wrap(token)),
        format!("{{\"{token}\":[\"Bearer {token}\"]}}"),
    ];
    wrapped.extend(encoded.iter().map(|text| wrap(text)));
    let last = wrapped.len();
    for (field, first) in [("extra", 1), ("dealRequisites", 21), ("paymentUrl", 41)] {
        for (number, value) in wrapped.iter().enumerate() {
            let status = format!("{field}-{number}");
            let at = invoice.at_us(first + number);
            let fields = json!({ "status": status, "updatedAt": at, field: "MARK" });
            let body = invoice.with(&fields).to_string();
            let answer = world.tell(&invoice, &body.replace("\"MARK\"", value));
            assert_eq!(answer.status, 200, "{value}");
        }
    }
    world.settle();
    let kept = "SELECT count(*) FROM event WHERE raw LIKE '%[cut]%'";
    assert_eq!(world.value(kept), (3 * last).to_string());
    assert_eq!(world.hook_log("told").len(), 3 * last + 1);
    nowhere(&world, "the notify token", token, &[]);
    nowhere(&world, "the escaped token", &escaped, &[]);
    for core in &cores {
        nowhere(&world, "the encoded token", core, &[]);
    }
    let found = holding(&world.state_dir(), &invoice.id, &[]);
    assert!(!found.is_empty(), "the search finds what is there");
}

#[test]
fn a_service_that_says_everything_back_makes_nothing_of_it_known() {
    let service = Service::start(|heard: &Heard| {
        let Heard {
            line,
            headers,
            body,
        } = heard;
        (
            500,
            json!({ "error": format!("{line}{headers}{body}") }).to_string(),
        )
    });
    let world = Setup::new()
        .set("log_level", "\"trace\"")
        .service(&service.url())
        .start();
    let login = world.tilld(&["login"]);
    assert_eq!(login.code, 0, "{login:?}");
    let created = world.try_create("A-1");
    assert_ne!(created.code, 0, "{created:?}");
    assert!(created.stderr.contains("could not open"), "{created:?}");
    let shown = world.tilld(&["invoice", "show", "A-1", "--json"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    let heard = service.heard();
    let create = heard.last().expect("a create");
    assert!(
        create.headers.contains(ACCESS_TOKEN),
        "it was sent: {create:?}"
    );
    let body: Value = serde_json::from_str(&create.body).expect("JSON");
    let notify_token = body
        .get("notificationToken")
        .and_then(Value::as_str)
        .expect("sent");

    nowhere(&world, "the access token", ACCESS_TOKEN, &["/secret/"]);
    nowhere(&world, "the device code", DEVICE_CODE, &[]);
    nowhere(&world, "the notify token", notify_token, &[]);
}

#[test]
fn what_holds_secrets_is_private() {
    let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o7777;
    let umask = ["/bin/sh", "-c", "umask 022; exec \"$0\" \"$@\""];
    let world = Setup::new().quiet().under(&umask).start();
    let (state, secret) = (world.state_dir(), world.state_dir().join("secret"));
    let credentials = secret.join("credentials");
    assert_eq!(mode(&credentials), 0o600);
    // Looser than it should be, by somebody's restore: a login makes it private again.
    fs::set_permissions(&credentials, fs::Permissions::from_mode(0o644)).expect("our own file");
    world.login();
    world.create("A-1");
    for (path, wanted) in [
        (state.clone(), 0o750),
        (secret.clone(), 0o700),
        (credentials, 0o600),
        (secret.join("ledger-key"), 0o600),
        (state.join("ledger.db"), 0o640),
        (state.join("ledger.db-wal"), 0o640),
        (state.join("ledger.db-shm"), 0o640),
    ] {
        assert_eq!(
            format!("{:o}", mode(&path)),
            format!("{wanted:o}"),
            "{}",
            path.display()
        );
    }
    let names: Vec<_> = fs::read_dir(&secret).expect("a directory").collect();
    assert_eq!(names.len(), 2, "nothing half-written is left: {names:?}");
}
