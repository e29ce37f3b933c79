//! A daemon that is refused threads, processes and descriptors. What is at stake: what it has to say is said, no request is lost,
//! and no script's attempts are used up by what is none of its doing.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use serde_json::json;

use crate::harness::{PATIENCE, Setup, World, skip, wait_until};

/// Notifications and questions at once: more than there are threads.
const AT_ONCE: usize = 12;

/// The program of alerts.
const TELLS: &str = r#"[ "$TILLD_ATTEMPT" = 1 ]"#;
/// More threads than a start takes.
const MOST_THREADS: usize = 100;

/// A control group that limits threads and processes.
struct Group(PathBuf);

impl Group {
    /// `None` where none can be made.
    fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("tilld-test-{}-{number}", std::process::id());
        let roots = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"];
        roots.into_iter().find_map(|root| {
            let group = Self(PathBuf::from(root).join(&name));
            fs::create_dir(&group.0).ok()?;
            group.0.join("pids.max").exists().then_some(group)
        })
    }

    fn takes(&self, pid: u32) -> bool {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).is_ok()
    }

    /// Lets nothing more be started than runs already.
    fn close(&self) {
        let current = fs::read_to_string(self.0.join("pids.current")).expect("a number");
        self.limit(current.trim());
    }

    fn limit(&self, most: &str) {
        fs::write(self.0.join("pids.max"), most).expect("a limit");
    }

    fn open(&self) {
        self.limit("max");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Those that are still in it are looked after where they came from.
        let above = self.0.parent().map(|above| above.join("cgroup.procs"));
        let inside = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        for pid in inside.lines() {
            drop(above.as_ref().map(|above| fs::write(above, pid)));
        }
        drop(fs::remove_dir(&self.0));
    }
}

fn needs(world: &World) -> String {
    let told = world.tilld(&["status", "--json"]).json();
    told.get("needs")
        .map(ToString::to_string)
        .unwrap_or_default()
}

#[test]
fn a_limit_on_threads_costs_no_request_and_no_attempt_and_is_told() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .set("outbox.schedule_s", "[0]")
        .set("attention.run", format!("{:?}", ["/bin/sh", "-c", TELLS]))
        .start();
    let Some(group) = Group::new().filter(|group| group.takes(world.serve_pid())) else {
        skip!("no control group for processes can be made here");
    };
    let little = world.create("B-1");
    group.close();
    let paid = world.pay("A-1");
    let amount = json!({ "status": "paid", "amount": "1.00" });
    let little = world.dictate_fields(&little, &amount);
    assert_eq!(world.tell_as_it_is(&little).status, 200);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| assert_eq!(world.tell_as_it_is(&paid).status, 200));
            scope.spawn(|| assert_eq!(world.call("GET", "/v1/invoices", "").status, 200));
            scope.spawn(|| assert_eq!(world.call("GET", "/v1/status", "").status, 200));
        }
    });
    wait_until(PATIENCE, "both alerts", || {
        needs(&world).contains("\"starts_fail\"") && needs(&world).contains("\"processes_low\"")
    });
    wait_until(PATIENCE, "it to be tried again", || {
        world.serve_log().matches("a hook waits, since").count() > 1
    });
    let owed = "SELECT state, attempts FROM deliveries";
    wait_until(PATIENCE, "it to wait", || {
        world.sql(owed) == [["waiting", "0"]]
    });
    // Nor does the program of alerts have an attempt less.
    wait_until(PATIENCE, "it to wait too", || {
        world
            .serve_log()
            .contains("the program of `[attention]` waits, since")
    });

    group.open();
    world.settle();
    let runs = world.hook_log("fulfil");
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert!(runs.iter().all(|run| run.ends_with(" 1")), "{runs:?}");
    wait_until(PATIENCE, "the alerts to be over", || {
        let needs = needs(&world);
        !needs.contains("\"starts_fail\"") && !needs.contains("\"processes_low\"")
    });
    // What stands all the time is told once it can be.
    wait_until(PATIENCE, "the alert", || {
        world.serve_log().contains("a person was told of mismatch")
    });
    let log = world.serve_log();
    assert!(
        log.contains("the program of `[attention]` waits, since"),
        "{log}"
    );
    assert!(
        !log.contains("the program of `[attention]` failed"),
        "{log}"
    );
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn few_descriptors_are_an_alert_until_there_are_more() {
    let world = Setup::new().quiet().start();
    let limit = |most: usize| {
        let pid = world.serve_pid().to_string();
        let most = format!("--nofile={most}:");
        let ran = Command::new("prlimit")
            .args(["--pid", &pid, &most])
            .status();
        ran.is_ok_and(|status| status.success())
    };
    if !limit(1_024) {
        skip!("the program prlimit is not here");
    }
    let is_told = || needs(&world).contains("\"descriptors_low\"");
    assert!(!is_told());
    let links = fs::read_dir(format!("/proc/{}/fd", world.serve_pid()));
    assert!(limit(links.expect("it runs").count() + 6));
    // One look serves all who ask within two seconds.
    wait_until(PATIENCE, "the alert", is_told);
    assert!(limit(1_024));
    wait_until(PATIENCE, "its end", || !is_told());
}

#[test]
fn a_start_that_is_refused_threads_says_so_and_ends_to_be_repeated() {
    let mut world = Setup::new().quiet().not_served().start();
    let Some(group) = Group::new() else {
        skip!("no control group for processes can be made here");
    };
    let procs = group.0.join("cgroup.procs");
    let enters = format!(
        "export NOTIFY_SOCKET=/nowhere; echo $$ >'{}'; exec \"$0\" \"$@\"",
        procs.display()
    );
    world.under = ["sh", "-c", &enters].map(str::to_owned).to_vec();
    for (refused, most) in (3..MOST_THREADS).step_by(4).enumerate() {
        group.limit(&most.to_string());
        let Err((code, said)) = world.try_start_serve() else {
            assert!(refused > 4, "it took {most} threads alone");
            return;
        };
        assert_eq!(code, 1, "with {most}: {said}");
        assert!(!said.contains("panicked"), "with {most}: {said}");
        assert!(
            said.contains("error: could not start the "),
            "with {most}: {said}"
        );
        assert!(
            said.contains("room for another thread"),
            "with {most}: {said}"
        );
    }
    panic!("it never started");
}
