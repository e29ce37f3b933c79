//! One merchant's machine with the service it talks to. Built by [`Setup`]; taken down, and looked at once more, when it
//! is dropped.

use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::ledger::{self, Neighbour};
use super::process::{self, Process, Ran};
use super::setup::{HOOKS, Held, Hook, SECRET_END, Setup};
use super::{Answer, PATIENCE, http, under_test, wait_for, wait_until};

/// The path of the public address.
const PATH: &str = "/n";

/// Numbers worlds and commands of this test process.
static NUMBER: AtomicU32 = AtomicU32::new(1);

/// A running scenario.
#[derive(Debug)]
pub(crate) struct World {
    dir: tempfile::TempDir,
    listen: SocketAddr,
    hooks: Vec<Hook>,
    /// The program the daemon runs under from its next start on, see [`Setup::under`].
    pub(crate) under: Vec<String>,
    /// Handed over at each start.
    held: Option<Arc<OwnedFd>>,
    /// Whether the ledger's invariants are looked at in the end: not where a daemon is wrong on purpose.
    pub(crate) is_sound: bool,
    sandbox: Process,
    addresses: Value,
    serve: Option<Process>,
}

impl World {
    #[track_caller]
    pub(super) fn build(setup: Setup) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("logs")).expect("a directory");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (listen, port) = free_address(number);
        let held = match &setup.held {
            Held::Nothing => None,
            Held::Port => Some(Arc::new(
                port.try_clone().expect("one descriptor more").into(),
            )),
            Held::Other(socket) => Some(Arc::clone(socket)),
        };
        // Free for the daemon to take, if nobody holds it.
        drop(port);
        let sandbox = start_sandbox(dir.path(), number, &setup.sandbox);
        let addresses = announced(&sandbox);
        let url = |key: &str| addresses.get(key).and_then(Value::as_str);
        let service = setup.service.as_deref().or_else(|| url("service"));
        let config = setup
            .clone()
            .set("service.url", format!("{:?}", service.unwrap_or_default()))
            .set(
                "service.cabinet_url",
                format!("{:?}", url("cabinet").unwrap_or_default()),
            )
            .set("listener.listen", format!("\"{listen}\""))
            .set("listener.public_url", format!("\"http://{listen}{PATH}\""))
            .write(dir.path());
        fs::write(dir.path().join("config.toml"), config).expect("a config");
        let mut world = Self {
            dir,
            listen,
            hooks: setup.hooks,
            under: setup.under,
            held,
            is_sound: true,
            sandbox,
            addresses,
            serve: None,
        };
        if setup.login {
            world.login();
        }
        if setup.serve {
            world.start_serve();
        }
        world
    }

    /// The directory of this world.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The state directory.
    pub(crate) fn state_dir(&self) -> PathBuf {
        self.dir().join("state")
    }

    /// A page of the sandbox, by its path.
    pub(crate) fn page(&self, path: &str) -> String {
        let cabinet = self.addresses.get("cabinet").and_then(Value::as_str);
        format!("{}{path}", cabinet.unwrap_or_default())
    }

    /// Where outputs are kept.
    pub(crate) fn log_dir(&self) -> PathBuf {
        self.dir().join("logs")
    }

    /// The listener's address.
    pub(crate) fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// The target of notifications for a ref.
    pub(crate) fn target(reference: &str) -> String {
        format!("{PATH}/{reference}")
    }

    pub(super) fn command(&self, under: &[String]) -> Command {
        let mut words = under.iter().map(String::as_str);
        let mut command = match words.next() {
            Some(program) => {
                let mut command = Command::new(program);
                command.args(words).arg(under_test());
                command
            }
            None => Command::new(under_test()),
        };
        bare(&mut command, self.dir());
        command.arg("--config").arg(self.dir().join("config.toml"));
        command.arg("--state-dir").arg(self.state_dir());
        command
    }

    /// Runs `tilld` with these arguments to its end, within 30 s.
    #[track_caller]
    pub(crate) fn tilld(&self, args: &[&str]) -> Ran {
        process::run(self.command(&[]).args(args), &self.log_dir(), &next_name())
    }

    /// Starts `tilld` with these arguments; what it says goes into the logs.
    #[track_caller]
    pub(crate) fn start_tilld(&self, args: &[&str]) -> Process {
        Process::spawn(self.command(&[]).args(args), &self.log_dir(), &next_name())
    }

    /// [`World::start_tilld`] with this as its standard input.
    #[track_caller]
    pub(crate) fn start_tilld_reading(&self, stdin: Stdio, args: &[&str]) -> Process {
        let mut command = self.command(&[]);
        Process::spawn_with(command.args(args), stdin, &self.log_dir(), &next_name())
    }

    /// Logs in by the real command; the merchant confirms at once.
    #[track_caller]
    pub(crate) fn login(&self) {
        let mut login = self.start_tilld(&["login", "--json"]);
        let code = wait_for(PATIENCE, "the code to compare", || {
            let line: Value = serde_json::from_str(login.stdout().lines().next()?).ok()?;
            Some(line.get("user_code")?.clone())
        });
        let confirmed = self.control("POST", "/login/confirm", &json!({ "userCode": code }));
        let ended = login.wait(PATIENCE);
        assert_eq!(ended, 0, "{confirmed}: {}", login.stderr());
    }

    /// Starts the daemon and waits until it says that it listens.
    #[track_caller]
    pub(crate) fn start_serve(&mut self) {
        if let Err((code, said)) = self.try_start_serve() {
            panic!("ended with {code}: {said}");
        }
    }

    /// [`World::start_serve`], however it goes: the exit code of a daemon that ended before it listened, and what it said.
    #[track_caller]
    pub(crate) fn try_start_serve(&mut self) -> Result<(), (i32, String)> {
        assert!(self.serve.is_none(), "one daemon at a time");
        let mut command = self.command(&self.under);
        let stdin = self.handed();
        let mut serve = Process::spawn_with(
            command.args(["serve", "--json"]),
            stdin,
            &self.log_dir(),
            &format!("serve-{}", next_name()),
        );
        let mut ended = false;
        wait_until(PATIENCE, "the daemon to listen", || {
            ended = serve.ended().is_some();
            // One that is refused prints a line too, before it ends.
            ended || serve.stdout().contains("\"listen\"")
        });
        if ended {
            return Err((serve.wait(PATIENCE), serve.stderr()));
        }
        self.serve = Some(serve);
        Ok(())
    }

    /// What is handed over at a start.
    fn handed(&self) -> Stdio {
        self.held.as_ref().map_or_else(Stdio::null, |held| {
            held.try_clone().expect("one descriptor more").into()
        })
    }

    /// Starts the daemon as [`World::start_serve`] does, and waits for its end.
    #[track_caller]
    pub(crate) fn serve_refused(&self) -> Ran {
        self.serve_ended(&[])
    }

    /// The same with these flags.
    #[track_caller]
    pub(crate) fn serve_ended(&self, flags: &[&str]) -> Ran {
        let mut command = self.command(&self.under);
        command.arg("serve").args(flags);
        let name = next_name();
        let mut serve = Process::spawn_with(&mut command, self.handed(), &self.log_dir(), &name);
        let code = serve.wait(PATIENCE);
        Ran {
            code,
            stdout: serve.stdout(),
            stderr: serve.stderr(),
        }
    }

    /// The daemon's process id.
    #[track_caller]
    pub(crate) fn serve_pid(&self) -> u32 {
        self.serve.as_ref().expect("a daemon").pid()
    }

    /// All the running daemon has logged.
    #[track_caller]
    pub(crate) fn serve_log(&self) -> String {
        let serve = self.serve.as_ref().expect("a daemon");
        wait_until(PATIENCE, "what was logged to be written", || {
            process::log_is_out(serve.pid())
        });
        serve.stderr()
    }

    /// Kills the daemon as a power cut would.
    #[track_caller]
    pub(crate) fn kill9_serve(&mut self) {
        let mut serve = self.serve.take().expect("a daemon");
        serve.signal(Signal::KILL);
        assert_eq!(serve.wait(PATIENCE), 128 + 9);
    }

    /// Sends the daemon a signal.
    #[track_caller]
    pub(crate) fn signal_serve(&self, signal: Signal) {
        self.serve.as_ref().expect("a daemon").signal(signal);
    }

    /// Asks the daemon to stop, and waits for nothing.
    #[track_caller]
    pub(crate) fn ask_to_stop(&self) {
        self.serve.as_ref().expect("a daemon").signal(Signal::TERM);
    }

    /// Asks the daemon to stop and gives its exit code; panics when it takes longer than `bound`.
    #[track_caller]
    pub(crate) fn stop_serve(&mut self, bound: Duration) -> i32 {
        self.ask_to_stop();
        self.serve_ends(bound)
    }

    /// Waits for the daemon to end, by itself or since it was asked already: a second wish to stop means more than the
    /// first. Gives its exit code; panics when it takes longer than `bound`.
    #[track_caller]
    pub(crate) fn serve_ends(&mut self, bound: Duration) -> i32 {
        self.serve.take().expect("a daemon").wait(bound)
    }

    /// Stops the daemon cleanly and gives all it has logged.
    #[track_caller]
    pub(crate) fn stop_serve_log(&mut self) -> String {
        self.ask_to_stop();
        let mut serve = self.serve.take().expect("a daemon");
        assert_eq!(serve.wait(PATIENCE), 0);
        serve.stderr()
    }

    /// One of the sandbox's addresses by the name it announces it under: `service` or `control`.
    #[track_caller]
    pub(crate) fn address(&self, name: &str) -> SocketAddr {
        let url = self.addresses.get(name).and_then(Value::as_str);
        let address = url.and_then(|url| url.strip_prefix("http://")?.parse().ok());
        address.expect("an address")
    }

    /// One request to the service itself, as another program of the shop sends it. Gives the answer's JSON.
    #[track_caller]
    pub(super) fn service(&self, path: &str, access_token: &str, body: &Value) -> Value {
        let address = self.address("service");
        let (host, bearer) = (address.to_string(), format!("Bearer {access_token}"));
        let headers = [
            ("Content-Type", "application/json"),
            ("Authorization", bearer.as_str()),
        ];
        let body = body.to_string();
        let answer = http::request_to(&host, address, "POST", path, &headers, &body);
        assert_eq!(answer.status / 100, 2, "{path} {body}: {answer:?}");
        answer.json()
    }

    /// One request to the sandbox's control listener; `Null` is no body. Gives the answer's JSON.
    #[track_caller]
    pub(crate) fn control(&self, method: &str, path: &str, body: &Value) -> Value {
        let address = self.address("control");
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let host = address.to_string();
        let answer = http::request_to(&host, address, method, path, &[], &body);
        assert_eq!(answer.status / 100, 2, "{method} {path} {body}: {answer:?}");
        answer.json()
    }

    /// One notification on a connection of its own, with nothing added but its length and JSON as its type.
    #[track_caller]
    pub(crate) fn notify(&self, reference: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut all = vec![("Content-Type", "application/json")];
        all.extend(headers);
        http::request(self.listen, "POST", &Self::target(reference), &all, body)
    }

    /// The ledger's file.
    pub(crate) fn ledger(&self) -> PathBuf {
        self.state_dir().join("ledger.db")
    }

    /// Rows of a read-only query, every value as text; `NULL` is empty.
    #[track_caller]
    pub(crate) fn sql(&self, query: &str) -> Vec<Vec<String>> {
        ledger::sql(&self.ledger(), query)
    }

    /// The single value of a query of one row and column.
    #[track_caller]
    pub(crate) fn value(&self, query: &str) -> String {
        let rows = self.sql(query);
        let mut values = rows.iter().flatten();
        match (values.next(), values.next()) {
            (Some(value), None) => value.clone(),
            _ => panic!("{query}: {rows:?}"),
        }
    }

    /// Another program that writes the same file.
    #[track_caller]
    pub(crate) fn neighbour(&self) -> Neighbour {
        Neighbour::open(&self.ledger())
    }

    /// The lines a hook wrote to its file.
    pub(crate) fn hook_log(&self, name: &str) -> Vec<String> {
        let file = self.dir().join(HOOKS).join(format!("{name}.log"));
        process::read(&file).lines().map(str::to_owned).collect()
    }

    /// The secret file of a hook that posts.
    pub(crate) fn secret_file(&self, name: &str) -> PathBuf {
        self.dir().join(HOOKS).join(format!("{name}.{SECRET_END}"))
    }

    /// Waits until nothing is owed to any hook any more.
    #[track_caller]
    pub(crate) fn settle(&self) {
        let owed = "SELECT count(*) FROM deliveries WHERE state IN ('waiting', 'running')";
        wait_until(PATIENCE, "all deliveries to be done", || {
            self.value(owed) == "0"
        });
    }

    /// What is looked at after every scenario.
    fn look_over(&mut self) {
        if let Some(serve) = self.serve.as_ref().map(Process::pid) {
            wait_until(PATIENCE, "all that ended to be reaped", || {
                process::descendants(serve)
                    .iter()
                    .all(|(_, state)| *state != 'Z')
            });
            assert_eq!(self.stop_serve(PATIENCE), 0, "SIGTERM is a normal end");
        }
        self.sandbox.signal(Signal::TERM);
        assert_eq!(self.sandbox.wait(PATIENCE), 0, "the sandbox ends normally");
        let dir = self.dir().to_owned();
        let mut left = Vec::new();
        wait_until(PATIENCE, "nothing to be left running", || {
            left = process::running_in(&dir);
            left.is_empty()
        });
        if self.is_sound && self.ledger().exists() {
            ledger::invariants(&self.ledger(), &self.hooks);
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if thread::panicking() {
            let logs = process::logs(&self.log_dir());
            // Where the panic's own message goes, too.
            drop(std::io::stderr().write_all(logs.as_bytes()));
        } else {
            self.look_over();
        }
    }
}

/// An address of this world alone, and what listens on it: a restarted daemon finds it free again, since nobody else takes
/// ports of it.
fn free_address(number: u32) -> (SocketAddr, TcpListener) {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let [.., last] = number.to_be_bytes();
    let ip = Ipv4Addr::new(127, 1 + high % 254, low, 1 + last % 254);
    let listener = TcpListener::bind((ip, 0)).expect("a loopback address");
    (listener.local_addr().expect("bound"), listener)
}

pub(crate) fn next_name() -> String {
    format!("{:04}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Nothing of the test's own environment.
pub(super) fn bare(command: &mut Command, dir: &Path) {
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", dir);
}

fn start_sandbox(dir: &Path, seed: u32, flags: &[String]) -> Process {
    let mut command = Command::new(under_test());
    bare(&mut command, dir);
    command.args(["--json", "sandbox", "--listen=127.0.0.1:0"]);
    command.args(["--control=127.0.0.1:0", "--interval=1"]);
    command.args([format!("--seed={seed}"), "--notify-retry=1".to_owned()]);
    command.args(flags);
    Process::spawn(&mut command, &dir.join("logs"), "sandbox")
}

/// Its addresses, from the one line it prints.
fn announced(sandbox: &Process) -> Value {
    wait_for(PATIENCE, "the sandbox to say where it is", || {
        let said = sandbox.stdout();
        let (line, _) = said.split_once('\n')?;
        serde_json::from_str(line).ok()
    })
}
