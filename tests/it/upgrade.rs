//! A newer tilld beside a daemon of an earlier version, between the install and the restart. What is at stake: a command
//! that brings the ledger up to date under a daemon that asks for what is not there any more leaves orders unfulfilled.

use crate::harness::Setup;

/// A schema below the first, for that of an older daemon.
const BEFORE: &str = "0";

#[test]
fn a_command_leaves_the_ledger_of_an_older_daemon_as_it_is() {
    let world = Setup::new().quiet().start();
    world.create("early");
    let now = world.value("PRAGMA user_version");
    // The daemon that runs does not look at the number again.
    let neighbour = world.neighbour();
    neighbour.tamper(&format!("PRAGMA user_version = {BEFORE}"));

    // Nor has it a socket to be asked on.
    let no_socket = [("TILLD_CONTROL__SOCKET", "/nonexistent/control.sock")];
    let order = ["invoice", "create", "--order=late", "--amount=10.00"];
    let order = [order.as_slice(), &["--currency=RUB", "--method=SBP"]].concat();
    let refused = world.tilld_with(&no_socket, &order);
    let refused = refused.ends_with(11);
    let hint = "hint: restart `tilld serve` with this version";
    assert!(refused.stderr.contains(hint), "{}", refused.stderr);
    assert_eq!(world.value("PRAGMA user_version"), BEFORE);
    assert_eq!(
        world.value("SELECT count(*) FROM invoices WHERE order_id = 'late'"),
        "0"
    );

    neighbour.tamper(&format!("PRAGMA user_version = {now}"));
    world.create("late");
}
