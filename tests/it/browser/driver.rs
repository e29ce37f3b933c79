//! A Chromium without a window, driven over `WebDriver` as chromedriver speaks it: JSON over loopback. Keeps its files in a
//! directory of its own, finds no name beyond this machine, and is gone with all its processes when it is dropped.

use std::env;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::harness::{PATIENCE, request_to, running_in, wait_for, wait_until};

/// What makes the accessibility check: axe-core, where `.ci/run` puts it.
const AXE: &str = "target/axe/node_modules/axe-core/axe.min.js";

/// Whether pages may run scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scripts {
    /// They may. The checks that are put into a page need it, its own content does not.
    On,
    /// They may not, as for a visitor who has switched them off.
    Off,
}

/// What this machine lacks for a look at the pages, if anything.
pub(super) fn lack() -> Option<String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let missing = ["chromium", "chromedriver"].into_iter().find(|program| {
        let mut places = env::split_paths(&path);
        !places.any(|place| place.join(program).exists())
    });
    match missing {
        Some(program) => Some(format!("{program} is not installed (Debian packs it)")),
        None if axe().exists() => None,
        None => Some(format!("axe-core is not in {}", axe().display())),
    }
}

/// The file of axe-core.
pub(super) fn axe() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(AXE)
}

/// The driver and the browser it has started.
#[derive(Debug)]
pub(super) struct Driver {
    process: Child,
    home: tempfile::TempDir,
    address: SocketAddr,
    session: String,
}

impl Driver {
    /// Starts a browser whose person reads `languages`, the best one first.
    #[track_caller]
    pub(super) fn start(languages: &str, scripts: Scripts) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let log = home.path().join("driver.log");
        let output = || {
            Stdio::from(
                File::options()
                    .append(true)
                    .create(true)
                    .open(&log)
                    .expect("a log"),
            )
        };
        let starts = || {
            Command::new("chromedriver")
                .arg("--port=0")
                .env("HOME", home.path())
                .env("TMPDIR", home.path())
                .stdin(Stdio::null())
                .stdout(output())
                .stderr(output())
                .process_group(0)
                .spawn()
                .expect("chromedriver starts")
        };
        let said = "was started successfully on port ";
        let mut process = starts();
        let port = wait_for(PATIENCE, "chromedriver to listen", || {
            // It wants a port that is free for both versions of IP, and ends when its choice was not.
            if process.try_wait().expect("a child").is_some() {
                process = starts();
            }
            let log = fs::read_to_string(&log).ok()?;
            let (_, rest) = log.split_once(said)?;
            rest.split_once('.')?.0.parse::<u16>().ok()
        });
        let mut driver = Self {
            process,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            session: String::new(),
            home,
        };
        let wish = capabilities(driver.home.path(), languages, scripts);
        let begun = driver.call("POST", "/session", &wish);
        let id = begun.get("sessionId").and_then(Value::as_str);
        driver.session = format!("/session/{}", id.expect("a session"));
        driver
    }

    /// One command within the session.
    #[track_caller]
    pub(super) fn tell(&self, path: &str, body: &Value) -> Value {
        self.call("POST", &format!("{}{path}", self.session), body)
    }

    /// One question within the session.
    #[track_caller]
    pub(super) fn ask(&self, path: &str) -> Value {
        self.call("GET", &format!("{}{path}", self.session), &Value::Null)
    }

    #[track_caller]
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let host = self.address.to_string();
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let answer = request_to(&host, self.address, method, path, &[], &body);
        let value = answer
            .json()
            .get_mut("value")
            .map(Value::take)
            .unwrap_or_default();
        assert_eq!(answer.status, 200, "{method} {path}: {value}");
        value
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let group = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw);
        // It may be gone already; what is left is looked for below.
        kill_process_group(group.expect("a group"), Signal::KILL).unwrap_or_default();
        drop(self.process.wait());
        if !std::thread::panicking() {
            wait_until(PATIENCE, "nothing of the browser to be left", || {
                running_in(self.home.path()).is_empty()
            });
        }
    }
}

fn capabilities(home: &Path, languages: &str, scripts: Scripts) -> Value {
    let mut args = vec![
        format!("--user-data-dir={}", home.join("profile").display()),
        // Names are found nowhere, whoever asks: a request beyond this machine cannot be made.
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1".to_owned(),
    ];
    let always = [
        "--headless=new",
        // Its own sandbox needs rights that root in a container has not; the pages are ours.
        "--no-sandbox",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-crash-reporter",
        "--disable-default-apps",
        "--disable-dev-shm-usage",
        "--disable-extensions",
        // Nobody goes back here, and each page left for that would take a share of the machine.
        "--disable-features=BackForwardCache,SpareRendererForSitePerProcess",
        "--disable-gpu",
        "--disable-sync",
        "--hide-scrollbars",
        "--no-default-browser-check",
        "--no-first-run",
        "--no-proxy-server",
    ];
    args.extend(always.map(str::to_owned));
    if scripts == Scripts::Off {
        args.push("--blink-settings=scriptEnabled=false".to_owned());
    }
    // An empty page to begin with: the browser's own one is heavy, and asks for a search engine.
    let preferences = json!({
        "intl.accept_languages": languages,
        "session.restore_on_startup": 4,
        "session.startup_urls": ["about:blank"],
    });
    json!({ "capabilities": { "alwaysMatch": {
        "browserName": "chrome",
        // An element may be on a page that is still to come.
        "timeouts": { "implicit": PATIENCE.as_millis() / 2 },
        "goog:chromeOptions": { "args": args, "prefs": preferences },
        "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
    } } })
}
