//! A script that somebody else could change is not run for a payment: it is told at once, waits, and runs by itself once that is put
//! right. What is at stake: whoever breaks into the shop would else run programs as tilld's user.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;

use rustix::fs::{XattrFlags, setxattr};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{results, state};
use crate::harness::{PATIENCE, Setup, World, skip, wait_until};

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("own file");
}

/// What `tilld status` says of hooks that others could change.
fn listed(world: &World) -> String {
    let told: Value =
        serde_json::from_str(&world.tilld(&["status", "--json"]).stdout).expect("JSON");
    let needs = told.get("needs").and_then(Value::as_array).cloned();
    let of_it = |need: &Value| need.get("reason") == Some(&json!("hook_exposed"));
    let found = needs.unwrap_or_default().into_iter().filter(of_it);
    found.map(|need| need.to_string()).collect()
}

#[test]
fn a_script_that_others_could_change_waits_until_they_cannot() {
    let world = Setup::new()
        .quiet()
        // Two failures, and it would be given up.
        .set("outbox.schedule_s", "[0]")
        .noting_hook("fulfil", &["paid"])
        .start();
    assert_eq!(listed(&world), "");
    let hooks = world.dir().join("hooks");
    let script = hooks.join("fulfil.sh");
    set(&script, 0o757);
    let doctor = || world.tilld(&["doctor"]).ends_with(16).stdout;
    let told = format!("anybody may change `{}`", script.display());
    assert!(listed(&world).contains(&told), "{}", listed(&world));
    world.pay("A-1");
    wait_until(PATIENCE, "it to be looked at more than once", || {
        world.serve_log().matches("a hook is not run: ").count() > 1
    });
    assert_eq!(results(&world, "fulfil"), [""; 0], "how often says nothing");
    let attempts = "SELECT state, attempts FROM deliveries";
    wait_until(PATIENCE, "it to be given back", || {
        world.sql(attempts) == [["waiting", "0"]]
    });
    let log = world.serve_log();
    let said = "hook `fulfil` is not run, since others could change what it runs";
    assert_eq!(log.matches(said).count(), 1, "{log}");
    assert!(doctor().contains(&told), "{}", doctor());

    // Whoever may write into a directory puts another script in its place.
    set(&script, 0o755);
    set(&hooks, 0o757);
    let told = format!("anybody may change `{}`", hooks.display());
    assert!(doctor().contains(&told), "{}", doctor());
    set(&hooks, 0o755);
    if rustix::process::geteuid().is_root() {
        chown(&script, Some(65_533), None).expect("root may");
        let told = format!("user 65533 may change `{}`", script.display());
        assert!(doctor().contains(&told), "{}", doctor());
        assert!(listed(&world).contains(&told), "{}", listed(&world));
        chown(&script, Some(0), Some(65_533)).expect("root may");
        set(&script, 0o775);
        assert!(doctor().contains("the members of group 65533 may change"));
        chown(&script, None, Some(0)).expect("root may");
    }
    // It would by itself within half a minute.
    world.signal_serve(Signal::HUP);
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
    assert_eq!(state(&world, "fulfil"), "done");
    assert_eq!(listed(&world), "");
}

/// The access list of a script that this user may write too.
fn list_with(user: u32) -> Vec<u8> {
    let all = [
        (0x01_u16, 7_u16, u32::MAX),
        (0x02, 7, user),
        (0x04, 5, u32::MAX),
        (0x10, 7, u32::MAX),
        (0x20, 5, u32::MAX),
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, number) in all {
        list.extend(tag.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(number.to_le_bytes());
    }
    list
}

#[test]
fn all_that_a_run_executes_is_judged_with_every_link_on_the_way() {
    let world = Setup::new().quiet().not_served().start();
    let dir = world.dir().join("shop");
    let path = |name: &str| dir.join(name);
    for name in ["", "middle", "safe", "open"] {
        fs::create_dir(path(name)).expect("made");
        set(&path(name), 0o755);
    }
    let file = |name: &str, text: &str, mode: u32| {
        fs::write(path(name), text).expect("written");
        set(&path(name), mode);
        path(name).display().to_string()
    };
    let script = "#!/bin/sh\n";
    let safe = file("safe/script", script, 0o755);
    let open = file("safe/open", script, 0o757);
    let listed = file("safe/listed", script, 0o755);
    let data = file("safe/data", "1\n", 0o646);
    let list = list_with(65_533);
    let listing = setxattr(
        &*listed,
        "system.posix_acl_access",
        &list,
        XattrFlags::empty(),
    );
    if let Err(error) = listing {
        skip!("the file system has no access lists: {error}");
    }
    symlink(path("safe"), path("middle/dir")).expect("linked");
    symlink("middle/dir/script", path("linked")).expect("linked");
    symlink("/bin/sh", path("open/sh")).expect("linked");
    let interpreter = path("open/sh").display().to_string();
    let named = file("safe/named", &format!("#!{interpreter}\n"), 0o755);
    set(&path("middle"), 0o757);
    set(&path("open"), 0o757);
    let linked = path("linked").display().to_string();
    let hooks = [
        ("linked", vec![&*linked]),
        ("second", vec!["/bin/sh", "-e", &safe, &open]),
        ("named", vec![&*named]),
        ("listed", vec![&*listed]),
        ("given", vec![&*safe, &open]),
        ("data", vec![&*safe, &data]),
    ]
    .map(|(name, run)| format!("[[hook]]\nname = {name:?}\non = [\"paid\"]\nrun = {run:?}\n"));
    let config = world.dir().join("config.toml");
    let text = fs::read_to_string(&config).expect("readable");
    fs::write(&config, text + &hooks.concat()).expect("written");

    let told = world.tilld(&["doctor"]).stdout;
    let opened = |name: &str, what: &str| {
        let wanted = format!("{name}: anybody may change `{}`", path(what).display());
        assert!(told.contains(&wanted), "{wanted}: {told}");
    };
    opened("linked", "middle");
    opened("second", "safe/open");
    opened("named", "open");
    opened("given", "safe/open");
    let wanted = format!("listed: user 65533 may change `{listed}`");
    assert!(told.contains(&wanted), "{told}");
    assert!(told.contains(&format!("`setfacl -b {listed}`")), "{told}");
    assert!(
        told.contains(&format!("data: {safe} {data} can be run by")),
        "{told}"
    );
}
