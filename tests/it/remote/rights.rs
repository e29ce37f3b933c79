//! Whoever may not do something is told whom to become, or which group to join, and nothing is done.

use super::{Booth, GROUP, SHOP, STRANGER, by, lacks};
use crate::harness::{PATIENCE, Setup, skip};

const TRACK: [&str; 11] = [
    "invoice",
    "track",
    "1",
    "--id",
    "x",
    "--amount",
    "1",
    "--currency",
    "RUB",
    "--token-file",
    "/nonexistent",
];

/// What needs the secrets or the ledger itself.
const OWNERS: [&[&str]; 12] = [
    &["login"],
    &["logout"],
    &["whoami"],
    &["db", "backup", "/nonexistent/copy.db"],
    &["delivery", "list"],
    &["delivery", "retry", "--order", "1"],
    &["refusal", "list"],
    &["explain", "1"],
    &["hook", "list"],
    &TRACK,
    &["invoice", "adopt", "1", "--id", "x"],
    &["invoice", "accept-amount", "1", "--amount", "1"],
];

#[test]
fn a_client_is_told_whom_to_become_for_what_is_the_owners() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    let booth = Booth::start(Setup::new().quiet());
    booth.open("1", &[]).ends_with(0);
    for args in OWNERS {
        let ran = booth.shop(args).ends_with(15);
        assert!(
            ran.stderr
                .contains("belongs to `root`, this command runs as "),
            "{ran:?}"
        );
        let hint = format!(
            "hint: run `sudo -u root tilld --config {}",
            booth.world.dir().display()
        );
        assert!(ran.stderr.contains(&hint), "{ran:?}");
    }
}

#[test]
fn whoever_may_not_connect_is_told_which_group_to_join() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    let booth = Booth::start(Setup::new().quiet());
    booth.open("1", &[]).ends_with(0);
    let variable = booth.variable();
    let by = by(&STRANGER, &variable);
    let join = format!("`sudo usermod -aG {GROUP} '#65533'`");
    for args in [
        &["invoice", "show", "1"] as &[&str],
        &["invoice", "poll", "1"],
        &["event", "follow"],
        &["status"],
    ] {
        let ran = booth.world.tilld_under(&by, args).ends_with(15);
        let first = format!(
            "hint: let user 65533 use the control socket: {join}, then log in anew, or run `sudo -u root "
        );
        assert!(ran.stderr.contains(&first), "{ran:?}");
        let named = [&["--socket", &booth.socket], args].concat();
        let ran = booth.world.tilld_under(&STRANGER, &named).ends_with(15);
        assert!(ran.stderr.contains(&join), "{ran:?}");
    }
}

#[test]
fn without_a_daemon_the_owner_works_directly_and_a_client_is_told_whom_to_become() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    let mut booth = Booth::start(Setup::new().quiet());
    booth.open("1", &[]).ends_with(0);
    // A socket that is left, and one that is gone.
    booth.world.kill9_serve();
    for args in [
        &["invoice", "show", "1"] as &[&str],
        &["invoice", "wait", "1", "--timeout=0"],
        &["event", "list"],
        &["status"],
    ] {
        let ran = booth.shop(args).ends_with(15);
        assert!(ran.stderr.contains("hint: run `sudo -u root"), "{ran:?}");
    }
    booth.world.tilld(&["invoice", "show", "1"]).ends_with(0);
    booth.world.start_serve();
    assert_eq!(booth.world.stop_serve(PATIENCE), 0);
    booth.shop(&["invoice", "list"]).ends_with(15);
    let opened = booth.world.open("2", "599.80", &[]).ends_with(0);
    assert!(
        opened.stderr.contains("no `tilld serve` runs"),
        "{opened:?}"
    );
    let told = booth.world.tilld(&["event", "list"]).ends_with(0).stdout;
    assert_eq!(told.matches("opened").count(), 2, "{told}");
    let named = ["--socket", booth.socket.as_str(), "status"];
    booth.world.tilld_under(&SHOP, &named).ends_with(8);
}
