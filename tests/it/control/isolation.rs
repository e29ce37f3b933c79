//! What the shop's user can reach of tilld: the socket, and nothing else. Needs root, which becomes that user.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::{Engine as _, engine::general_purpose};
use serde_json::json;

use super::client::{Stream, wish};
use crate::harness::{Setup, World, skip};

/// A user without any right, as numbers: nobody needs to be there by name.
const SHOP: &str = "64123";
/// The group whose members may connect.
const CLIENTS: &str = "users";

/// What a command of the shop's user, who is in this group alone, said and how it ended.
fn as_user(groups: &str, command: &[&str]) -> (bool, String) {
    let ids = [
        format!("--reuid={SHOP}"),
        format!("--regid={SHOP}"),
        groups.to_owned(),
    ];
    let mut setpriv = Command::new("/usr/bin/setpriv");
    let ran = setpriv.args(ids).args(command).output().expect("it starts");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    (ran.status.success(), said)
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_owned()];
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Anybody may go through the directories above the socket, as through `/run`.
fn open_to_all(dir: &Path) {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).expect("own directory");
}

fn lacks() -> Option<&'static str> {
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    if !rustix::process::geteuid().is_root() {
        Some("only root becomes another user")
    } else if !Path::new("/usr/bin/setpriv").exists() || !Path::new("/usr/bin/curl").exists() {
        Some("there is no setpriv or no curl")
    } else if !groups.lines().any(|line| line.starts_with("users:")) {
        Some("there is no group `users`")
    } else {
        None
    }
}

#[test]
fn the_shops_user_reaches_the_socket_and_no_file() {
    if let Some(lacks) = lacks() {
        skip!("{lacks}");
    }
    let run = tempfile::tempdir().expect("a directory");
    open_to_all(run.path());
    let socket = run.path().join("control.sock").display().to_string();
    let world = Setup::new()
        .quiet()
        .set("control.socket", format!("{socket:?}"))
        .set("control.group", format!("{CLIENTS:?}"))
        .start();
    open_to_all(world.dir());
    world.create("A-1");
    let clients = sockets_group();
    let member = format!("--groups={clients}");
    let ask = |groups: &str, target: &str, body: &str| {
        let url = format!("http://tilld{target}");
        let mut curl = vec![
            "/usr/bin/curl",
            "-sS",
            "--fail",
            "--unix-socket",
            &socket,
            &url,
        ];
        if !body.is_empty() {
            curl.extend(["-d", body]);
        }
        as_user(groups, &curl)
    };
    let (is_served, told) = ask(&member, "/v1/invoices/A-1", "");
    assert!(is_served && told.contains("A-1"), "{told}");
    let body = wish("A-2", &json!("599.80"));
    assert!(ask(&member, "/v1/invoices", &body).0);
    for target in ["/v1/invoices/A-1", "/v1/status"] {
        assert!(
            !ask("--clear-groups", target, "").0,
            "a stranger was served {target}"
        );
    }

    let all = files(&world.state_dir());
    assert!(all.len() > 4, "{all:?}");
    let readable = |groups: &str, path: &Path| {
        let path = path.display().to_string();
        let tries = if Path::new(&path).is_dir() {
            ["/bin/ls"]
        } else {
            ["/bin/cat"]
        };
        as_user(groups, &[tries.as_slice(), &[&path]].concat()).0
    };
    for path in &all {
        assert!(!readable(&member, path), "{} is read", path.display());
        let path = path.display().to_string();
        let write = format!("exec 3>>'{path}'");
        assert!(
            !as_user(&member, &["/bin/sh", "-c", &write]).0,
            "{path} is written"
        );
    }
    // The search is one: whoever is in the readers' group, the daemon's own here, reads the ledger, and no secret.
    let reader = format!("--groups={}", rustix::process::getegid().as_raw());
    assert!(readable(&reader, &world.ledger()), "readers read it");
    let secret = world.state_dir().join("secret");
    for path in all.iter().filter(|path| path.starts_with(&secret)) {
        assert!(!readable(&reader, path), "{} is read", path.display());
    }
    let write = format!("exec 3>>'{}'", world.ledger().display());
    assert!(
        !as_user(&reader, &["/bin/sh", "-c", &write]).0,
        "readers write"
    );
}

fn sockets_group() -> String {
    let groups = fs::read_to_string("/etc/group").expect("groups");
    let line = groups.lines().find(|line| line.starts_with("users:"));
    let id = line.and_then(|line| line.split(':').nth(2));
    id.expect("a number").to_owned()
}

/// Everything the calls answer, whatever they are asked.
fn answers(world: &World) -> Vec<String> {
    let mut all = Vec::new();
    let mut ask = |method: &str, target: &str, body: &str| {
        let answer = world.call(method, target, body);
        all.push(format!("{answer:?}"));
    };
    let (good, bad) = (wish("A-1", &json!("599.80")), wish("A-1", &json!("600")));
    for body in [good.as_str(), bad.as_str(), "{"] {
        ask("POST", "/v1/invoices", body);
    }
    for name in ["A-1", "A-2", "A-3", "nobody"] {
        ask("GET", &format!("/v1/invoices/{name}"), "");
        ask("GET", &format!("/v1/invoices/{name}/wait?timeout=0"), "");
        ask("POST", &format!("/v1/invoices/{name}/poll"), "");
    }
    for target in [
        "/v1/invoices",
        "/v1/events?after=0",
        "/v1/status",
        "/v1/openapi.json",
        "/v1",
    ] {
        ask("GET", target, "");
    }
    let mut stream = Stream::follow(&world.control_socket(), "/v1/events?after=0", &[]);
    let told = stream.next().expect("an event");
    all.push(format!("{told:?}"));
    all
}

#[test]
fn no_answer_holds_a_secret() {
    let world = Setup::new().quiet().start();
    let first = world.create("A-1");
    world.pay("A-2");
    let credentials = fs::read_to_string(world.state_dir().join("secret/credentials"));
    let access = crate::secrets::access_token(&credentials.expect("stored"));
    // A service that gives back what it was sent: the access token, and the notify token in its document.
    let echo = json!({ "error": format!("Bearer {access}"), "token": first.token }).to_string();
    world.faults(&json!({ "drop_create_answer": 1 }));
    let mut all = vec![format!("{:?}", world.wish("A-3"))];
    for endpoint in ["create", "fetch"] {
        let fault = json!({ "endpoint": endpoint, "status": 500, "body": echo, "times": 3 });
        world.faults(&json!({ "api_status": fault }));
        all.push(format!("{:?}", world.wish("A-4")));
        all.extend(answers(&world));
    }
    let holder = first.with(&json!({ "notificationToken": first.token, "status": "step" }));
    let told = holder.to_string();
    assert_eq!(world.tell(&first, &told).status / 100, 2);
    all.extend(answers(&world));
    let all = all.concat();

    assert!(
        all.contains("A-2") && all.contains("paid"),
        "the calls were answered"
    );
    let key = fs::read(world.state_dir().join("secret/ledger-key")).expect("a key");
    let mut secrets = vec![
        ("the access token", access.clone()),
        ("the key", general_purpose::STANDARD.encode(&key)),
        (
            "the key as it lies there",
            String::from_utf8_lossy(&key).trim().to_owned(),
        ),
    ];
    let (_, after_colon) = access.split_once(':').unwrap_or(("", &access));
    secrets.push(("part of the access token", after_colon.to_owned()));
    for issued in world.all_issued() {
        secrets.push(("a notify token", issued.token));
    }
    for (what, secret) in secrets {
        assert!(secret.len() > 6, "{what} is too short to be searched for");
        assert!(!all.contains(&secret), "{what} was told");
    }
}
