//! What the merchant's own program lists as handed over. It runs as the head of a process group of its own, which ends with it,
//! with the time it is given and with whoever waits for it; what it says is read up to a bound.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::cli::stage::command::told;
use crate::cli::stage::trouble::Trouble;

/// It has so long.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A list is shorter than this, bytes.
const LARGEST: u64 = 16 * 1024 * 1024;
/// Between two looks whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The program while it runs. Dropping it ends its group.
struct Group(Child);

impl Group {
    fn pid(&self) -> Option<Pid> {
        let id = self.0.id()?;
        Pid::from_raw(i32::try_from(id).ok()?)
    }

    /// Waits for its end and ends whom it left. Only then is it reaped: until then nobody else has its number.
    async fn end(mut self) -> io::Result<ExitStatus> {
        if let Some(pid) = self.pid() {
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            while waitid(WaitId::Pid(pid), look)?.is_none() {
                sleep(LOOK_EVERY).await;
            }
        }
        self.kill();
        self.0.wait().await
    }

    fn kill(&self) {
        // `None` when it is reaped.
        if let Some(pid) = self.pid()
            && let Err(error) = kill_process_group(pid, Signal::KILL)
        {
            tracing::debug!(error = %error, "could not signal the group of the goods' list");
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What it lists.
pub(super) async fn listed(command: &str) -> Result<String, Trouble> {
    let run = |source| Trouble::Goods {
        command: command.to_owned(),
        source,
    };
    let child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let mut group = Group(child.map_err(run)?);
    let ended = async {
        let mut said = Vec::new();
        if let Some(stdout) = group.0.stdout.take() {
            stdout.take(LARGEST + 1).read_to_end(&mut said).await?;
        }
        if u64::try_from(said.len()).is_ok_and(|len| len > LARGEST) {
            return Ok((said, None));
        }
        let status = group.end().await?;
        Ok((said, Some(status)))
    };
    let listing = |expected: &str, found: String| Trouble::Listing {
        expected: expected.to_owned(),
        found,
    };
    let over = timeout(TIMEOUT, ended).await;
    let late = |_elapsed| {
        listing(
            &format!("within {} s", TIMEOUT.as_secs()),
            "cut off".to_owned(),
        )
    };
    match over.map_err(late)?.map_err(run)? {
        (_, None) => {
            let bound = format!("within {} MiB", LARGEST / 1024 / 1024);
            Err(listing(&bound, "too much output".to_owned()))
        }
        (_, Some(status)) if !status.success() => Err(listing("exit 0", told(status))),
        (said, Some(_)) => Ok(String::from_utf8_lossy(&said).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn seen(result: Result<String, Trouble>) -> String {
        match result {
            Err(Trouble::Listing { found, .. }) => found,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_list_is_read_and_an_end_is_told() {
        assert_eq!(listed("echo A-1").await.expect("listed"), "A-1\n");
        assert_eq!(seen(listed("exit 3").await), "exit 3");
    }

    #[tokio::test]
    async fn a_list_without_end_is_cut_off_by_its_length() {
        assert_eq!(seen(listed("exec cat /dev/zero").await), "too much output");
    }

    async fn ends(pid: &str) {
        let path = format!("/proc/{pid}/stat");
        let runs = || fs::read_to_string(&path).is_ok_and(|stat| !stat.contains(") Z "));
        let look = async {
            while runs() {
                sleep(LOOK_EVERY).await;
            }
        };
        timeout(TIMEOUT, look).await.expect("it ends");
    }

    #[tokio::test]
    async fn whom_it_leaves_ends_with_it() {
        let said = listed("sleep 600 >/dev/null 2>&1 & echo $!").await;
        ends(said.expect("listed").trim()).await;
    }

    #[tokio::test]
    async fn whoever_stops_waiting_leaves_no_process() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("pid");
        let command = format!("sleep 600 & echo $! >'{}'; wait", file.display());
        let pid = async {
            loop {
                let text = fs::read_to_string(&file).unwrap_or_default();
                if text.ends_with('\n') {
                    return text;
                }
                sleep(LOOK_EVERY).await;
            }
        };
        let pid = tokio::select! {
            listed = listed(&command) => panic!("{listed:?}"),
            pid = pid => pid,
        };
        ends(pid.trim()).await;
    }
}
