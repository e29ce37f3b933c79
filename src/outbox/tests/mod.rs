//! The loop on a ledger, with real programs under a launcher.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::hook::process::{Program, Surroundings};
use crate::ledger::DeliveryState;
use crate::ledger::HeldLock;

mod hand;
mod owing;
mod places;
use owing::Owing;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_mins(1);

struct Stage {
    dir: tempfile::TempDir,
    ledger: Owing,
    settings: Settings,
    shutdown: Shutdown,
    wake: Wake,
}

impl Stage {
    /// One hook with this script; `$HOME` is a directory of the test.
    fn new(script: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let args = ["-c".to_owned(), script.to_owned()].to_vec();
        let program = Program {
            path: "/bin/sh".into(),
            args,
            timeout: LONG,
            grace: Duration::from_millis(100),
        };
        let surroundings = Surroundings {
            launcher: hook::launch::stand_in(),
            work_dir: dir.path().join("run"),
            home: dir.path().to_owned(),
        };
        let settings = Settings {
            hooks: vec![Hook {
                name: "fulfil".to_owned(),
                action: Action::Run(program),
                answers_to: vec!["fulfil".to_owned()],
                room: Room {
                    ordinary: 3,
                    slow: 0,
                },
            }],
            schedule: vec![Duration::from_millis(10); 2],
            longest_delay_ms: 60_000,
            drain: LONG,
            surroundings,
            runs: Arc::default(),
            earlier: Earlier::default(),
        };
        let ledger = Owing::new(dir.path());
        let wake = ledger.owed();
        Self {
            dir,
            ledger,
            settings,
            shutdown: Shutdown::new(),
            wake,
        }
    }

    fn start(&self) -> JoinHandle<()> {
        let (writer, reader) = (self.ledger.writer(), self.ledger.reader());
        tokio::spawn(run(
            writer,
            reader,
            watch::channel(self.settings.clone()).1,
            self.wake.clone(),
            Wishes {
                stop: self.shutdown.clone(),
                hurry: Shutdown::new(),
                pulse: Pulse::default(),
            },
        ))
    }

    /// The loop's parts, whose steps a test takes itself; the hook has this room.
    fn outbox(&self, room: Room) -> Outbox {
        let (over, overs) = mpsc::unbounded_channel();
        Outbox {
            overs,
            desk: Arc::new(Desk {
                over,
                writer: self.ledger.writer(),
                settings: self.settings.clone(),
                stopping: self.shutdown.clone(),
                ending: Shutdown::new(),
            }),
            reader: self.ledger.reader(),
            own: ProcessMark::own(),
            attempts: JoinSet::new(),
            active: HashMap::new(),
            settling: JoinSet::new(),
            being_settled: HashMap::new(),
            hand: Hand::new(&[room]),
            places: Places::new(vec![("fulfil".into(), room)]),
            leftovers: Vec::new(),
            more: false,
            ahead: Vec::new(),
            starting: JoinSet::new(),
            rest_until: None,
            wants: 0,
            scan_at: Instant::now(),
            looked: None,
        }
    }

    /// What the script wrote into `$HOME/log`.
    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    async fn stop(&self, outbox: JoinHandle<()>) {
        self.shutdown.request();
        timeout(LONG, outbox)
            .await
            .expect("it stops")
            .expect("it does not panic");
    }

    /// Runs the outbox until every delivery of the invoice is in one of these states, then stops it.
    async fn until(&self, wanted: &[DeliveryState]) {
        let outbox = self.start();
        wait_until(async || {
            self.ledger
                .deliveries()
                .await
                .iter()
                .all(|(state, _)| wanted.contains(state))
        })
        .await;
        self.stop(outbox).await;
    }

    async fn results(&self) -> Vec<String> {
        let deliveries = self.ledger.deliveries().await;
        deliveries
            .into_iter()
            .flat_map(|(_, attempts)| attempts)
            .map(|attempt| attempt.result)
            .collect()
    }
}

async fn wait_until(fact: impl AsyncFn() -> bool) {
    timeout(LONG, async {
        while !fact().await {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("it comes true");
}

#[tokio::test]
async fn what_is_owed_runs_once_and_is_done() {
    let stage = Stage::new(
        "cat >/dev/null; echo $TILLD_ORDER_ID $TILLD_EVENT $TILLD_ATTEMPT >> $HOME/log; echo said",
    );
    stage.ledger.owe("1", 1).await;
    stage.until(&[DeliveryState::Done]).await;
    assert_eq!(stage.log(), "1 opened 1\n");
    let deliveries = stage.ledger.deliveries().await;
    let attempt = deliveries
        .first()
        .and_then(|(_, attempts)| attempts.first())
        .expect("one attempt");
    assert_eq!(
        (attempt.result.as_str(), attempt.stdout.as_slice()),
        ("exit 0", &b"said\n"[..])
    );
}

#[tokio::test]
async fn failures_are_repeated_by_the_schedule_and_then_given_up() {
    let stage = Stage::new("echo $TILLD_ATTEMPT >> $HOME/log; exit 1");
    stage.ledger.owe("1", 1).await;
    stage.until(&[DeliveryState::Abandoned]).await;
    assert_eq!(stage.log(), "1\n2\n3\n");
    assert_eq!(stage.results().await, ["exit 1", "exit 1", "exit 1"]);
}

#[tokio::test]
async fn a_hook_that_asks_to_be_run_again_has_used_up_nothing_when_it_fails() {
    // Four wishes are more than the schedule has gaps; three failures then, as many as without them.
    let stage = Stage::new("[ $TILLD_ATTEMPT -gt 4 ] || exit 75; exit 1");
    stage.ledger.owe("1", 1).await;
    stage.until(&[DeliveryState::Abandoned]).await;
    let wanted = [["exit 75"; 4].as_slice(), &["exit 1"; 3]].concat();
    assert_eq!(stage.results().await, wanted);
}

#[tokio::test]
async fn one_invoice_is_one_at_a_time_in_order_and_the_limit_holds_across_all() {
    // Each run notes how many run beside it: an own file in `$HOME/now`, counted while it is there.
    let script = "mkdir -p $HOME/now; : > $HOME/now/$$; ls $HOME/now | wc -l >> $HOME/log; sleep 0.1; \
        echo $TILLD_EVENT_ID >> $HOME/$TILLD_ORDER_ID; rm $HOME/now/$$";
    let stage = Stage::new(script);
    for order in 0..6 {
        stage.ledger.owe(&format!("order{order}"), 2).await;
    }
    stage.until(&[DeliveryState::Done]).await;
    let most = stage
        .log()
        .lines()
        .filter_map(|line| line.trim().parse::<u32>().ok())
        .max();
    assert!(
        most.is_some_and(|most| (2..=3).contains(&most)),
        "{most:?} at once"
    );
    for order in 0..6 {
        let order = format!("order{order}");
        let ran = fs::read_to_string(stage.dir.path().join(&order)).expect("it ran");
        assert_eq!(
            ran.lines().collect::<Vec<_>>(),
            stage.ledger.event_ids(&order).await
        );
    }
}

#[tokio::test]
async fn a_stop_lets_running_hooks_finish() {
    let stage = Stage::new(
        "echo begun >> $HOME/log; while [ ! -e $HOME/go ]; do sleep 0.02; done; echo ended >> $HOME/log",
    );
    stage.ledger.owe("1", 2).await;
    let outbox = stage.start();
    wait_until(async || stage.log() == "begun\n").await;
    stage.shutdown.request();
    fs::write(stage.dir.path().join("go"), "").expect("written");
    stage.stop(outbox).await;
    // The second event was not begun any more.
    assert_eq!(stage.log(), "begun\nended\n");
    assert_eq!(stage.results().await, ["exit 0"]);
}

#[tokio::test]
async fn a_stop_ends_what_takes_longer_and_that_is_no_failure() {
    let mut stage = Stage::new("echo begun >> $HOME/log; [ $TILLD_ATTEMPT = 2 ] || exec sleep 600");
    stage.settings.drain = Duration::from_millis(20);
    stage.settings.schedule.clear();
    stage.ledger.owe("1", 1).await;
    let outbox = stage.start();
    wait_until(async || stage.log() == "begun\n").await;
    stage.stop(outbox).await;
    assert_eq!(stage.results().await, ["interrupted"]);
    let stage = Stage {
        shutdown: Shutdown::new(),
        ..stage
    };
    stage.until(&[DeliveryState::Done]).await;
    assert_eq!(stage.results().await, ["interrupted", "exit 0"]);
}

#[tokio::test]
async fn what_an_earlier_daemon_left_running_is_ended_before_it_runs_again() {
    let stage = Stage::new(
        "[ -e /proc/$(cat $HOME/old)/exe ] && echo overlap >> $HOME/log; echo $TILLD_ATTEMPT >> $HOME/log",
    );
    stage.ledger.owe("1", 1).await;
    let mut old = Command::new("/bin/sh")
        .args(["-c", "trap '' TERM; while :; do sleep 0.1; done"])
        .process_group(0)
        .stdin(Stdio::null())
        .spawn()
        .expect("sh starts");
    fs::write(stage.dir.path().join("old"), old.id().to_string()).expect("written");
    let child = ProcessMark::of(i32::try_from(old.id()).expect("a pid")).expect("it runs");
    stage.ledger.leave_running(Some(child.clone())).await;
    let leftover = stage.settings.surroundings.work_dir.join("0123");
    fs::create_dir_all(&leftover).expect("made");

    let outbox = stage.start();
    wait_until(async || !child.is_running()).await;
    old.wait().expect("reaped");
    wait_until(async || {
        stage
            .ledger
            .deliveries()
            .await
            .iter()
            .all(|(state, _)| *state == DeliveryState::Done)
    })
    .await;
    // With the next look nobody can be at work there any more.
    wait_until(async || !leftover.exists()).await;
    stage.stop(outbox).await;
    assert_eq!(stage.log(), "2\n");
    assert_eq!(stage.results().await, ["interrupted", "exit 0"]);
}

#[tokio::test]
async fn a_claim_whose_process_was_never_named_is_simply_run_again() {
    let stage = Stage::new("echo $TILLD_ATTEMPT >> $HOME/log");
    stage.ledger.owe("1", 1).await;
    stage.ledger.leave_running(None).await;
    stage.until(&[DeliveryState::Done]).await;
    assert_eq!(stage.log(), "2\n");
}

#[tokio::test]
async fn a_wake_is_enough_and_not_needed() {
    let stage = Stage::new("echo ran >> $HOME/log");
    let outbox = stage.start();
    stage.ledger.owe("1", 1).await;
    stage.wake.ring();
    wait_until(async || stage.log() == "ran\n").await;
    // No ring this time: the scan finds it.
    stage.ledger.owe("2", 1).await;
    wait_until(async || stage.log() == "ran\nran\n").await;
    stage.stop(outbox).await;
}

#[tokio::test]
async fn an_end_that_cannot_be_stored_is_stored_later_and_nothing_runs_twice() {
    // The hook waits until another program holds the ledger; the test lets it go when the hook has ended.
    let stage = Stage::new(
        "touch $HOME/began; until test -e $HOME/held; do sleep 0.01; done; echo ran >> $HOME/log",
    );
    stage.ledger.owe("1", 1).await;
    let outbox = stage.start();
    let run_dir = &stage.settings.surroundings.work_dir;
    // Begun means that its process is stored: from here on only its end is left to be.
    wait_until(async || stage.dir.path().join("began").exists()).await;
    let lock = HeldLock::take(&stage.dir.path().join("state"));
    fs::write(stage.dir.path().join("held"), "").expect("written");
    wait_until(async || stage.log() == "ran\n" && hook::leftovers(run_dir).is_empty()).await;
    assert!(stage.results().await.is_empty(), "nothing could be stored");
    drop(lock);
    wait_until(async || stage.results().await == ["exit 0"]).await;
    stage.stop(outbox).await;
    assert_eq!(stage.log(), "ran\n");
}

/// A hook limited to one run at once may still run where an earlier daemon left it.
#[tokio::test]
async fn the_place_of_an_old_run_that_could_not_be_watched_is_kept_until_it_is_over() {
    let stage = Stage::new("exit 0");
    let room = Room {
        ordinary: 1,
        slow: 0,
    };
    let mut outbox = stage.outbox(room);
    for (went, free) in [(Went::Trouble, 0), (Went::Stored, 1)] {
        let (key, now) = (DeliveryKey(1), Instant::now().into_std());
        outbox.places.find(Run::Old(key), "fulfil", now);
        let task = outbox.settling.spawn(async move { went });
        outbox.being_settled.insert(task.id(), key);
        let joined = outbox.settling.join_next_with_id().await.expect("one");
        outbox.settled(joined);
        assert_eq!(outbox.places.free(0, now), free, "{went:?}");
        assert!(outbox.being_settled.is_empty());
    }
}
