//! Logging in and out as the merchant meets it: the real binary against a service that says what a case wants (A22, A34,
//! A35). What is at stake: the token lands in one private file, and nowhere else.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const TOKEN: &str = "shop-1:token-that-nobody-sees";
const DEVICE_CODE: &str = "dc_code-that-nobody-sees";

/// What the service says to the token polls, in order; the last one for ever.
const PENDING: (u16, &str) = (400, r#"{"error":"authorization_pending"}"#);
const DENIED: (u16, &str) = (403, r#"{"error":"access_denied"}"#);
const GONE: (u16, &str) = (400, r#"{"error":"expired_token"}"#);
/// Closes without an answer.
const LOST: (u16, &str) = (0, "");

fn granted() -> (u16, String) {
    (
        200,
        json!({ "token": TOKEN, "shopName": "Shop\u{1b}[31m" }).to_string(),
    )
}

/// One merchant's machine and the service it talks to.
struct Scene {
    home: tempfile::TempDir,
    service: SocketAddr,
}

impl Scene {
    fn new(polls: &[(u16, &str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let service = listener.local_addr().expect("bound");
        let polls = polls
            .iter()
            .map(|(status, body)| (*status, (*body).to_owned()))
            .collect();
        // Ends with the test process: it holds nothing but its port.
        drop(thread::spawn(move || serve(&listener, polls)));
        let home = tempfile::tempdir().expect("a directory");
        Self { home, service }
    }

    fn state_dir(&self) -> PathBuf {
        self.home.path().join("state")
    }

    fn file(&self) -> PathBuf {
        self.state_dir().join("secret/credentials")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilld"));
        let config = self.home.path().join("config.toml");
        let text = format!(
            "[service]\nurl = \"http://{}\"\ncabinet_url = \"https://cabinet.example\"\n",
            self.service
        );
        std::fs::write(&config, text).expect("written");
        command.env_clear().env("TILLD_LOG_LEVEL", "trace");
        command.args(args).arg("--config").arg(config);
        command.arg("--state-dir").arg(self.state_dir());
        command
    }

    /// Runs a command to its end and looks that no secret shows.
    fn run(&self, args: &[&str]) -> (i32, String, String) {
        told(&self.command(args).output().expect("tilld runs"))
    }
}

fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (data, talk) = (text(&output.stdout), text(&output.stderr));
    for secret in [TOKEN, DEVICE_CODE] {
        assert!(!format!("{data}{talk}").contains(secret), "{data}{talk}");
    }
    (output.status.code().unwrap_or(-1), data, talk)
}

fn serve(listener: &TcpListener, mut polls: Vec<(u16, String)>) {
    for stream in listener.incoming() {
        let mut stream = stream.expect("a connection");
        let path = read_request(&mut stream);
        let (status, body) = if path.ends_with("/agent/login") {
            let started = json!({
                "deviceCode": DEVICE_CODE,
                "userCode": "ABCD-EFGH",
                "verificationUrl": "https://cabinet.example/activate?code=ABCD-EFGH",
                "expiresIn": 60,
                "interval": 1,
            });
            (201, started.to_string())
        } else if polls.len() > 1 {
            polls.remove(0)
        } else {
            polls.first().expect("never empty").clone()
        };
        if status != LOST.0 {
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .expect("the client listens");
        }
    }
}

/// Reads one request and gives its path.
fn read_request(stream: &mut TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        if line.trim().is_empty() {
            break;
        }
        if path.is_empty() {
            line.split(' ')
                .nth(1)
                .unwrap_or_default()
                .clone_into(&mut path);
        }
        if let Some(text) = line.strip_prefix("content-length: ") {
            length = text.trim().parse().expect("a number");
        }
    }
    reader
        .read_exact(&mut vec![0; length])
        .expect("the whole body");
    path
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("there").mode() & 0o7777
}

#[test]
fn a_login_shows_address_and_code_first_and_keeps_the_token_to_itself() {
    let (status, body) = granted();
    let scene = Scene::new(&[PENDING, (502, "<html>"), (status, &body)]);
    // A looser file from elsewhere must not stay loose.
    let secret = scene.state_dir().join("secret");
    std::fs::create_dir_all(&secret).expect("made");
    std::fs::write(scene.file(), "old").expect("written");
    std::fs::set_permissions(scene.file(), PermissionsExt::from_mode(0o644)).expect("own file");

    let (code, data, talk) = scene.run(&["login"]);
    assert_eq!(code, 0, "{talk}");
    assert_eq!(
        data,
        "https://cabinet.example/activate?code=ABCD-EFGH\nABCD-EFGH\nlogged in for shop Shop\\u001b[31m\n"
    );
    assert!(!talk.contains("warning"), "{talk}");
    assert_eq!((mode(&secret), mode(&scene.file())), (0o700, 0o600));
    assert_eq!(std::fs::read_dir(&secret).expect("a directory").count(), 1);
    let stored = std::fs::read_to_string(scene.file()).expect("readable");
    assert!(stored.contains(TOKEN));

    let (code, data, _) = scene.run(&["whoami", "--json"]);
    let answer: Value = serde_json::from_str(&data).expect("one line of JSON");
    assert_eq!(code, 0);
    assert_eq!(answer.get("source"), Some(&json!("file")));
    assert_eq!(
        answer.get("service"),
        Some(&json!(format!("http://{}", scene.service)))
    );

    let (code, _, talk) = scene.run(&["logout"]);
    assert!(
        code == 0 && talk.contains("revoked in the cabinet"),
        "{talk}"
    );
    assert!(!scene.file().exists());
    assert_eq!(scene.run(&["whoami"]).0, 4);
}

#[test]
fn each_end_of_a_login_has_its_code_and_leaves_the_old_one() {
    for (polls, wanted) in [
        (vec![DENIED], 12),
        (vec![GONE], 13),
        (vec![LOST, GONE], 14),
        (vec![LOST, PENDING, GONE], 13),
        (vec![(400, r#"{"error":"odd"}"#)], 1),
        (vec![(302, "")], 1),
    ] {
        let scene = Scene::new(&polls);
        let secret = scene.state_dir().join("secret");
        std::fs::create_dir_all(&secret).expect("made");
        std::fs::write(scene.file(), "old").expect("written");
        let (code, data, talk) = scene.run(&["login", "--json"]);
        assert_eq!(code, wanted, "{polls:?}: {talk}");
        let lines: Vec<Value> = data
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON lines"))
            .collect();
        let [started, ended] = lines.as_slice() else {
            panic!("{data}")
        };
        assert_eq!(started.get("user_code"), Some(&json!("ABCD-EFGH")));
        assert_eq!(ended.get("code"), Some(&json!(wanted)));
        assert_eq!(
            std::fs::read_to_string(scene.file()).expect("readable"),
            "old"
        );
    }
}

#[test]
fn ctrl_c_ends_the_wait_and_leaves_the_old_login() {
    let scene = Scene::new(&[PENDING]);
    std::fs::create_dir_all(scene.state_dir().join("secret")).expect("made");
    std::fs::write(scene.file(), "old").expect("written");
    let mut command = scene.command(&["login"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("tilld runs");
    // Said when the wait is about to begin. Should the signal outrun it, the process ends the plain way, with the same result.
    let mut talk = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    talk.read_line(&mut line).expect("a line");
    assert!(line.contains("confirm"), "{line}");
    interrupt(&child);
    let status = child.wait().expect("ends");
    assert!(!status.success());
    assert_eq!(
        std::fs::read_to_string(scene.file()).expect("readable"),
        "old"
    );
    assert_eq!(
        std::fs::read_dir(scene.state_dir().join("secret"))
            .expect("a directory")
            .count(),
        1
    );
}

fn interrupt(child: &Child) {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(id.expect("a process id"), Signal::INT).expect("it runs");
}

#[test]
fn what_cannot_be_stored_is_found_before_the_code_is_asked_for() {
    let scene = Scene::new(&[PENDING]);
    // A file where the directory should be stops any user, root too.
    std::fs::create_dir_all(scene.state_dir()).expect("made");
    std::fs::write(scene.state_dir().join("secret"), "").expect("written");
    let (code, data, talk) = scene.run(&["login"]);
    assert_eq!((code, data.as_str()), (15, ""), "{talk}");
    assert!(talk.contains("could not prepare to store"), "{talk}");
}

#[test]
fn nobody_there_is_said_so() {
    let mut scene = Scene::new(&[PENDING]);
    scene.service = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port");
    let (code, data, talk) = scene.run(&["login"]);
    assert_eq!((code, data.as_str()), (8, ""), "{talk}");
    assert!(talk.contains("could not connect"), "{talk}");
}
