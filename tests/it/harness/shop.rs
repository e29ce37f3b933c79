//! What a shop's programs and its owner do in a scenario: run `tilld` with an environment, open invoices of all kinds, tell
//! the service what to do wrong, and look how often it was asked.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::process;
use super::world::{bare, next_name};
use super::{Issued, Process, Ran, World, under_test};

impl Ran {
    /// The data as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let line = self.stdout.lines().next().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// One text of the JSON data; empty when it is `null` or absent.
    #[track_caller]
    pub(crate) fn text(&self, field: &str) -> String {
        let json = self.json();
        let value = json.get(field).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    }

    /// Passes itself on when the exit code is this one.
    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

impl World {
    /// [`World::tilld`] with these variables set.
    #[track_caller]
    pub(crate) fn tilld_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Ran {
        let mut command = self.command(&[]);
        command.args(args).envs(variables.iter().copied());
        process::run(&mut command, &self.log_dir(), &next_name())
    }

    /// [`World::tilld`] with these variables and the state directory alone: whoever runs it has not the daemon's config.
    #[track_caller]
    pub(crate) fn tilld_without_config(&self, variables: &[(&str, &str)], args: &[&str]) -> Ran {
        let mut command = Command::new(under_test());
        bare(&mut command, self.dir());
        command.arg("--state-dir").arg(self.state_dir());
        command.args(args).envs(variables.iter().copied());
        process::run(&mut command, &self.log_dir(), &next_name())
    }

    /// [`World::tilld`] by way of this program, which must become it in the same process.
    #[track_caller]
    pub(crate) fn tilld_under(&self, under: &[&str], args: &[&str]) -> Ran {
        let under: Vec<String> = under.iter().map(|&word| word.to_owned()).collect();
        let mut command = self.command(&under);
        process::run(command.args(args), &self.log_dir(), &next_name())
    }

    /// [`World::tilld`] with this as its stdout: what it says there is not in the answer.
    #[track_caller]
    pub(crate) fn tilld_into(&self, stdout: Stdio, args: &[&str]) -> Ran {
        let mut command = self.command(&[]);
        let name = next_name();
        process::run_into(command.args(args), stdout, &self.log_dir(), &name)
    }

    /// The same for a command that reads no settings.
    #[track_caller]
    pub(crate) fn alone_into(&self, stdout: Stdio, args: &[&str]) -> Ran {
        let mut command = Command::new(under_test());
        bare(&mut command, self.dir());
        let name = next_name();
        process::run_into(command.args(args), stdout, &self.log_dir(), &name)
    }

    /// [`World::start_tilld`] by way of this program, which must become it in the same process.
    pub(crate) fn start_under(&self, under: &[&str], args: &[&str]) -> Process {
        let under: Vec<String> = under.iter().map(|&word| word.to_owned()).collect();
        let mut command = self.command(&under);
        Process::spawn(command.args(args), &self.log_dir(), &next_name())
    }

    /// `tilld invoice create --json` with these further arguments, however it ends.
    #[track_caller]
    pub(crate) fn open(&self, order: &str, amount: &str, more: &[&str]) -> Ran {
        self.tilld(&create(order, amount, more))
    }

    /// [`World::open`] in the background.
    #[track_caller]
    pub(crate) fn start_open(&self, order: &str) -> Process {
        self.start_tilld(&create(order, "599.80", &[]))
    }

    /// `tilld invoice wait --json` for at most `time`.
    #[track_caller]
    pub(crate) fn wait(&self, order: &str, time: &str) -> Ran {
        self.tilld(&["invoice", "wait", order, "--timeout", time, "--json"])
    }

    /// How many requests the service has taken at `login`, `token`, `create` or `fetch`.
    #[track_caller]
    pub(crate) fn requests(&self, endpoint: &str) -> u64 {
        let state = self.control("GET", "/state", &Value::Null);
        let count = state.pointer(&format!("/requests/{endpoint}"));
        count.and_then(Value::as_u64).unwrap_or_default()
    }

    /// Tells the service what to do wrong.
    #[track_caller]
    pub(crate) fn faults(&self, faults: &Value) {
        self.control("POST", "/faults", faults);
    }

    /// Lets the service answer the next fetch with this instead.
    #[track_caller]
    pub(crate) fn next_fetch(&self, status: u16, body: &str) {
        self.faults(
            &json!({ "api_status": { "endpoint": "fetch", "status": status, "body": body } }),
        );
    }

    /// Changes what the service says about an invoice; it notifies of it.
    #[track_caller]
    pub(crate) fn happens(&self, issued: &Issued, change: &Value) {
        self.control(
            "POST",
            &format!("/invoices/{}/status", issued.segment()),
            change,
        );
    }

    /// One value of the newest invoice of an order, by its column in the view `invoices`.
    #[track_caller]
    pub(crate) fn invoice(&self, order: &str, column: &str) -> String {
        let query = format!(
            "SELECT {column} FROM invoices WHERE order_id = '{order}' ORDER BY created_ms DESC LIMIT 1"
        );
        self.value(&query)
    }
}

fn create<'a>(order: &'a str, amount: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["invoice", "create", "--json", "--order", order];
    args.extend(["--amount", amount]);
    // Said last it wins over nothing: a flag may stand once, so only what is missing is added.
    for (flag, value) in [("--currency", "RUB"), ("--method", "SBP")] {
        if !more.contains(&flag) {
            args.extend([flag, value]);
        }
    }
    args.extend(more);
    args
}
