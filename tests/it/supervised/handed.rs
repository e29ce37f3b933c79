//! The public listener's socket held by systemd: a restart refuses nobody, and what was accepted is answered.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use super::{logs, sockets};
use crate::harness::{Answer, Issued, PATIENCE, Setup, Wire, World, head, wait_until};

/// Restarts under load, the last by `kill -9`.
const RESTARTS: u32 = 4;
const SENDERS: u32 = 4;

/// One notification on a connection of its own; `None` when it ended without an answer.
fn sends(address: SocketAddr, issued: &Issued) -> Option<Answer> {
    let body = issued.object.to_string();
    let headers = [
        ("Content-Type", "application/json"),
        ("X-Notification-Token", issued.token.as_str()),
    ];
    let target = World::target(&issued.reference);
    let mut wire = Wire::open(address);
    let head = head("shop.example", "POST", &target, &headers, Some(body.len()));
    wire.try_send(&(head + &body));
    wire.answer()
}

#[test]
fn a_restart_under_load_loses_no_request() {
    let mut world = Setup::new().quiet().holding_port("notifications").start();
    logs(&world, "tilld serves on ");
    let issued = world.create("A-1");
    let address = world.listen();
    let (is_over, killed) = (AtomicBool::new(false), AtomicBool::new(false));
    let (answered, again) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|_| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        let answer = sends(address, &issued).or_else(|| {
                            // Only a process that was killed with it in its hands leaves one unanswered, and the sender comes
                            // again.
                            assert!(killed.load(Ordering::SeqCst), "unanswered at a stop");
                            again.fetch_add(1, Ordering::SeqCst);
                            sends(address, &issued)
                        });
                        let status = answer.map(|answer| answer.status);
                        assert_eq!(status, Some(200));
                        answered.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        for restart in 1..=RESTARTS {
            let before = answered.load(Ordering::SeqCst);
            wait_until(PATIENCE, "a load", || {
                senders.iter().any(thread::ScopedJoinHandle::is_finished)
                    || answered.load(Ordering::SeqCst) > before + 20
            });
            if restart < RESTARTS {
                assert_eq!(world.stop_serve(PATIENCE), 0);
            } else {
                killed.store(true, Ordering::SeqCst);
                world.kill9_serve();
            }
            world.start_serve();
        }
        let before = answered.load(Ordering::SeqCst);
        wait_until(PATIENCE, "a load", || {
            senders.iter().any(thread::ScopedJoinHandle::is_finished)
                || answered.load(Ordering::SeqCst) > before + 20
        });
        is_over.store(true, Ordering::SeqCst);
    });
    assert!(again.load(Ordering::SeqCst) <= SENDERS);
}

/// At stake: who was accepted waits with nobody, for no other process can take the connection up (A18).
#[test]
fn what_was_accepted_is_answered_at_a_stop() {
    let mut world = Setup::new()
        .quiet()
        .set("listener.connections", 1)
        .set("ledger.busy_budget_ms", 20_000)
        .set("listener.drain_s", 20)
        .holding_port("notifications")
        .start();
    let issued = world.create("A-1");
    let (address, pid) = (world.listen(), world.serve_pid());
    let neighbour = world.neighbour();
    neighbour.hold();
    thread::scope(|scope| {
        let idle = sockets(pid);
        // The one place is taken by one that is being stored.
        let first = scope.spawn(|| sends(address, &issued));
        wait_until(PATIENCE, "the first", || sockets(pid) == idle + 1);
        let second = scope.spawn(|| sends(address, &issued));
        wait_until(PATIENCE, "the second, in hand", || sockets(pid) == idle + 2);
        // And one that waits for whoever comes next.
        let third = scope.spawn(|| sends(address, &issued));
        world.ask_to_stop();
        logs(&world, "tilld is asked to stop");
        neighbour.let_go();
        for (sent, name) in [(first, "first"), (second, "second")] {
            let answer = sent.join().expect("no panic");
            assert_eq!(answer.map(|answer| answer.status), Some(200), "{name}");
        }
        assert_eq!(world.serve_ends(PATIENCE), 0);
        world.start_serve();
        let answer = third.join().expect("no panic");
        assert_eq!(answer.map(|answer| answer.status), Some(200), "third");
    });
}

#[test]
fn a_unix_socket_is_served_as_well() {
    use std::io::{Read as _, Write as _};

    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("public.sock");
    let socket = UnixListener::bind(&path).expect("bound");
    // Without a name of ours: it is the only one.
    let world = Setup::new().quiet().holding(socket, "tilld.socket").start();
    logs(&world, &format!("tilld serves on {}", path.display()));
    let issued = world.create("A-1");
    let says = |token: &str| {
        let body = issued.object.to_string();
        let headers = [("X-Notification-Token", token), ("Connection", "close")];
        let target = World::target(&issued.reference);
        let head = head("shop.example", "POST", &target, &headers, Some(body.len()));
        let mut stream = UnixStream::connect(&path).expect("it listens");
        stream.write_all((head + &body).as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    assert!(says(&issued.token).starts_with("HTTP/1.1 200 "));
    assert!(says("wrong").starts_with("HTTP/1.1 401 "));
    wait_until(PATIENCE, "the refusal", || {
        world.sql("SELECT peer FROM refusal").concat() == ["unix"]
    });
}

#[test]
fn sockets_that_could_be_meant_otherwise_are_refused() {
    let port = || TcpListener::bind("127.0.0.1:0").expect("a port").into();
    for (socket, name, why, hint) in [
        (
            port(),
            "control",
            "the socket that was handed over as `control` is no listening Unix socket",
            "`ListenStream=` of the socket unit must be a path",
        ),
        (
            OwnedFd::from(std::net::UdpSocket::bind("127.0.0.1:0").expect("a port")),
            "notifications",
            "the socket that was handed over as `notifications` is no listening TCP or Unix socket",
            "must be a port, an address with a port, or a path",
        ),
    ] {
        let world = Setup::new()
            .quiet()
            .holding(socket, name)
            .not_served()
            .start();
        let refused = world.serve_refused();
        assert_eq!(refused.code, 10, "{refused:?}");
        assert!(refused.stderr.contains(why), "{refused:?}");
        assert!(refused.stderr.contains(hint), "{refused:?}");
    }
}
