//! What another program of tilld's own user can see of a running daemon: nothing of its memory, its environment or what it has
//! open, and no core file of it. A script that is broken into is such a program. Needs root, which becomes that user.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::machine::{AS_OWNER, Machine, cannot, stop};
use crate::harness::{PATIENCE, Setup, children, skip, wait_for};

/// Whether tilld's own user may read this of a process.
fn is_readable(pid: u32, name: &str) -> bool {
    let [setpriv, more @ ..] = AS_OWNER;
    let path = format!("/proc/{pid}/{name}");
    let read = Command::new(setpriv)
        .args(more)
        .args(["head", "-c", "1", &path])
        .output();
    read.expect("it starts").status.success()
}

#[test]
fn what_the_daemon_holds_is_closed_to_other_programs_of_its_user() {
    if let Some(lacks) = cannot() {
        skip!("{lacks}");
    }
    let machine = Machine::new();
    let config = machine.at("etc/tilld/config.toml");
    let hook = "[[hook]]\nname = \"runs\"\non = [\"*\"]\nrun = [\"/bin/true\"]\n";
    let text = fs::read_to_string(&config).expect("a config");
    fs::write(&config, text + hook).expect("written");
    machine.log_in();
    let serve = machine.serve();
    let create = "invoice create --order A-1 --amount 599.80 --currency RUB --method SBP";
    let create: Vec<&str> = create.split(' ').collect();
    machine.by(&AS_OWNER, "owners-home", &create).ends_with(0);
    let launcher = wait_for(PATIENCE, "the launcher", || {
        children(serve.pid()).first().map(|(pid, _)| *pid)
    });
    for name in ["environ", "maps", "mem"] {
        assert!(!is_readable(serve.pid(), name), "{name}");
    }
    // The programs that it starts are as any others.
    assert!(is_readable(launcher, "environ"));
    // Nor is the lock found by what it has open: whoever deletes it makes no room for a second daemon.
    fs::remove_file(machine.at("var/lib/tilld/serve.lock")).expect("it is there");
    let second = ["serve", "--listen", "127.0.0.1:0"];
    let second = machine.by(&AS_OWNER, "owners-home", &second).ends_with(11);
    assert!(second.stderr.contains("another tilld serves"), "{second:?}");
    stop(serve);
}

#[test]
fn no_core_file_is_left_and_scripts_may_have_theirs() {
    let limit = "ulimit -S -c 8; exec \"$0\" \"$@\"";
    let script = "ulimit -S -c >> \"$1\"; ulimit -S -c 8 && ulimit -S -c >> \"$1\"";
    let world = Setup::new()
        .quiet()
        .under(&["/bin/sh", "-c", limit])
        .hook("limits", &["paid"], script)
        .start();
    let limits = Path::new("/proc").join(world.serve_pid().to_string());
    let limits = fs::read_to_string(limits.join("limits")).expect("it runs");
    let core = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"));
    let core: Vec<&str> = core.unwrap_or_default().split_whitespace().collect();
    assert_eq!(core.get(4), Some(&"0"), "{limits}");
    world.pay("A-1");
    world.settle();
    assert_eq!(world.hook_log("limits"), ["0", "8"]);
}
