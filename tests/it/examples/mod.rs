//! What a merchant pastes into the shop: each file of `tests/examples` run as another Unix user, who may use the control
//! socket and holds nothing else, and what the socket answers held against its description.

mod broken;
mod described;
mod handed;
mod probed;
mod relay;
mod shown;
mod told;

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Issued, PATIENCE, Process, Setup, World, wait_for};

/// The user a shop runs as here: `nobody`, who owns nothing.
const SHOP: &str = "65534";
/// A group that is there everywhere and that nothing of tilld belongs to.
const CLIENTS: &str = "users";
/// Where programs are looked for: a shop's user has nobody's own.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// One file of `tests/examples`.
#[derive(Clone, Copy, Debug)]
struct Example {
    /// Its name, and the mark of its block in `docs/shop-examples.md`.
    file: &'static str,
    /// What runs it.
    program: &'static str,
    /// What must go well before it can be run.
    needs: &'static [&'static str],
}

const SH: Example = Example {
    file: "pay.sh",
    program: "sh",
    needs: &["curl", "--version"],
};
const PHP_CURL: Example = Example {
    file: "pay_curl.php",
    program: "php",
    needs: &["php", "-r", "exit(extension_loaded('curl') ? 0 : 1);"],
};
const PHP_STREAMS: Example = Example {
    file: "pay_streams.php",
    program: "php",
    needs: &["php", "--version"],
};
const PYTHON: Example = Example {
    file: "pay.py",
    program: "python3",
    needs: &["python3", "--version"],
};
const NODE: Example = Example {
    file: "pay.mjs",
    program: "node",
    needs: &["node", "--version"],
};
const ALL: [Example; 5] = [SH, PHP_CURL, PHP_STREAMS, PYTHON, NODE];

impl Example {
    /// Its text.
    fn text(self) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples");
        fs::read_to_string(path.join(self.file)).expect("the example")
    }

    /// Why it cannot be run here.
    fn lacks(self) -> Option<String> {
        let (program, args) = self.needs.split_first().expect("a program");
        let mut command = Command::new(program);
        let ran = command.args(args).env("PATH", PATH).output();
        let goes = ran.is_ok_and(|ran| ran.status.success());
        (!goes).then(|| {
            format!(
                "{} does not go well, for {}",
                self.needs.join(" "),
                self.file
            )
        })
    }
}

/// Why no other user can be played here.
fn no_other_user() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root can run a program as another user".to_owned());
    }
    if clients().is_none() {
        return Some(format!("there is no group `{CLIENTS}`"));
    }
    let setpriv = Command::new("setpriv").arg("--version").output();
    setpriv
        .is_err()
        .then(|| "setpriv is not installed".to_owned())
}

/// The number of the clients' group.
fn clients() -> Option<String> {
    let groups = fs::read_to_string("/etc/group").ok()?;
    let line = groups
        .lines()
        .find(|line| line.split(':').next() == Some(CLIENTS))?;
    line.split(':').nth(2).map(str::to_owned)
}

/// A shop beside a daemon whose socket it may use.
struct Beside {
    // Ends before the directory that holds its socket.
    world: World,
    dir: tempfile::TempDir,
}

impl Beside {
    /// Starts the daemon with a socket in a directory that everybody may enter.
    #[track_caller]
    fn start(setup: Setup) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(dir.path(), mode).expect("own directory");
        for example in ALL {
            fs::write(dir.path().join(example.file), example.text()).expect("written");
        }
        let socket = dir.path().join("control.sock");
        let world = setup.set("control.socket", format!("\"{}\"", socket.display()));
        // Only root may give it to a group of other people.
        let world = match no_other_user() {
            None => world.set("control.group", format!("{CLIENTS:?}")),
            Some(_) => world,
        };
        let world = world.start();
        Self { world, dir }
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("control.sock")
    }

    /// Starts an example as the shop's user, who is in this group and no other.
    #[track_caller]
    fn run(&self, example: Example, order: &str, group: &str) -> Process {
        let mut command = Command::new("setpriv");
        command
            .arg(format!("--reuid={SHOP}"))
            .arg(format!("--regid={SHOP}"))
            .arg(format!("--groups={group}"))
            .args([example.program, example.file])
            .arg(self.socket())
            .args([order, "150.00"])
            .env_clear()
            .env("PATH", PATH)
            .current_dir(self.dir.path());
        let name = format!("{}-{order}", example.file);
        Process::spawn(&mut command, &self.world.log_dir(), &name)
    }

    /// The same as a member of the clients' group.
    #[track_caller]
    fn client(&self, example: Example, order: &str) -> Process {
        self.run(example, order, &clients().expect("the group"))
    }

    /// One request on the socket as its owner: the status, the head and the document.
    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String, Value) {
        let stream = UnixStream::connect(self.socket()).expect("the socket");
        ask(stream, method, path, body)
    }

    /// Opens an invoice as the shop does.
    #[track_caller]
    fn open(&self, order: &str) -> Value {
        let wish =
            json!({ "order_id": order, "amount": "150.00", "currency": "RUB", "method": "SBP" });
        let (status, _, invoice) = self.ask("POST", "/v1/invoices", &wish.to_string());
        assert_eq!(status, 201, "{invoice}");
        invoice
    }

    /// The customer pays; the service notifies of it.
    #[track_caller]
    fn is_paid(&self, order: &str) -> Issued {
        let issued = self.world.issued(order).expect("the service has it");
        self.world.happens(&issued, &json!({ "status": "paid" }));
        issued
    }
}

/// One request on a connection of its own: the status, the head and the document.
#[track_caller]
fn ask(mut stream: UnixStream, method: &str, path: &str, body: &str) -> (u16, String, Value) {
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: tilld\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, document) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.get(9..12).and_then(|status| status.parse().ok());
    let document = serde_json::from_str(document).expect("JSON");
    (status.expect("a status"), head.to_owned(), document)
}

/// Waits until an example shows its customer where to pay.
#[track_caller]
fn shows(running: &mut Process) -> String {
    wait_for(PATIENCE, "the requisites to be shown", || {
        let said = running.stdout();
        assert!(running.ended().is_none(), "{said}{}", running.stderr());
        let line = said.lines().next().filter(|_| said.contains('\n'))?;
        Some(line.to_owned())
    })
}
