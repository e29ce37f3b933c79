//! The command line of a user who may do nothing but connect to the control socket. What is at stake: a shop that gets along
//! without the access token, the key file and the ledger, and sees and says the same as one that has them.

mod alike;
mod away;
mod ends;
pub(crate) mod machine;
mod played;
mod rights;
mod unit;
mod untraced;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::json;

use crate::harness::{PATIENCE, Process, Ran, Setup, World, skip, wait_until};

/// The shop's user: a member of the clients' group and of no other.
pub(crate) const SHOP: [&str; 4] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];
/// Somebody else altogether.
pub(crate) const STRANGER: [&str; 4] = [
    "setpriv",
    "--reuid=65533",
    "--regid=65533",
    "--clear-groups",
];
/// A user who may read the ledger, and connects to nothing.
const READER: [&str; 6] = [
    "setpriv",
    "--reuid=65533",
    "--regid=0",
    "--clear-groups",
    "env",
    NOWHERE,
];
/// No daemon is asked.
const NOWHERE: &str = "TILLD_CONTROL__SOCKET=/nonexistent/control.sock";
/// The clients' group: every Debian has it, and nobody is a member.
const GROUP: &str = "nogroup";

/// A world whose control socket lies where others come to, and whose config and state do not concern them.
struct Booth {
    world: World,
    socket: String,
    _place: tempfile::TempDir,
}

/// Why this machine cannot play several users, if it cannot.
fn lacks() -> Option<&'static str> {
    let tried = Command::new(SHOP[0]).args(&SHOP[1..]).arg("true").output();
    if !tried.is_ok_and(|output| output.status.success()) {
        return Some("setpriv is not there or may not change the user");
    }
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let known = groups
        .lines()
        .any(|line| line.starts_with("nogroup:") && line.contains(":65534:"));
    (!known).then_some("there is no group `nogroup`")
}

/// How a command is run as somebody who knows of the socket by the environment alone: the config is not his to read.
fn by<'a>(user: &[&'a str], variable: &'a str) -> Vec<&'a str> {
    [user, &["env", variable]].concat()
}

impl Booth {
    fn start(setup: Setup) -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let open = fs::Permissions::from_mode(0o711);
        fs::set_permissions(place.path(), open.clone()).expect("own directory");
        let socket = place.path().join("control.sock").display().to_string();
        let world = setup
            .set("control.socket", format!("{socket:?}"))
            .set("control.group", format!("{GROUP:?}"))
            .start();
        fs::set_permissions(world.dir(), open).expect("own directory");
        let config = world.dir().join("config.toml");
        fs::set_permissions(config, fs::Permissions::from_mode(0o640)).expect("own file");
        Self {
            world,
            socket,
            _place: place,
        }
    }

    fn variable(&self) -> String {
        format!("TILLD_CONTROL__SOCKET={}", self.socket)
    }

    #[track_caller]
    fn shop(&self, args: &[&str]) -> Ran {
        let variable = self.variable();
        self.world.tilld_under(&by(&SHOP, &variable), args)
    }

    fn start_shop(&self, args: &[&str]) -> Process {
        let variable = self.variable();
        self.world.start_under(&by(&SHOP, &variable), args)
    }

    #[track_caller]
    fn open(&self, order: &str, more: &[&str]) -> Ran {
        self.shop(&[&CREATE as &[&str], &["--json", "--order", order], more].concat())
    }
}

const CREATE: [&str; 8] = [
    "invoice",
    "create",
    "--amount",
    "599.80",
    "--currency",
    "RUB",
    "--method",
    "SBP",
];

#[test]
fn a_client_goes_from_the_create_to_the_money_with_no_right_but_the_socket() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    let booth = Booth::start(Setup::new().quiet());
    let created = booth.open("1042", &[]).ends_with(0);
    assert_eq!(created.text("outcome"), "open");
    assert!(created.stderr.is_empty(), "{created:?}");
    let again = booth.open("1042", &[]).ends_with(0);
    assert_eq!(again.text("ref"), created.text("ref"));
    assert_eq!(
        again.stderr,
        "order 1042 has this open invoice already; nothing was sent\n"
    );
    assert_eq!(booth.world.requests("create"), 1);

    let shown = booth.shop(&["invoice", "show", "1042"]).ends_with(0);
    assert!(
        shown.stdout.starts_with("Pay 599.80 RUB by SBP:"),
        "{shown:?}"
    );
    let listed = booth.shop(&["invoice", "list", "--open"]).ends_with(0);
    assert!(
        listed.stdout.contains("1042") && listed.stdout.lines().count() == 2,
        "{listed:?}"
    );
    let open = booth.shop(&["invoice", "wait", "1042", "--timeout=0"]);
    let open = open.ends_with(6);
    assert!(
        open.stderr.contains("order `1042` is still open after 0 s"),
        "{open:?}"
    );
    let fetched = booth.world.requests("fetch");
    booth.shop(&["invoice", "poll", "1042"]).ends_with(0);
    assert_eq!(booth.world.requests("fetch"), fetched + 1);

    let mut waiting = booth.start_shop(&["invoice", "wait", "1042", "--json"]);
    let issued = booth.world.issued("1042").expect("the service has it");
    booth.world.happens(&issued, &json!({ "status": "paid" }));
    assert_eq!(waiting.wait(PATIENCE), 0, "{}", waiting.stderr());
    assert!(waiting.stdout().contains(r#""outcome":"paid""#));
    let events = booth.shop(&["event", "list"]).ends_with(0).stdout;
    let kinds: Vec<&str> = events
        .lines()
        .filter_map(|line| line.split_whitespace().nth(3))
        .collect();
    assert_eq!(kinds, ["KIND", "opened", "paid"]);
    let status = booth.shop(&["status"]).ends_with(0);
    assert!(
        status.stdout.contains("Nothing needs a person."),
        "{status:?}"
    );
}

#[test]
fn the_same_bytes_come_over_the_socket_as_from_the_ledger() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    let booth = Booth::start(Setup::new().quiet());
    for order in ["a/b c", "2"] {
        booth.open(order, &[]).ends_with(0);
    }
    booth.open("2", &["--new"]).ends_with(0);
    for order in ["a/b c", "2"] {
        let issued = booth.world.issued(order).expect("the service has it");
        booth.world.happens(&issued, &json!({ "status": "paid" }));
        let waited = booth.shop(&["invoice", "wait", order]);
        waited.ends_with(0);
    }
    for args in [
        &["invoice", "show", "a/b c"] as &[&str],
        &["invoice", "show", "2"],
        &["invoice", "show", "2", "--all"],
        &["invoice", "show", "absent"],
        &["invoice", "list"],
        &["invoice", "list", "--open"],
        &["invoice", "wait", "a/b c"],
        &["event", "list"],
        &["event", "list", "--after=1", "--order=2", "--limit=1"],
        &["status"],
    ] {
        for form in [&[] as &[&str], &["--json"]] {
            let args = [args, form].concat();
            let direct = booth.world.tilld_under(&READER, &args);
            let remote = booth.shop(&args);
            assert_eq!(direct.stdout, remote.stdout, "{args:?}");
            assert_eq!(direct.stderr, remote.stderr, "{args:?}");
            assert_eq!(direct.code, remote.code, "{args:?}");
        }
    }
}

#[test]
fn events_are_followed_through_a_restart_and_a_closed_pipe_is_a_quiet_end() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    let mut booth = Booth::start(Setup::new().quiet());
    booth.open("1", &[]).ends_with(0);
    let mut follows = booth.start_shop(&["event", "follow", "--after=0", "--json"]);
    let told = |follows: &Process, count: usize| {
        wait_until(PATIENCE, "its events", || {
            played::told(&follows.stdout()).len() >= count
        });
        let mut wanted: Vec<i64> = played::told(&follows.stdout());
        wanted.sort_unstable();
        wanted.dedup();
        assert_eq!(
            played::told(&follows.stdout()),
            wanted,
            "each once, in order"
        );
        assert_eq!(wanted.len(), count, "{wanted:?}");
    };
    let missed = |follows: &Process, times: usize| {
        wait_until(PATIENCE, "the daemon to be missed", || {
            follows.stderr().matches("trying again\n").count() == times
        });
    };
    told(&follows, 1);
    assert_eq!(booth.world.stop_serve(PATIENCE), 0);
    missed(&follows, 1);
    // Its owner works on, without a daemon.
    booth.world.open("2", "599.80", &[]).ends_with(0);
    booth.world.start_serve();
    let issued = booth.world.issued("1").expect("the service has it");
    booth.world.happens(&issued, &json!({ "status": "paid" }));
    told(&follows, 3);
    booth.world.kill9_serve();
    missed(&follows, 2);
    booth.world.start_serve();
    booth.open("3", &[]).ends_with(0);
    told(&follows, 4);
    let talk = follows.stderr();
    assert_eq!(talk.lines().count(), 4, "{talk}");
    assert_eq!(
        talk.matches("the daemon answers again\n").count(),
        2,
        "{talk}"
    );
    assert!(follows.ended().is_none());
    drop(follows);

    let variable = booth.variable();
    let piped = ["sh", "-c", "\"$@\" | head -n 1", "sh"];
    for by in [by(&SHOP, &variable), READER.to_vec()] {
        let piped = [piped.as_slice(), &by].concat();
        let ran = booth
            .world
            .tilld_under(&piped, &["event", "follow", "--after=0"]);
        let line = ran.ends_with(0);
        assert!(line.stdout.contains("  1  opened  new  open\n"), "{line:?}");
        assert_eq!(line.stderr, "");
    }
}
