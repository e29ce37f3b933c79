//! A script that somebody else could change is not run for a payment: it is told at once, waits, and runs by itself once that is put
//! right. What is at stake: whoever breaks into the shop would else run programs as tilld's user.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use serde_json::{Value, json};

use super::{results, state};
use crate::harness::{PATIENCE, Setup, World, wait_until};

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
        // A failure more, and it would be given up.
        .set("outbox.schedule_s", "[0, 1]")
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
    wait_until(PATIENCE, "more attempts than failures may be", || {
        results(&world, "fulfil").len() > 2
    });
    for result in results(&world, "fulfil") {
        assert!(
            result.starts_with(&format!("not started: {told}")),
            "{result}"
        );
    }
    assert_eq!(state(&world, "fulfil"), "waiting");
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
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
    assert_eq!(state(&world, "fulfil"), "done");
    assert_eq!(listed(&world), "");
}
