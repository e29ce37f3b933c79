//! Real programs under a launcher: output, ends, limits, surroundings, and that nothing is left over.

use std::fs;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use super::*;
use crate::hook::payload::VARIABLES;
use crate::hook::payload::tests::facts;

/// Longer than any of these programs takes.
const LONG: Duration = Duration::from_mins(1);
const SHORT: Duration = Duration::from_millis(200);

struct Stage {
    dir: tempfile::TempDir,
    around: Surroundings,
    program: Program,
    facts: Facts,
}

impl Stage {
    fn with(path: &str, args: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let around = Surroundings {
            launcher: launch::stand_in(),
            work_dir: dir.path().join("run"),
            home: PathBuf::from("/nonexistent"),
        };
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        let program = Program {
            path: PathBuf::from(path),
            args,
            timeout: LONG,
            grace: LONG,
        };
        Self {
            dir,
            around,
            program,
            facts: facts(),
        }
    }

    fn script(script: &str) -> Self {
        Self::with("/bin/sh", &["-c", script])
    }

    fn at_most(mut self, timeout: Duration, grace: Duration) -> Self {
        (self.program.timeout, self.program.grace) = (timeout, grace);
        self
    }

    async fn launch(&self) -> Launched {
        launch(&self.program, &self.around, &self.facts)
            .await
            .expect("launched")
    }

    /// Runs it and sees that nothing is left: no directory, no process of the group, no zombie.
    async fn run(&self) -> Finished {
        let launched = self.launch().await;
        let mark = launched.mark().clone();
        let finished = launched.run(&Shutdown::new()).await;
        self.nothing_is_left(&mark).await;
        finished
    }

    async fn nothing_is_left(&self, mark: &ProcessMark) {
        assert!(
            !crate::hook::members::has_members(mark.pid),
            "a member of the group lives on"
        );
        // The launcher has been told to reap it, and does it in its own time.
        let reaped = async {
            while fs::exists(format!("/proc/{}", mark.pid)).expect("readable") {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(LONG, reaped).await.expect("no zombie");
        assert_eq!(
            crate::hook::leftovers(&self.around.work_dir),
            Vec::<PathBuf>::new()
        );
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

#[tokio::test]
async fn the_end_is_the_programs_own() {
    for (script, wanted) in [
        ("exit 0", Ending::Exited(0)),
        ("exit 1", Ending::Exited(1)),
        ("exit 75", Ending::Exited(75)),
        ("exit 126", Ending::Exited(126)),
        ("exit 127", Ending::Exited(127)),
        ("kill -9 $$", Ending::Signalled(9)),
        ("kill -15 $$", Ending::Signalled(15)),
    ] {
        assert_eq!(Stage::script(script).run().await.ending, wanted, "{script}");
    }
}

#[tokio::test]
async fn the_launchers_refusal_is_a_failed_start_with_its_reason() {
    let stage = Stage::script(
        "echo 'tilld: could not start `/x`: No such file or directory (os error 2)' >&2; exit 127",
    );
    let wanted = "not started: `/x`: No such file or directory (os error 2)";
    assert_eq!(stage.run().await.ending.to_string(), wanted);
}

#[tokio::test]
async fn a_launcher_that_is_not_there_is_an_error_with_its_cause() {
    let mut stage = Stage::script("true");
    stage.around.launcher = Launcher::new(stage.dir.path().join("absent"), Vec::new());
    let error = launch(&stage.program, &stage.around, &stage.facts)
        .await
        .expect_err("nothing to start");
    let LaunchError::Spawn(cause) = error else {
        panic!("{error}")
    };
    assert_eq!(cause.kind(), io::ErrorKind::NotFound);
    assert_eq!(
        crate::hook::leftovers(&stage.around.work_dir),
        Vec::<PathBuf>::new()
    );
}

#[tokio::test]
async fn nothing_runs_before_the_word_and_the_process_stays_the_same() {
    let stage = Stage::script("echo $$; echo ran > \"$HOME/ran\"");
    let stage = Stage {
        around: Surroundings {
            home: stage.dir.path().to_owned(),
            ..stage.around
        },
        ..stage
    };
    let ran = stage.dir.path().join("ran");

    let withdrawn = stage.launch().await;
    let mark = withdrawn.mark().clone();
    drop(withdrawn);
    while crate::hook::members::has_members(mark.pid) {
        tokio::task::yield_now().await;
    }
    stage.nothing_is_left(&mark).await;
    assert!(!ran.exists());

    let launched = stage.launch().await;
    let mark = launched.mark().clone();
    assert!(!ran.exists() && mark.is_running());
    let finished = launched.run(&Shutdown::new()).await;
    assert!(ran.exists());
    assert_eq!(text(&finished.stdout), format!("{}\n", mark.pid));
}

#[tokio::test]
async fn the_document_is_on_stdin_and_in_the_private_directory() {
    let stage = Stage::script(
        "cat; cmp -s - /dev/null; [ \"$PWD/payload.json\" = \"$TILLD_PAYLOAD_FILE\" ] && cat payload.json; stat -c %a . payload.json",
    );
    let finished = stage.run().await;
    let document = payload::document(&stage.facts);
    assert_eq!(
        text(&finished.stdout),
        format!("{document}{document}700\n600\n")
    );
    assert_eq!(text(&finished.stderr), "");
}

/// Keeps what each single write brought.
#[derive(Default)]
struct Writes(Vec<Vec<u8>>);

impl AsyncWrite for Writes {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.push(bytes.to_vec());
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn no_program_is_let_go_without_its_document() {
    let mut writes = Writes::default();
    feed(&mut writes, b"an order and {}".to_vec()).await;
    assert_eq!(writes.0, [b"an order and {}".to_vec()]);
}

#[tokio::test]
async fn a_document_of_a_mebibyte_arrives_whole_or_is_left_unread() {
    let big = Facts {
        requisites: Some(format!("\"{}\"", "x".repeat(1 << 20))),
        ..facts()
    };
    let whole = Stage {
        facts: big.clone(),
        ..Stage::script("wc -c")
    };
    let finished = whole.run().await;
    assert_eq!(
        text(&finished.stdout).trim(),
        payload::document(&big).len().to_string()
    );
    let unread = Stage {
        facts: big.clone(),
        ..Stage::script("exec 0<&-; exit 0")
    };
    assert_eq!(unread.run().await.ending, Ending::Exited(0));
    let ignored = Stage {
        facts: big,
        ..Stage::script("exit 0")
    };
    assert_eq!(ignored.run().await.ending, Ending::Exited(0));
}

#[tokio::test]
async fn surroundings_are_exactly_as_documented() {
    let stage = Stage::with("/usr/bin/env", &["-0"]);
    let finished = stage.run().await;
    let mut names: Vec<&str> = text(&finished.stdout)
        .split_terminator('\0')
        .filter_map(|v| v.split('=').next())
        .collect();
    names.sort_unstable();
    let mut wanted: Vec<&str> = VARIABLES
        .into_iter()
        .chain(["PATH", "HOME", "LANG"])
        .collect();
    wanted.sort_unstable();
    assert_eq!(names, wanted);
    for fixed in [
        "HOME=/nonexistent",
        "LANG=C.UTF-8",
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ] {
        assert!(
            text(&finished.stdout).split('\0').any(|v| v == fixed),
            "{fixed}"
        );
    }
}

#[tokio::test]
async fn hostile_fields_reach_the_program_as_text() {
    let order_id = "$(touch pwned); a\0b\n`id`".to_owned();
    let stage = Stage {
        facts: Facts {
            order_id,
            ..facts()
        },
        ..Stage::script("printf %s \"$TILLD_ORDER_ID\"; ls")
    };
    let finished = stage.run().await;
    assert_eq!(
        text(&finished.stdout),
        "$(touch pwned); a\u{fffd}b\u{fffd}`id`payload.json\n"
    );
}

#[tokio::test]
async fn a_descendant_that_holds_the_pipes_changes_nothing_and_is_ended() {
    let began = Instant::now();
    let finished = Stage::script("sleep 600 & echo ok; exit 0").run().await;
    assert_eq!(
        (finished.ending, text(&finished.stdout)),
        (Ending::Exited(0), "ok\n")
    );
    assert!(began.elapsed() < LONG / 2);
}

#[tokio::test]
async fn a_descendant_that_left_the_group_holds_nobody() {
    let stage = Stage::script("setsid sleep 5 & echo ok; exit 3");
    let finished = stage.run().await;
    assert_eq!(
        (finished.ending, text(&finished.stdout)),
        (Ending::Exited(3), "ok\n")
    );
}

#[tokio::test]
async fn time_is_limited_whatever_ignores_the_polite_signal() {
    let stubborn = "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo begun; while :; do sleep 1; done";
    let began = Instant::now();
    let finished = Stage::script(stubborn)
        .at_most(Duration::from_secs(1), SHORT)
        .run()
        .await;
    assert_eq!(
        (finished.ending, text(&finished.stdout)),
        (Ending::TimedOut, "begun\n")
    );
    assert!(began.elapsed() < LONG / 2);
}

#[tokio::test]
async fn a_polite_program_has_its_grace_and_its_last_words() {
    let polite = "trap 'echo bye; exit 0' TERM; echo begun; while :; do sleep 0.05; done";
    let finished = Stage::script(polite)
        .at_most(Duration::from_secs(1), LONG)
        .run()
        .await;
    assert_eq!(
        (finished.ending, text(&finished.stdout)),
        (Ending::TimedOut, "begun\nbye\n")
    );
}

#[tokio::test]
async fn a_stop_interrupts_and_is_no_failure() {
    let stage = Stage::script("echo > \"$HOME/begun\"; exec sleep 600");
    let stage = Stage {
        around: Surroundings {
            home: stage.dir.path().to_owned(),
            ..stage.around
        },
        ..stage
    };
    let launched = stage.launch().await;
    let mark = launched.mark().clone();
    let stop = Shutdown::new();
    let (finished, ()) = tokio::join!(launched.run(&stop), async {
        while !stage.dir.path().join("begun").exists() {
            tokio::task::yield_now().await;
        }
        stop.request();
    });
    assert_eq!(finished.ending, Ending::Interrupted);
    stage.nothing_is_left(&mark).await;
}

#[tokio::test]
async fn output_without_end_is_bounded() {
    let finished = Stage::script("yes; true")
        .at_most(Duration::from_secs(1), SHORT)
        .run()
        .await;
    assert_eq!(finished.ending, Ending::TimedOut);
    assert!(
        finished.stdout.len() < 2 * crate::hook::capture::KEPT_EACH + 100,
        "{}",
        finished.stdout.len()
    );
    assert!(String::from_utf8_lossy(&finished.stdout).contains("bytes dropped]\n"));
}

#[tokio::test]
async fn a_hundred_runs_at_once_leave_nothing() {
    let stage = Stage::script("cat >/dev/null; (exit 1); exit 7");
    let mut marks = Vec::new();
    let mut runs = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let launched = stage.launch().await;
        marks.push(launched.mark().clone());
        runs.spawn(async move { launched.run(&Shutdown::new()).await });
    }
    let all = runs.join_all().await;
    assert!(
        all.iter()
            .all(|finished| finished.ending == Ending::Exited(7))
    );
    for mark in &marks {
        stage.nothing_is_left(mark).await;
    }
}
