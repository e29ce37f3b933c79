//! The demo as a newcomer runs it. What is at stake: it is the first thing seen of tilld and the one proof that all parts
//! fit together, so it must not claim what is not so, nor leave anything behind.

mod tour;

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::docs::{example, plain};
use crate::harness::{sql, under_test};

/// The promise: everything is over within this.
const BOUND: Duration = Duration::from_secs(20);
/// Every step, in order.
const STEPS: [&str; 9] = [
    "sandbox",
    "daemon",
    "login",
    "paid",
    "lost",
    "cancelled",
    "repeated",
    "forged",
    "stopped",
];

/// `tilld demo`, with temporary directories of its own in `temp`.
fn demo(temp: &Path, args: &[&str]) -> Command {
    demo_by(Command::new(under_test()), temp, args)
}

/// The same by this program, which becomes tilld.
fn demo_by(mut command: Command, temp: &Path, args: &[&str]) -> Command {
    command.arg("demo").args(args);
    // Settings and tokens of whoever runs it must not reach what the demo starts.
    command
        .env("SERVICE_TOKEN", "shop:somebody-elses-token")
        .env("TILLD_POLLER_CADENCE_S", "60")
        .env("STATE_DIRECTORY", "/nonexistent")
        .env("TMPDIR", temp)
        .stdin(Stdio::null());
    command
}

fn lines(text: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(text);
    let parsed = text.lines().map(serde_json::from_str);
    parsed
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn talk(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Processes that were started with a path below `directory`.
fn running_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("/proc is there");
    let lines = entries.filter_map(|entry| {
        // One that ended meanwhile has no command line any more.
        let line = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    let wanted = directory.to_string_lossy().into_owned();
    lines.filter(|line| line.contains(&wanted)).collect()
}

/// The rows of a question to the ledger, columns joined by `|`.
fn rows(ledger: &Path, question: &str) -> Vec<String> {
    let rows = sql(ledger, question);
    rows.into_iter().map(|cells| cells.join("|")).collect()
}

#[test]
fn every_step_goes_as_promised_and_nothing_is_left_running() {
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().join("it's a demo");
    let began = Instant::now();
    let named = directory.to_str().expect("UTF-8");
    let output = demo(home.path(), &["--json", "--dir", named]).output();
    let output = output.expect("tilld runs");
    let took = began.elapsed();
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    assert_eq!(running_in(&directory), Vec::<String>::new());
    assert!(took < BOUND, "{took:?}");

    let mut lines = lines(&output.stdout);
    let last = lines.pop().expect("a closing line");
    assert!(lines.iter().map(|line| text(line, "/step")).eq(STEPS));
    for line in &lines {
        assert_eq!(line.get("held"), Some(&json!(true)), "{line}");
        assert_ne!(text(line, "/promised"), "", "{line}");
    }
    // What it says of the ledger is what the ledger says.
    let ledger = directory.join("state/ledger.db");
    let (_, question) = text(&last, "/sqlite3").split_once('"').expect("quoted");
    let invoices = rows(&ledger, question.trim_end_matches('"'));
    let wanted = [
        "demo-1|paid|paid|notification",
        "demo-2|paid|paid|poll",
        "demo-3|canceled|failed|notification",
    ];
    assert_eq!(invoices, wanted);
    let told = last.pointer("/ledger/invoices").and_then(Value::as_array);
    let told = told.into_iter().flatten().map(|invoice| {
        let fields = ["order_id", "status", "outcome", "found_by"];
        fields
            .map(|name| text(invoice, &format!("/{name}")))
            .join("|")
    });
    assert!(told.eq(wanted), "{last}");
    let deliveries = "select order_id, hook, state, result from deliveries join attempts using (event_id, hook) order by seq";
    assert_eq!(
        rows(&ledger, deliveries),
        [
            "demo-1|fulfil|done|exit 0",
            "demo-2|fulfil|done|exit 0",
            "demo-3|cancelled|done|exit 0",
        ]
    );
    let log = std::fs::read_to_string(directory.join("fulfilled.log")).expect("written");
    let starts = [
        "order=demo-1 amount=1500.00 RUB ",
        "order=demo-2 amount=749.50 RUB ",
    ];
    assert_eq!(log.lines().count(), starts.len(), "{log}");
    for (line, start) in log.lines().zip(starts) {
        assert!(
            line.starts_with(start) && line.ends_with("attempt=1"),
            "{line}"
        );
    }
}

/// README shows what the demo prints: the same lines, but for times, ports and the code.
#[test]
fn the_demo_prints_what_readme_shows() {
    let home = tempfile::tempdir().expect("a directory");
    let output = demo(home.path(), &[]).output().expect("tilld runs");
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    let printed = plain(&String::from_utf8_lossy(&output.stdout));
    let printed: Vec<String> = printed
        .into_iter()
        .take_while(|line| !line.is_empty())
        .collect();
    assert_eq!(plain(&example("demo")), printed);
}

#[test]
fn a_daemon_that_cannot_start_is_named_and_its_traces_are_kept() {
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().join("kept");
    let named = directory.to_str().expect("UTF-8");
    // No file may be longer than 16 KiB, which a new ledger is. This stops root too, which a mode would not.
    let mut short = Command::new("sh");
    let becomes = "trap '' XFSZ; ulimit -f 32; exec \"$0\" \"$@\"";
    short.args(["-c", becomes]).arg(under_test());
    let output = demo_by(short, home.path(), &["--dir", named]).output();
    let output = output.expect("tilld runs");
    let talk = talk(&output);
    assert_eq!(output.status.code(), Some(1), "{talk}");
    assert!(
        talk.contains("error: the demo stopped at step `daemon`"),
        "{talk}"
    );
    assert!(
        talk.contains("serve.log") && talk.contains("hint:"),
        "{talk}"
    );
    let timeline = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        timeline.contains("daemon    not as promised: "),
        "{timeline}"
    );
    assert!(!timeline.contains("login"), "{timeline}");
    assert!(directory.join("config.toml").exists());
    assert_eq!(running_in(&directory), Vec::<String>::new());
}

/// A demo that goes on, and its answers line by line.
struct Playing {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Playing {
    fn start(temp: &Path, args: &[&str]) -> Self {
        let mut command = demo(temp, args);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("tilld runs");
        let stdout = child.stdout.take().expect("piped");
        let lines = BufReader::new(stdout).lines();
        Self { child, lines }
    }

    fn line(&mut self) -> Value {
        let line = self.lines.next().expect("it goes on").expect("readable");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The line of this step, or the one after all steps for `None`.
    fn line_of(&mut self, step: Option<&str>) -> Value {
        loop {
            let line = self.line();
            if line.get("step").and_then(Value::as_str) == step {
                return line;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("a process id"), signal).expect("it runs");
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        // Only a failed test leaves it running; the daemon is stopped by the wish it hears.
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.signal(Signal::TERM);
            self.child.wait().expect("reaped");
        }
    }
}

fn authority(address: &str) -> &str {
    let rest = address.strip_prefix("http://").expect("http");
    rest.split('/').next().expect("a first part")
}

#[test]
fn with_stay_everything_is_there_until_the_signal_and_gone_after_it() {
    let temp = tempfile::tempdir().expect("a directory");
    let mut playing = Playing::start(temp.path(), &["--json", "--stay"]);
    let closing = playing.line_of(None);
    let directory = Path::new(text(&closing, "/dir")).to_owned();
    assert!(directory.starts_with(temp.path()), "{closing}");
    let stops = closing
        .pointer("/stay/tour/stops")
        .and_then(Value::as_array);
    assert!(stops.is_some_and(|stops| stops.len() > 5), "{closing}");
    assert_eq!(running_in(&directory).len(), 1, "the daemon alone");
    for page in ["service", "cabinet", "faults", "control", "listener"] {
        let address = text(&closing, &format!("/stay/pages/{page}"));
        TcpStream::connect(authority(address)).expect("it answers");
    }
    playing.signal(Signal::INT);
    let ended = playing.child.wait().expect("ends");
    assert_eq!(ended.code(), Some(0));
    assert_eq!(running_in(&directory), Vec::<String>::new());
    assert!(!directory.exists());
}

#[test]
fn an_interrupted_demo_cleans_up() {
    let temp = tempfile::tempdir().expect("a directory");
    let mut playing = Playing::start(temp.path(), &["--json"]);
    playing.line_of(Some("login"));
    assert!(!running_in(temp.path()).is_empty(), "the daemon runs");
    playing.signal(Signal::TERM);
    let ended = playing.child.wait().expect("ends");
    assert_eq!(ended.code(), Some(1));
    assert_eq!(running_in(temp.path()), Vec::<String>::new());
    assert_eq!(std::fs::read_dir(temp.path()).expect("there").count(), 0);
}
