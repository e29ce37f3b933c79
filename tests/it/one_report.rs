//! One set of facts: what one command, page or check says is wrong, no other calls well. What is at stake: a merchant who looks in
//! one place and is told that all is well while money waits.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::admin;
use crate::harness::{PATIENCE, Setup, World, wait_until, write_secret};
use crate::service_out::alert;

/// A lost name is bound again within this, and no command takes longer, whatever the daemon does.
const A_MINUTE: Duration = Duration::from_mins(1);

/// What doctor says of a check that fails.
fn fails(world: &World, check: &str) -> String {
    let found = world.tilld(&["doctor", "--json"]).ends_with(16).json();
    let all = found.as_array().expect("a list");
    let of = |one: &&Value| one["check"] == check && one["state"] == "fail";
    let texts = all.iter().filter(of).map(|one| one["told"].to_string());
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_daemon_that_stands_still_is_not_called_well() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    wait_until(PATIENCE, "all to be well", || {
        world.tilld(&["status"]).code == 0
    });
    world.signal_serve(Signal::STOP);
    let told = alert(&world, "daemon");
    let said = world.tilld(&["status"]).ends_with(16).stdout;
    let failed = fails(&world, "daemon");
    world.signal_serve(Signal::CONT);
    assert!(told.is_some_and(|told| told.contains("within 2 s")));
    assert!(said.contains("running, but it does not answer"), "{said}");
    assert!(failed.contains("does not answer"), "{failed}");
    wait_until(PATIENCE, "all to be well", || {
        world.tilld(&["status"]).code == 0
    });
}

#[test]
fn every_command_ends_beside_a_daemon_that_stands_still() {
    let world = Setup::new()
        .plain()
        .noting_hook("fulfil", &["paid"])
        .start();
    let first = world.create("A-1");
    let id = first.id.as_str();
    world.signal_serve(Signal::STOP);
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let (copy, missing, token) = (file("copy.db"), file("missing.db"), file("token"));
    write_secret(Path::new(&token), &first.token);
    let create = "invoice create --amount 10 --currency RUB --method SBP --order";
    let socket = world.control_socket();
    let over = format!("--socket {}", socket.display());
    let lines = [
        format!("{create} A-2"),
        format!("invoice track A-3 --id x --amount 1 --currency RUB --token-file {token}"),
        format!("invoice adopt A-1 --id {id}"),
        format!("db backup {copy}"),
        format!("db restore {missing}"),
        format!("{create} A-4 {over}"),
        format!("invoice show A-1 {over}"),
        format!("invoice list {over}"),
        format!("invoice poll A-1 {over}"),
        format!("event list {over}"),
        format!("status {over}"),
    ];
    let others = [
        "invoice show A-1",
        "invoice list",
        "invoice wait A-1 --timeout 1",
        "invoice poll A-1",
        "invoice accept-amount A-1 --amount 1",
        "event list",
        "delivery list",
        "delivery show 1",
        "delivery retry 1",
        "delivery replay 1",
        "delivery release --all",
        "delivery abandon --all --hook fulfil",
        "control openapi",
        "refusal list",
        "hook list",
        "hook test fulfil",
        "db check",
        "db prune",
        "db schema",
        "explain A-1",
        "doctor",
        "status",
        "ack --all",
        "whoami --check",
        "serve --check",
        "logout",
    ];
    let lines = lines.iter().map(String::as_str).chain(others);
    let lines: Vec<Vec<&str>> = lines.map(|line| line.split(' ').collect()).collect();
    let began = Instant::now();
    let running = lines.iter().map(|line| (line, world.start_tilld(line)));
    for (line, mut command) in running.collect::<Vec<_>>() {
        let left = A_MINUTE.saturating_sub(began.elapsed());
        let code = command.wait(left.max(Duration::from_secs(1)));
        let said = command.stderr();
        assert!(code != 2 && !said.contains("panicked"), "{line:?}: {said}");
    }
    world.signal_serve(Signal::CONT);
}

fn about(path: &Path) -> (u32, u32) {
    let about = fs::metadata(path).expect("it is there");
    (about.permissions().mode(), about.gid())
}

/// Something takes the place of a socket that was removed, and goes away again.
#[test]
fn a_socket_that_lost_its_name_is_an_alert_and_gets_it_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let watch = dir.path().join("admin.sock");
    let world = Setup::new()
        .quiet()
        .set("admin.listen", format!("{:?}", watch.display().to_string()))
        .set("control.mode", "\"0620\"")
        .start();
    wait_until(PATIENCE, "all to be well", || {
        world.tilld(&["status"]).code == 0
    });
    let shop = world.control_socket();
    let before = about(&shop);
    for socket in [&shop, &watch] {
        fs::remove_file(socket).expect("removed");
        fs::create_dir(socket).expect("made");
    }
    let told = alert(&world, "daemon").expect("it cannot be asked");
    assert!(told.contains("control.sock"), "{told}");
    wait_until(A_MINUTE, "the daemon to see it", || {
        world
            .serve_log()
            .matches("no client can connect to")
            .count()
            == 2
    });
    fs::remove_dir(&shop).expect("removed");
    wait_until(A_MINUTE, "the shop's to be back", || {
        alert(&world, "daemon").is_none()
    });
    assert_eq!(about(&shop), before);
    let told = alert(&world, "socket_lost").expect("the other is lost");
    assert!(
        told.contains("admin.sock") && told.contains("is no socket"),
        "{told}"
    );
    fs::remove_dir(&watch).expect("removed");
    wait_until(A_MINUTE, "the other to be back", || {
        alert(&world, "socket_lost").is_none()
    });
    world.tilld(&["status"]).ends_with(0);
    assert!(UnixStream::connect(&watch).is_ok());
}

/// A socket that systemd made: only systemd makes it as its unit says.
#[test]
fn a_socket_of_systemd_that_lost_its_name_is_an_alert() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("control.sock");
    let held = UnixListener::bind(&socket).expect("bound");
    let world = Setup::new().quiet().holding(held, "control").start();
    wait_until(PATIENCE, "all to be well", || {
        world.tilld(&["status"]).code == 0
    });
    fs::remove_file(&socket).expect("removed");
    let told = alert(&world, "daemon").expect("it cannot be asked");
    assert!(told.contains("control.sock"), "{told}");
    wait_until(A_MINUTE, "the daemon to see it", || {
        world
            .serve_log()
            .contains("its file is gone, and systemd makes it")
    });
    assert!(!socket.exists());
}

/// The shop's token is revoked in the cabinet.
#[test]
fn a_rejected_login_is_told_alike_everywhere() {
    let world = admin::setup().start();
    world.create("A-1");
    wait_until(PATIENCE, "all to be ready", || {
        admin::get(&world, "/readyz").status == 200
    });
    world.control("POST", "/tokens/revoke", &json!({}));
    wait_until(PATIENCE, "the alert", || alert(&world, "login").is_some());
    let told = alert(&world, "login").expect("it stands");
    let ready = admin::get(&world, "/readyz");
    assert_eq!(ready.status, 503, "{ready:?}");
    assert!(
        ready.body.contains("login: the service refuses it"),
        "{ready:?}"
    );
    let figures = admin::get(&world, "/metrics").body;
    assert!(figures.contains("\ntilld_needs_person 1\n"), "{figures}");
    let page = admin::get(&world, "/").body;
    assert!(page.contains("One thing needs a person"), "{page}");
    let failed = fails(&world, "alerts");
    assert!(failed.contains(&told), "{failed}");
}
