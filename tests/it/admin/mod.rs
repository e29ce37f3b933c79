//! The admin listener through the real program: whether it works, its figures, its page. What is at stake: a watch that asks
//! must hear the truth, and nobody may learn a secret or change a thing by asking.

mod alarms;
mod figures;
mod meter;
mod unserved;

use std::net::SocketAddr;

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Answer, PATIENCE, Setup, World, request_to, wait_for, wait_until};

/// A setup with the listener on a free port.
pub(crate) fn setup() -> Setup {
    Setup::new().set("admin.listen", "\"127.0.0.1:0\"")
}

/// Where it listens.
#[track_caller]
pub(crate) fn place(world: &World) -> SocketAddr {
    wait_for(PATIENCE, "the log to say where it is", || {
        let log = world.serve_log();
        let (_, behind) = log.split_once("tells how it is on http://")?;
        behind.split('/').next()?.parse().ok()
    })
}

/// Asks there, as a program of this machine does.
#[track_caller]
pub(crate) fn get(world: &World, path: &str) -> Answer {
    let place = place(world);
    request_to(&place.to_string(), place, "GET", path, &[], "")
}

#[test]
fn it_is_healthy_and_ready_and_says_why_when_it_is_not() {
    let world = setup().quiet().set("ledger.busy_budget_ms", 500).start();
    let healthy = get(&world, "/healthz");
    assert_eq!((healthy.status, healthy.body.as_str()), (200, "ok\n"));
    wait_until(PATIENCE, "all to be ready", || {
        get(&world, "/readyz").status == 200
    });
    let told = get(&world, "/readyz").body;
    assert_eq!(
        told,
        "running: ok\nledger: ok\nlogin: ok\npoller: ok\nsockets: ok\n"
    );

    // Another program that keeps the write lock: no notification could be stored, so it is not healthy.
    let neighbour = world.neighbour();
    neighbour.hold();
    let held = get(&world, "/healthz");
    assert_eq!(held.status, 503, "{held:?}");
    assert!(held.body.contains("lock"), "{held:?}");
    let held = get(&world, "/readyz");
    assert_eq!(held.status, 503, "{held:?}");
    assert!(held.body.contains("running: ok\n"), "{held:?}");
    neighbour.let_go();
    wait_until(PATIENCE, "the ledger to have stored something", || {
        get(&world, "/healthz").status == 200
    });
}

#[test]
fn it_answers_to_this_machine_alone_and_changes_nothing() {
    let world = setup().quiet().start();
    let place = place(&world);
    let ask = |host: &str, method: &str, path: &str| {
        request_to(host, place, method, path, &[], "").status
    };
    let own = place.to_string();
    for host in ["evil.example", "10.0.0.1:9464", "localhost.evil.example"] {
        assert_eq!(ask(host, "GET", "/"), 421, "{host}");
        assert_eq!(ask(host, "GET", "/metrics"), 421, "{host}");
    }
    assert_eq!(ask("localhost:1", "GET", "/"), 200);
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        assert_eq!(ask(&own, method, "/"), 405, "{method}");
        assert_eq!(ask(&own, method, "/healthz"), 405, "{method}");
    }
    assert_eq!(ask(&own, "GET", "/elsewhere"), 404);
}

#[test]
fn a_unix_socket_tells_the_same_to_those_who_may_connect() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("admin.sock");
    let world = Setup::new()
        .quiet()
        .set(
            "admin.listen",
            format!("{:?}", socket.display().to_string()),
        )
        .start();
    let about = std::fs::metadata(&socket).expect("a socket");
    let mode = std::os::unix::fs::PermissionsExt::mode(&about.permissions());
    assert_eq!(mode & 0o777, 0o660);
    let mut stream = std::os::unix::net::UnixStream::connect(&socket).expect("it listens");
    let asked = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    std::io::Write::write_all(&mut stream, asked.as_bytes()).expect("it reads");
    let told = std::io::read_to_string(&mut stream).expect("it answers");
    assert!(
        told.starts_with("HTTP/1.1 200 ") && told.ends_with("\r\n\r\nok\n"),
        "{told}"
    );
    drop(world);
}

/// A stop may take as long as a hook: whoever asks meanwhile hears that, and not that nobody is there.
#[test]
fn while_it_stops_it_is_healthy_and_not_ready() {
    let mut world = setup()
        .quiet()
        .set("outbox.drain_s", 20)
        .hook(
            "slow",
            &["paid"],
            "echo begun >> \"$1\"; while [ ! -e \"$1.go\" ]; do sleep 0.05; done",
        )
        .start();
    let place = place(&world);
    world.pay("A-1");
    wait_until(PATIENCE, "the hook to run", || {
        !world.hook_log("slow").is_empty()
    });
    world.ask_to_stop();
    let told = wait_for(PATIENCE, "it to stop", || {
        let told = request_to(&place.to_string(), place, "GET", "/readyz", &[], "");
        (told.status == 503).then_some(told.body)
    });
    assert!(told.starts_with("running: tilld stops\n"), "{told}");
    std::fs::write(world.dir().join("hooks/slow.log.go"), "").expect("written");
    assert_eq!(world.serve_ends(PATIENCE), 0);
}

#[test]
fn the_page_shows_who_found_what_and_what_needs_a_person() {
    let world = setup()
        .set("outbox.schedule_s", "[0]")
        .hook("fails", &["paid"], "exit 1")
        .start();
    let paid = world.pay("A-told");
    world.settle();
    // Nobody tells of this one: asking finds it.
    world.faults(&json!({ "lose": true }));
    let lost = world.create("<b>&lost");
    world.dictate(&lost, "paid");
    wait_until(PATIENCE, "it to be found", || {
        world.invoice("<b>&lost", "found_by") == "poll"
    });
    world.settle();
    let page = get(&world, "/");
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap_or_default();
    assert!(
        policy.contains("default-src 'none'") && !policy.contains("script"),
        "{policy}"
    );
    let page = page.body;
    for part in [
        "<strong>1 of 2</strong> changes were not told by a notification but found by asking: 50.0 %",
        "2 opened, 2 paid, 0 failed",
        "&lt;b&gt;&amp;lost",
        "<strong>abandoned</strong>",
        "<code>tilld delivery retry EVENT</code>",
        "role=\"img\" aria-labelledby=\"chart-title chart-desc\"",
        "2 given up.",
        "<td data-head=\"Found by\">asking</td>",
        "<td data-head=\"Found by\">notification</td>",
    ] {
        assert!(page.contains(part), "`{part}` is missing in: {page}");
    }
    assert!(
        !page.contains("<b>&") && !page.contains("<script"),
        "{page}"
    );
    let secrets = [&paid.token, &paid.reference, &lost.token];
    let requisites = world.value("SELECT coalesce(max(requisites), 'none') FROM invoice");
    for secret in secrets {
        assert!(!page.contains(secret.as_str()), "{page}");
    }
    assert!(
        !requisites.is_empty() && !page.contains(&requisites),
        "{page}"
    );
    assert_eq!(get(&world, "/style.css").status, 200);
}

/// What nobody reads must not stop the process that is watched.
#[test]
fn a_stopped_process_answers_nothing() {
    let world = setup().quiet().start();
    let place = place(&world);
    world.signal_serve(Signal::STOP);
    let socket = std::net::TcpStream::connect(place).expect("the kernel answers");
    let short = std::time::Duration::from_millis(300);
    socket
        .set_read_timeout(Some(short))
        .expect("a socket option");
    let asked = format!("GET /healthz HTTP/1.1\r\nHost: {place}\r\n\r\n");
    std::io::Write::write_all(&mut &socket, asked.as_bytes()).expect("the kernel takes it");
    let heard = std::io::Read::read(&mut &socket, &mut [0; 16]);
    world.signal_serve(Signal::CONT);
    assert!(heard.is_err(), "{heard:?}");
    assert_eq!(get(&world, "/healthz").status, 200);
}
