//! What lies between a hook and the daemon's own surroundings: nothing that tilld was started with reaches a script, how
//! a program must be named and what is said when it cannot start, and a working directory that always vanishes (A38).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;

use super::{results, state};
use crate::harness::{PATIENCE, Setup, World, skip, wait_until};

/// The signals up to 31 in a mask of `/proc/PID/status`.
const USUAL: u64 = 0x7fff_ffff;

/// Notes the signals it ignores or blocks, its descriptors, the descriptor limit, and what it finds of strange variables.
const LOOKS: &str = r#"
    log=$1
    while read -r name value; do
        case $name in SigBlk: | SigIgn:) echo "$name $value" >> "$log" ;; esac
    done < /proc/$$/status
    n=3
    # The shell itself keeps its script open at 10.
    while [ $n -lt 64 ]; do
        [ $n -eq 10 ] || [ ! -e /proc/$$/fd/$n ] || echo "descriptor $n" >> "$log"
        n=$((n + 1))
    done
    echo "limit $(ulimit -n)" >> "$log"
    env | grep -e SOCKET -e WATCHDOG -e CREDENTIALS -e TOKEN -e LISTEN -e LOG_LEVEL -e STATE_DIR -e XDG >> "$log"
    exit 0
"#;

/// The daemon's way in: descriptors left open, signals ignored, a limit of its own.
const ENTERS: &str = r#"exec 7< /dev/null 8>> /dev/null 63< /dev/null; trap "" QUIT USR1 HUP; ulimit -n 777; exec "$@""#;

#[test]
fn nothing_that_tilld_was_started_with_reaches_a_hook() {
    let under = [
        "env",
        "--block-signal=USR2",
        "NOTIFY_SOCKET=/nonexistent/notify",
        "WATCHDOG_USEC=60000000",
        "LISTEN_FDNAMES=control",
        "CREDENTIALS_DIRECTORY=/nonexistent/credentials",
        "LISTEN_FDS=0",
        "LISTEN_PID=1",
        "XDG_STATE_HOME=/nonexistent/state",
        "TILLD_LOG_LEVEL=info",
        "/bin/bash",
        "-c",
        ENTERS,
        "sh",
    ];
    let world = Setup::new()
        .quiet()
        .under(&under)
        .hook("fulfil", &["paid"], LOOKS)
        .start();
    // The way in is as it is meant to be, or the test shows nothing.
    let daemon = format!("/proc/{}", world.serve_pid());
    assert!(Path::new(&daemon).join("fd/63").exists());
    let status = fs::read_to_string(format!("{daemon}/status")).expect("it runs");
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        u64::from_str_radix(line.unwrap_or_default().trim(), 16).expect("a mask")
    };
    // SIGQUIT and SIGUSR1 are ignored, SIGUSR2 is blocked.
    assert_eq!(mask("SigIgn:") & 0x204, 0x204, "{status}");
    assert_eq!(mask("SigBlk:") & 0x800, 0x800, "{status}");
    world.pay("A-1");
    world.settle();
    // The shell itself is started with nothing but the C library's own two ignored, which lie beyond the usual ones.
    let usual = |line: &str| {
        let (name, mask) = line.split_once(' ')?;
        let mask = u64::from_str_radix(mask, 16).ok()?;
        Some(format!("{name} {:x}", mask & USUAL))
    };
    let seen = world.hook_log("fulfil");
    let seen: Vec<String> = seen
        .iter()
        .map(|line| usual(line).filter(|_| line.starts_with("Sig")))
        .zip(&seen)
        .map(|(masked, line)| masked.unwrap_or_else(|| line.clone()))
        .collect();
    assert_eq!(seen, ["SigBlk: 0", "SigIgn: 0", "limit 777"]);
}

/// A file that a process other than this one wrote: it can be run at once.
fn file(dir: &Path, name: &str, text: &str, mode: &str) -> PathBuf {
    let path = dir.join(name);
    let mut shell = Command::new("/bin/sh");
    let script = "printf %s \"$1\" > \"$2\" && chmod \"$3\" \"$2\"";
    shell.args(["-c", script, "sh", text]).arg(&path).arg(mode);
    assert!(shell.status().expect("sh starts").success());
    path
}

/// A world with a hook `ship` that runs this program; the daemon is not started.
fn with_program(program: &str) -> World {
    let world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0]")
        .not_served()
        .start();
    let block = format!("[[hook]]\nname = \"ship\"\non = [\"paid\"]\nrun = [{program:?}]\n");
    let config = world.dir().join("config.toml");
    let text = fs::read_to_string(&config).expect("readable");
    fs::write(&config, text + &block).expect("written");
    world
}

#[test]
fn a_program_that_is_not_absolute_or_cannot_run_is_refused_at_the_start() {
    let dir = tempfile::tempdir().expect("a directory");
    let plain = file(dir.path(), "plain", "#!/bin/sh\n", "644");
    let plain = plain.to_str().expect("UTF-8");
    let cannot = format!("hook `ship` cannot run `{plain}`: Permission denied");
    // What would fail at the first payment: the interpreter is looked for as well.
    let broken = |name: &str, text: &str| {
        let path = file(dir.path(), name, text, "755");
        path.to_str().expect("UTF-8").to_owned()
    };
    let lost = broken("lost", "#!/no/perl\n");
    let crlf = broken("crlf", "#!/bin/sh\r\nexit 0\r\n");
    let bare = broken("bare", "exit 0\n");
    for (program, told) in [
        ("ship.sh", "must begin with the absolute path of a program"),
        (
            "./ship.sh",
            "must begin with the absolute path of a program",
        ),
        ("", "must begin with the absolute path of a program"),
        (plain, &cannot),
        (&lost, "`/no/perl` is missing"),
        (&crlf, "(its first line ends in a carriage return)"),
        (&bare, "no `#!` line"),
    ] {
        let world = with_program(program);
        for args in [["serve", "--json"].as_slice(), &["serve", "--check"]] {
            let refused = world.tilld(args).ends_with(10);
            assert!(refused.stderr.contains(told), "{program}: {refused:?}");
            // The key, or the hook by its name.
            let named = refused.stderr.contains("run`") || refused.stderr.contains("`ship`");
            assert!(named && refused.stderr.contains("hint: "), "{refused:?}");
        }
    }
}

#[test]
fn a_working_directory_that_cannot_be_made_is_a_failed_attempt_with_its_reason() {
    let mut world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0, 1]")
        .noting_hook("fulfil", &["paid"])
        .not_served()
        .start();
    world.create("A-1");
    fs::write(world.state_dir().join("run"), "").expect("written");
    world.start_serve();
    let issued = world.issued("A-1").expect("created");
    let paid = world.dictate(&issued, "paid");
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    world.settle();
    let results = results(&world, "fulfil");
    assert_eq!(results.len(), 2, "{results:?}");
    for result in results {
        assert!(result.starts_with("not started: could not make the working directory in "));
        assert!(result.contains("(os error "), "{result}");
    }
    assert_eq!(state(&world, "fulfil"), "abandoned");
}

#[test]
fn what_a_hook_left_locked_in_its_directory_is_removed_too() {
    // A link leads out of it, to a directory that stays as it is.
    let script = "mkdir -m 500 \"$1.kept\"; mkdir -p a/b/c; echo x > a/b/c/file; ln -s \"$1.kept\" a/link\n\
                  chmod 000 a/b/c a/b a; chmod 500 .; echo ran >> \"$1\"";
    let mut setup = Setup::new().quiet().hook("fulfil", &["paid"], script);
    if geteuid().is_root() {
        let without = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"];
        let [program, flag] = without;
        let there = Command::new(program).args([flag, "true"]).status();
        if !there.is_ok_and(|status| status.success()) {
            skip!("root reads everything, and setpriv is not there to forbid it");
        }
        setup = setup.under(&without);
    }
    let world = setup.start();
    world.pay("A-1");
    world.settle();
    assert_eq!(world.hook_log("fulfil"), ["ran"]);
    let left = fs::read_dir(world.state_dir().join("run")).expect("a directory");
    assert_eq!(left.count(), 0, "{}", world.serve_log());
    let kept = fs::metadata(world.dir().join("hooks/fulfil.log.kept")).expect("there");
    assert_eq!(kept.permissions().mode() & 0o777, 0o500);
}

#[test]
fn what_waits_for_a_hook_that_was_renamed_is_told_and_can_be_given_up() {
    let mut world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0, 3600]")
        .hook("fulfil", &["paid"], "exit 1")
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "an attempt", || {
        results(&world, "fulfil") == ["exit 1"]
    });
    world.tilld(&["status"]).ends_with(0);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let config = world.dir().join("config.toml");
    let text = fs::read_to_string(&config).expect("readable");
    let renamed = text.replace("name = \"fulfil\"", "name = \"ship\"");
    assert_ne!(text, renamed);
    fs::write(&config, renamed).expect("written");
    world.start_serve();
    let told = "deliveries wait for hook fulfil, which is not configured, and are never run";
    wait_until(PATIENCE, "a line in the log", || {
        world.serve_log().contains(told)
    });
    let people = world.tilld(&["status"]).ends_with(16).stdout;
    assert!(people.contains(told), "{people}");
    let status = world.tilld(&["status", "--json"]).ends_with(16).json();
    assert_eq!(
        status.get("unknown_hooks"),
        Some(&serde_json::json!(["fulfil"]))
    );
    // The line it gives settles it.
    let line = people
        .split('`')
        .find(|part| part.starts_with("tilld delivery abandon"))
        .expect("a line to run");
    let args: Vec<&str> = line.split(' ').skip(1).collect();
    world.tilld(&args).ends_with(0);
    world.tilld(&["status"]).ends_with(0);
}
