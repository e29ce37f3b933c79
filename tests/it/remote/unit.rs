//! The shop's user on the machine of the unit. What is at stake: nobody gets a ledger or a login of their own beside the daemon's, and
//! the line that is named works as it stands.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};

use super::machine::{Machine, OWNER, cannot, stop};
use super::{CREATE, GROUP, SHOP, STRANGER};
use crate::harness::{Setup, skip};

const OWNERS: [&[&str]; 14] = [
    &["login"],
    &["logout"],
    &["whoami"],
    &["db", "backup", "/nonexistent/copy.db"],
    &["delivery", "list"],
    &["delivery", "retry", "--order", "1"],
    &["refusal", "list"],
    &["explain", "1"],
    &["hook", "list"],
    &["invoice", "adopt", "1", "--id", "x"],
    &["invoice", "accept-amount", "1", "--amount", "1"],
    &["invoice", "list"],
    &["status"],
    &[
        "invoice",
        "create",
        "--order=1",
        "--amount=1",
        "--currency=RUB",
        "--method=SBP",
    ],
];

#[test]
fn on_the_units_machine_nobody_works_beside_its_tilld() {
    if let Some(why) = cannot() {
        skip!("{why}");
    }
    let machine = Machine::new();
    let asked = machine.world.requests("login");
    let both: [(&[&str], &str); 2] = [(&SHOP, "home"), (&["env"], "home")];
    let refused = |what: &str| {
        for (user, home) in both {
            for args in OWNERS {
                let ran = machine.by(user, home, args).ends_with(15);
                let become_owner = format!("`sudo -u {} tilld {}", OWNER.0, args.join(" "));
                assert!(ran.stderr.contains(&become_owner), "{what}: {ran:?}");
            }
        }
        machine.nothing_at_home();
    };
    refused("before the first login");
    machine.log_in();
    assert!(machine.at("var/lib/tilld/secret/credentials").exists());
    stop(machine.serve());
    refused("beside a ledger");
    // A config that others may not read, or not see, says the same.
    for (at, mode) in [("etc/tilld/config.toml", 0o640), ("etc/tilld", 0o750)] {
        fs::set_permissions(machine.at(at), Permissions::from_mode(mode)).expect("own");
        refused(at);
    }
    assert_eq!(machine.world.requests("login"), asked + 1);
    assert_eq!(machine.world.requests("create"), 0);
}

#[test]
fn the_shop_of_the_units_machine_is_a_client_and_nothing_else() {
    if let Some(why) = cannot() {
        skip!("{why}");
    }
    let machine = Machine::new();
    let create = [&CREATE as &[&str], &["--order", "1"]].concat();
    let _serve = machine.serve();
    let ran = machine.shop(&create).ends_with(4);
    let hint = "hint: run `sudo -u daemon tilld --state-dir /var/lib/tilld login`\n";
    assert!(ran.stderr.ends_with(hint), "{ran:?}");
    machine.log_in();
    machine.shop(&create).ends_with(0);
    for args in [
        &["invoice", "show", "1"] as &[&str],
        &["invoice", "list"],
        &["invoice", "poll", "1"],
        &["event", "list"],
        &["status"],
    ] {
        machine.shop(args).ends_with(0);
    }
    machine
        .shop(&["invoice", "wait", "1", "--timeout=0"])
        .ends_with(6);
    machine.by(&["env"], "home", &create).ends_with(0);
    for args in [
        &["delivery", "list"] as &[&str],
        &["login"],
        &["hook", "list"],
    ] {
        machine.shop(args).ends_with(15);
    }
    // Who is not in the group is told of it first, not of the ledger's.
    let ran = machine.by(&STRANGER, "/nonexistent", &["invoice", "list"]);
    let ran = ran.ends_with(15);
    let first =
        format!("hint: let user 65533 use the control socket: `sudo usermod -aG {GROUP} '#65533'`");
    assert!(ran.stderr.contains(&first), "{ran:?}");
    assert_eq!(machine.world.requests("create"), 1);
    machine.nothing_at_home();
}

#[test]
fn a_ledger_of_ones_own_stays_in_use_where_no_config_of_the_machine_is() {
    if let Some(why) = cannot() {
        skip!("{why}");
    }
    let machine = Machine::new();
    stop(machine.serve());
    for at in [
        "home/.local",
        "home/.local/state",
        "home/.local/state/tilld",
    ] {
        machine.directory(at, 0o700, 65_534);
    }
    for file in fs::read_dir(machine.at("var/lib/tilld")).expect("it is there") {
        let file = file.expect("it is there");
        if file
            .file_name()
            .as_encoded_bytes()
            .starts_with(b"ledger.db")
        {
            let own = machine.at("home/.local/state/tilld").join(file.file_name());
            fs::rename(file.path(), &own).expect("moved");
            chown(&own, Some(65_534), Some(65_534)).expect("root may");
        }
    }
    let list = ["invoice", "list"];
    machine.shop(&list).ends_with(15);
    let config = machine.at("etc/tilld/config.toml");
    let own = machine.at("home/config.toml");
    fs::rename(config, &own).expect("moved");
    machine.shop(&list).ends_with(0);
    machine.shop(&["delivery", "list"]).ends_with(0);
    machine.by(&["env"], "elsewhere", &list).ends_with(15);
    // Whoever says which tilld is meant gets it, on the machine of the unit too.
    fs::copy(&own, machine.at("etc/tilld/config.toml")).expect("copied");
    let own = own.to_str().expect("UTF-8");
    machine
        .shop(&["--config", own, "hook", "list"])
        .ends_with(0);
    machine
        .shop(&["--config", own, "invoice", "list"])
        .ends_with(0);
    // Without the unit's directory there is no tilld of the unit.
    fs::remove_dir_all(machine.at("var/lib/tilld")).expect("removed");
    machine.shop(&list).ends_with(0);
}

#[test]
fn a_socket_in_a_directory_that_its_group_may_not_enter_is_told_of_at_the_start() {
    if let Some(why) = cannot() {
        skip!("{why}");
    }
    let world = Setup::new()
        .set("control.group", format!("{GROUP:?}"))
        .start();
    let trouble = format!(
        "members of `{GROUP}` cannot connect to `{}`, as they may not enter `",
        world.state_dir().join("control.sock").display()
    );
    assert!(
        world.serve_log().contains(&trouble),
        "{}",
        world.serve_log()
    );
    let checked = world.tilld(&["serve", "--check"]).ends_with(0);
    assert!(checked.stderr.contains(&trouble), "{checked:?}");
    assert!(
        checked.stderr.contains("set `control.socket`"),
        "{checked:?}"
    );
    let machine = Machine::new();
    let serve = machine.serve();
    assert!(
        !serve.stderr().contains("cannot connect"),
        "{}",
        serve.stderr()
    );
}
