//! The socket itself: where it is, who may connect, what lay there before, and whom the log names.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use rustix::fs::{FlockOperation, flock};

use super::client::Line;
use crate::harness::{PATIENCE, Setup, World, request, skip};

/// Listens, and becomes the program with the socket handed over as systemd does.
const ACTIVATES: &str = r#"
use Socket; use POSIX ();
$^F = 255;
my ($path, @program) = @ARGV;
socket(my $socket, PF_UNIX, SOCK_STREAM, 0) or die $!;
bind($socket, sockaddr_un($path)) or die $!;
listen($socket, 64) or die $!;
POSIX::dup2(fileno($socket), 3);
@ENV{qw(LISTEN_PID LISTEN_FDS LISTEN_FDNAMES)} = ($$, 1, "control");
exec @program or die $!;
"#;

fn mode(path: &Path) -> u32 {
    fs::metadata(path)
        .expect("it is there")
        .permissions()
        .mode()
        & 0o777
}

fn group(name: &str) -> Option<u32> {
    let groups = fs::read_to_string("/etc/group").expect("groups");
    let id = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())
    });
    id.flatten()
}

fn asks(socket: &Path) -> u16 {
    Line::ask(socket, "GET", "/v1/status", &[], "")
        .answer()
        .expect("an answer")
        .status
}

#[test]
fn the_socket_is_the_groups_alone_unless_the_settings_say_otherwise() {
    let world = Setup::new().quiet().start();
    assert_eq!(mode(&world.control_socket()), 0o660);
    drop(world);

    let Some(users) = group("users") else {
        skip!("there is no group `users`");
    };
    if !rustix::process::geteuid().is_root() {
        skip!("only root gives a file to any group");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("shop.sock");
    let world = Setup::new()
        .quiet()
        .set(
            "control.socket",
            format!("{:?}", socket.display().to_string()),
        )
        .set("control.group", "\"users\"")
        .set("control.mode", "\"0620\"")
        .start();
    assert_eq!(mode(&socket), 0o620);
    assert_eq!(fs::metadata(&socket).expect("there").gid(), users);
    assert_eq!(asks(&socket), 200);
    assert!(!world.control_socket().exists(), "there is one");
}

#[test]
fn what_a_killed_or_stopped_daemon_leaves_is_replaced() {
    let mut world = Setup::new().quiet().start();
    let socket = world.control_socket();
    world.kill9_serve();
    assert!(socket.exists(), "nobody was left to remove it");
    world.start_serve();
    assert_eq!(asks(&socket), 200);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    assert!(UnixStream::connect(&socket).is_err(), "nobody answers");
    world.start_serve();
    assert_eq!(asks(&socket), 200);
}

#[test]
fn what_is_somebody_elses_is_left_alone() {
    let world = Setup::new().quiet().not_served().start();
    let socket = world.control_socket();
    fs::write(&socket, "notes").expect("written");
    let refused = world.tilld(&["serve"]).ends_with(15);
    assert!(refused.stderr.contains("is no socket"), "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("hint: remove it, or set `control.socket`"),
        "{refused:?}"
    );
    assert_eq!(fs::read_to_string(&socket).expect("there"), "notes");

    fs::remove_file(&socket).expect("removed");
    let other = UnixListener::bind(&socket).expect("bound");
    let refused = world.tilld(&["serve"]).ends_with(11);
    assert!(
        refused.stderr.contains("another program listens on"),
        "{refused:?}"
    );
    drop(other);

    // One that starts at this very moment has the lock, and may be about to listen.
    let lock = fs::File::create(socket.with_extension("sock.lock")).expect("made");
    flock(&lock, FlockOperation::LockExclusive).expect("locked");
    let refused = world.tilld(&["serve"]).ends_with(11);
    assert!(
        refused.stderr.contains("another program listens on"),
        "{refused:?}"
    );
    drop(lock);

    let long = "x".repeat(120);
    let refused = world.tilld_with(
        &[("RUNTIME_DIRECTORY", &format!("/run/{long}"))],
        &["serve"],
    );
    assert_eq!(refused.code, 10, "{refused:?}");
    assert!(refused.stderr.contains("at most 107"), "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("hint: set `control.socket` to a shorter path"),
        "{refused:?}"
    );

    let nobody = [("TILLD_CONTROL__GROUP", "no-such-group-here")];
    let refused = world.tilld_with(&nobody, &["serve"]).ends_with(10);
    assert!(
        refused
            .stderr
            .contains("there is no group `no-such-group-here`"),
        "{refused:?}"
    );
}

#[test]
fn a_socket_that_systemd_hands_over_is_served_as_it_is() {
    if !Path::new("/usr/bin/perl").exists() {
        skip!("there is no perl to hand a socket over");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("handed.sock");
    let path = socket.display().to_string();
    let mut world = Setup::new()
        .quiet()
        .set("control.mode", "\"0600\"")
        .under(&["/usr/bin/perl", "-e", ACTIVATES, &path])
        .start();
    assert_eq!(asks(&socket), 200);
    assert_ne!(mode(&socket), 0o600, "its mode is systemd's to choose");
    assert!(!world.control_socket().exists(), "there is one");
    assert!(world.serve_log().contains(&path), "the log says where");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let left = fs::symlink_metadata(&socket).expect("systemd's to remove");
    assert!(left.file_type().is_socket());
}

/// A start that waited for room would never come to an end.
#[test]
fn a_socket_whose_program_takes_nobody_up_is_somebody_elses() {
    let world = Setup::new().quiet().not_served().start();
    let socket = world.control_socket();
    let address = SocketAddrUnix::new(&socket).expect("a short path");
    let of_kind = |flags| socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let busy = of_kind(SocketFlags::CLOEXEC).expect("a socket");
    bind(&busy, &address).expect("bound");
    listen(&busy, 0).expect("it listens");
    let mut waiting = Vec::new();
    loop {
        let next = of_kind(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK).expect("a socket");
        match connect(&next, &address) {
            Ok(()) => waiting.push(next),
            Err(error) => break assert_eq!(error, Errno::WOULDBLOCK),
        }
    }
    let refused = world.tilld(&["serve"]).ends_with(11);
    assert!(
        refused.stderr.contains("another program listens on"),
        "{refused:?}"
    );
}

/// Sockets of the internet on which a process listens.
fn listens(pid: u32) -> usize {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
    let own: Vec<String> = links
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .map(|link| link.display().to_string())
        .collect();
    let of = |table: &str| {
        let text = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        let listening = |line: &str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let inode = format!("socket:[{}]", fields.get(9).unwrap_or(&""));
            fields.get(3) == Some(&"0A") && own.contains(&inode)
        };
        text.lines().filter(|line| listening(line)).count()
    };
    of("tcp") + of("tcp6")
}

#[test]
fn nothing_of_it_is_served_on_a_port() {
    let world = Setup::new().quiet().start();
    assert_eq!(listens(world.serve_pid()), 1, "the listener's");
    for target in ["/v1/status", "/v1/events", "/v1/invoices"] {
        let answer = request(world.listen(), "GET", target, &[], "");
        assert_eq!(answer.status, 404, "{target}: {answer:?}");
    }
}

#[test]
fn the_log_names_who_asked_and_nothing_else_of_it() {
    let world = Setup::new().quiet().start();
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let pid = std::process::id();
    assert_eq!(world.wish("A-1").status, 201);
    let query = "/v1/events?after=0&order_id=order-that-is-nobodys-else";
    assert_eq!(world.call("GET", query, "").status, 200);
    let who = format!("for uid {} gid {} pid {pid}", uid.as_raw(), gid.as_raw());
    let log = world.serve_log();
    for line in ["POST /v1/invoices: 201, ", "GET /v1/events: 200, "] {
        let wanted = format!("{line}{who}");
        assert!(log.contains(&wanted), "{wanted}: {log}");
    }
    assert!(!log.contains("order-that-is-nobodys-else"), "{log}");
}

/// Nothing on a network reaches the socket, and no browser does: whoever can connect may say any name there.
#[test]
fn any_host_is_as_good_as_another() {
    let world: World = Setup::new().quiet().start();
    for host in ["evil.example", "localhost", "tilld"] {
        let mut line = Line::open(&world.control_socket());
        line.send(&format!("GET /v1/status HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(line.answer().expect("an answer").status, 200, "{host}");
    }
}
