//! Trying hooks out before the first payment: the program really runs, and everything it saw and said is shown.

use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use tilld::config::keys;

use crate::docs::{docs, rows};
use crate::harness::{KINDS, wait_until};
use crate::shop::Shop;

/// Longer than any machine takes to start a script.
const LONG: Duration = Duration::from_secs(30);

/// A shop with one hook for paid orders, whose script these lines are. The script's directory lives as long as the pair.
fn with_hook(lines: &str) -> (Shop, tempfile::TempDir) {
    let scripts = tempfile::tempdir().expect("a directory");
    let script = Shop::script(scripts.path(), "fulfil", lines);
    let hook = |name: &str, program: &Path| {
        format!(
            "[[hook]]\nname = \"{name}\"\non = [\"paid\"]\nrun = [\"{}\"]\n",
            program.display()
        )
    };
    let hooks = [hook("fulfil", &script), hook("gone", Path::new("/no/such"))];
    (Shop::new(&hooks.concat()), scripts)
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no text at {pointer} in {value}"))
}

#[test]
fn a_list_says_which_programs_can_run() {
    let (shop, _scripts) = with_hook("exit 0");
    let lines = shop.tilld(&["hook", "list", "--json"], 0).lines();
    let usable: Vec<(&str, Option<bool>)> = lines
        .iter()
        .map(|line| {
            (
                text(line, "/name"),
                line.get("usable").and_then(Value::as_bool),
            )
        })
        .collect();
    assert_eq!(usable, [("fulfil", Some(true)), ("gone", Some(false))]);
    let people = shop.tilld(&["hook", "list"], 0).stdout;
    assert!(people.contains("no: No such file"), "{people}");
}

#[test]
fn a_list_says_which_events_each_hook_would_get() {
    let hook = |name: &str, on: &str, more: &str| {
        format!("[[hook]]\nname = \"{name}\"\non = {on}\nrun = [\"/bin/true\", \"-x\"]\n{more}")
    };
    let config = [
        hook("fulfil", r#"["paid"]"#, ""),
        hook("one", r#"["failed", "status:odd"]"#, "concurrency = 1\n"),
        hook("log", r#"["*", "paid"]"#, ""),
        "[outbox]\nslow_concurrency = 2\n[on_abandoned]\nrun = [\"/bin/true\"]\n".to_owned(),
    ];
    let shop = Shop::new(&config.concat());
    let lines = shop.tilld(&["hook", "list", "--json"], 0).lines();
    let wanted = [
        ("fulfil", json!(["paid", "late"]), json!([]), [4, 2]),
        ("one", json!(["failed"]), json!(["odd"]), [1, 0]),
        ("log", json!(KINDS), json!([]), [4, 2]),
        ("on_abandoned", json!(["abandoned"]), json!([]), [4, 2]),
    ];
    for (line, (name, events, statuses, places)) in lines.iter().zip(&wanted) {
        assert_eq!(text(line, "/name"), *name);
        assert_eq!(line.get("events"), Some(events), "{name}");
        assert_eq!(line.get("statuses"), Some(statuses), "{name}");
        let [ordinary, slow] = places;
        assert_eq!(line.get("concurrency"), Some(&json!(ordinary)), "{name}");
        assert_eq!(line.get("slow_concurrency"), Some(&json!(slow)), "{name}");
    }
    assert_eq!(lines.len(), wanted.len());
    let people = shop.tilld(&["hook", "list"], 0).stdout;
    for wanted in [
        "fulfil\n  is told of  paid, late; once in an invoice's life\n  runs        /bin/true -x\n",
        "  at once     4, and 2 more for runs that last\n",
        "one\n  is told of  failed; any event with status odd\n",
        "  at once     1\n",
        "log\n  is told of  every event\n",
        "on_abandoned\n  is told of  what another hook has given up\n",
    ] {
        assert!(people.contains(wanted), "{wanted} is missing in: {people}");
    }
    assert!(
        people.lines().all(|line| line.chars().count() <= 80),
        "{people}"
    );
    let check = shop
        .command(&["serve", "--check"])
        .env_remove("SERVICE_TOKEN")
        .output();
    let check = String::from_utf8(check.expect("tilld runs").stdout).expect("text");
    assert!(check.contains("fulfil, one, log, on_abandoned"), "{check}");
}

#[test]
fn a_start_looks_at_the_program_that_is_to_tell() {
    let shop = Shop::new("[on_abandoned]\nrun = [\"/no/such\"]\n");
    let mut command = shop.command(&["serve", "--check"]);
    let output = command
        .env_remove("SERVICE_TOKEN")
        .output()
        .expect("tilld runs");
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(10), "{talk}");
    assert!(
        talk.contains("`on_abandoned`") && talk.contains("`/no/such`"),
        "{talk}"
    );
}

#[test]
fn a_sample_is_what_is_told_unless_an_invoice_is_named() {
    let (shop, _scripts) = with_hook("exit 0");
    let plain = shop.tilld(&["hook", "test", "fulfil", "--json"], 0);
    let asked = shop.tilld(&["hook", "test", "fulfil", "--sample", "--json"], 0);
    for said in [plain, asked] {
        said.told(&["SAMPLE of the event `paid`"]);
        let lines = said.lines();
        assert_eq!(
            lines.first().and_then(|line| line.get("sample")),
            Some(&json!(true))
        );
    }
    let both = ["hook", "test", "fulfil", "--sample", "--order", "1042"];
    shop.tilld(&both, 2).told(&["--sample", "--order"]);
}

#[test]
fn a_run_shows_what_the_hook_saw_and_said() {
    let (shop, _scripts) = with_hook("cat; env >&2");
    let said = shop.tilld(&["hook", "test", "fulfil", "--json"], 0);
    said.told(&["SAMPLE"]);
    let lines = said.lines();
    let [report] = lines.as_slice() else {
        panic!("not one line: {}", said.stdout);
    };
    assert_eq!(report.get("sample"), Some(&Value::Bool(true)));
    assert_eq!(text(report, "/document/event/kind"), "paid");
    assert_eq!(text(report, "/result"), "exit 0");
    assert_eq!(text(report, "/next"), "done");
    let read: Value = serde_json::from_str(text(report, "/stdout/data")).expect("a document");
    assert_eq!(report.get("document"), Some(&read));
    // Exactly what is shown was there, and nothing of this command's own environment.
    let mut seen: Vec<&str> = text(report, "/stderr/data").lines().collect();
    seen.retain(|line| {
        !["PWD=", "SHLVL=", "_="]
            .iter()
            .any(|own| line.starts_with(own))
    });
    seen.sort_unstable();
    let shown = report.get("variables").and_then(Value::as_object);
    let mut shown: Vec<String> = shown
        .expect("variables")
        .iter()
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    shown.sort_unstable();
    assert_eq!(seen, shown);
    assert!(!shop.state_dir().exists(), "nothing is recorded");
}

#[test]
fn a_failed_run_says_what_would_follow() {
    for (lines, result, next) in [
        ("exit 75", "exit 75", "retry"),
        ("exit 65", "exit 65", "abandon"),
        ("kill -9 $$", "signal 9", "retry"),
    ] {
        let (shop, _scripts) = with_hook(lines);
        let said = shop.tilld(&["hook", "test", "fulfil", "--json"], 1);
        for report in said.lines() {
            assert_eq!(
                (text(&report, "/result"), text(&report, "/next")),
                (result, next)
            );
        }
    }
}

/// The exit codes in README and on the page about scripts are what really follows, and so is the number of attempts.
#[test]
fn the_documented_exit_codes_are_what_follows() {
    for heading in ["exit code | what tilld does", "code | what tilld does"] {
        let mut tried = 0;
        for row in rows(heading) {
            let [codes, meaning] = row.as_slice() else {
                panic!("{row:?}");
            };
            let next = match meaning.split([' ', ',', ':']).next() {
                Some("done") => "done",
                Some("give" | "gives") => "abandon",
                Some("retry" | "runs") => "retry",
                _ => panic!("{row:?}"),
            };
            for code in codes.split(", ").map(|code| code.parse().unwrap_or(1_u8)) {
                let (shop, _scripts) = with_hook(&format!("exit {code}"));
                let ends = i32::from(next != "done");
                let said = shop.tilld(&["hook", "test", "fulfil", "--json"], ends);
                for report in said.lines() {
                    assert_eq!(text(&report, "/next"), next, "{row:?}");
                    tried += 1;
                }
            }
        }
        assert!(tried > 5, "{heading}");
    }
    let schedule = keys()
        .into_iter()
        .find(|key| key.name == "outbox.schedule_s");
    let attempts = schedule.and_then(|key| key.default).unwrap_or_default();
    let attempts = attempts.split(',').count();
    assert!(
        docs().contains(&format!("after {attempts} attempts it gives up")),
        "{attempts}"
    );
}

#[test]
fn what_the_hook_wrote_reaches_no_terminal_unescaped() {
    let (shop, _scripts) = with_hook(r"printf 'one\n\033[2Jtwo\n'");
    let people = shop.tilld(&["hook", "test", "fulfil"], 0).stdout;
    assert!(people.contains("    one\n    \\u001b[2Jtwo\n"), "{people}");
    assert!(!people.contains('\u{1b}'), "{people}");
}

#[test]
fn an_unknown_hook_order_or_program_is_named() {
    let (shop, _scripts) = with_hook("exit 0");
    shop.tilld(&["hook", "test", "fulfill"], 3)
        .told(&["`fulfill`", "configured are `fulfil`, `gone`"]);
    shop.tilld(&["hook", "test", "gone"], 10)
        .told(&["`/no/such`"]);
    shop.refused_invoice("1042");
    for flag in ["--id", "--order"] {
        shop.tilld(&["hook", "test", "fulfil", flag, "1043"], 3)
            .told(&["`1043`"]);
    }
    // An order that is not paid is never told to a hook for paid ones.
    shop.tilld(&["hook", "test", "fulfil", "--order", "1042"], 3)
        .told(&["`1042`", "no event that hook `fulfil` wants"]);
}

#[test]
fn a_signal_ends_the_program_too() {
    let scripts = tempfile::tempdir().expect("a directory");
    let file = scripts.path().join("pid");
    // Moved into place, so that it is never read half written.
    let (new, there) = (file.with_extension("new"), file.display());
    let new = new.display();
    let (shop, _script) = with_hook(&format!(
        "echo $$ > {new}; mv {new} {there}; exec sleep 600"
    ));
    let mut child = shop
        .command(&["hook", "test", "fulfil", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("tilld runs");
    wait_until(LONG, "the hook to begin", || file.exists());
    let pid = std::fs::read_to_string(&file).expect("the hook has begun");
    let hook = Pid::from_raw(pid.trim().parse().expect("a number")).expect("not 0");
    let tilld = Pid::from_raw(i32::try_from(child.id()).expect("small")).expect("not 0");
    kill_process(tilld, Signal::TERM).expect("it lives");
    let mut stdout = String::new();
    let mut pipe = child.stdout.take().expect("piped");
    pipe.read_to_string(&mut stdout).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    let report: Value = serde_json::from_str(&stdout).expect("a report");
    assert_eq!(text(&report, "/result"), "interrupted");
    assert!(test_kill_process(hook).is_err(), "the hook is still there");
}
