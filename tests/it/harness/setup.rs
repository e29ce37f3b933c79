//! What a world is built from: settings, hooks, and the program the daemon runs under.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use super::World;

/// Where hook scripts lie, and what they write, below the world's directory.
pub(super) const HOOKS: &str = "hooks";

/// What signs the posts of a hook, unless a scenario says otherwise.
pub(crate) const SECRET: &str = "whsec_dGlsbGQtdGVzdHMtc2lnbi13aXRoLXRoaXMtc2VjcmV0";

/// How the names of secret files end.
pub(super) const SECRET_END: &str = "secret";

/// Puts secrets into a file that nobody else may read, in one step: a daemon may be reading the old one.
pub(crate) fn write_secret(file: &Path, text: &str) {
    let draft = file.with_extension("draft");
    fs::write(&draft, format!("{text}\n")).expect("written");
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o600)).expect("own file");
    fs::rename(&draft, file).expect("in place");
}

/// A hook to be configured.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    pub(super) name: String,
    pub(super) on: Vec<String>,
    does: Does,
    timeout_s: u64,
    /// Further lines of its block.
    more: String,
}

/// What it does.
#[derive(Clone, Debug)]
enum Does {
    /// Runs this script.
    Script(String),
    /// Posts to this address.
    Post(String),
}

/// Becomes the program, with what is its standard input handed over as systemd hands a socket over.
const HANDS: &str = r#"exec 3<&0 0</dev/null
export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES="$0"
exec "$@""#;

/// What stands in for systemd holds for the daemon, over any number of starts.
#[derive(Clone, Debug)]
pub(super) enum Held {
    /// Nothing.
    Nothing,
    /// The listener's port.
    Port,
    /// This socket.
    Other(Arc<OwnedFd>),
}

/// A world that is still to be built. Defaults: a look at what is due each second, silent invoices asked for every two
/// seconds, failed hooks tried again after a second, at most a second for running hooks at a stop.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    settings: BTreeMap<String, String>,
    pub(super) hooks: Vec<Hook>,
    on_abandoned: Option<String>,
    pub(super) sandbox: Vec<String>,
    pub(super) under: Vec<String>,
    pub(super) held: Held,
    pub(super) service: Option<String>,
    pub(super) login: bool,
    pub(super) serve: bool,
}

impl Setup {
    pub(crate) fn new() -> Self {
        let setup = Self {
            settings: BTreeMap::new(),
            hooks: Vec::new(),
            on_abandoned: None,
            sandbox: Vec::new(),
            under: Vec::new(),
            held: Held::Nothing,
            service: None,
            login: true,
            serve: true,
        };
        setup
            .set("log_level", "\"debug\"")
            .set("poller.cadence_s", 1)
            .set("poller.schedule", "[{ until_s = 86400, every_s = 2 }]")
            .set("poller.requests_per_second", 100)
            .set("outbox.schedule_s", "[0, 1, 1, 1]")
            .set("outbox.grace_s", 1)
            .set("outbox.drain_s", 1)
            .set("listener.drain_s", 5)
            .set("statuses.open", "[\"new\", \"waiting\"]")
            .set("statuses.paid", "[\"paid\"]")
            .set("statuses.failed", "[\"canceled\", \"expired\"]")
            .set("statuses.reversed", "[\"refunded\"]")
    }

    /// One setting, by its dotted key, as TOML has it: `.set("ledger.busy_budget_ms", 1000)`.
    pub(crate) fn set(mut self, key: &str, value: impl Display) -> Self {
        self.settings.insert(key.to_owned(), value.to_string());
        self
    }

    /// No polls but those something asks for: a nudge, doubt, a create.
    pub(crate) fn quiet(self) -> Self {
        self.set("poller.schedule", "[{ until_s = 86400, every_s = 86400 }]")
    }

    /// A hook that runs `script` with `/bin/sh`. `$1` is a file that [`World::hook_log`] shows.
    pub(crate) fn hook(mut self, name: &str, on: &[&str], script: &str) -> Self {
        self.hooks.push(Hook {
            name: name.to_owned(),
            on: on.iter().map(|&selector| selector.to_owned()).collect(),
            does: Does::Script(script.to_owned()),
            timeout_s: 30,
            more: String::new(),
        });
        self
    }

    /// A hook that posts to this address, signed by [`SECRET`] in the file [`World::secret_file`] names.
    pub(crate) fn post_hook(mut self, name: &str, on: &[&str], address: &str) -> Self {
        self.hooks.push(Hook {
            name: name.to_owned(),
            on: on.iter().map(|&selector| selector.to_owned()).collect(),
            does: Does::Post(address.to_owned()),
            timeout_s: 30,
            more: String::new(),
        });
        self
    }

    /// The last hook may have so many runs at once whatever `outbox` says.
    pub(crate) fn at_once(self, most: u32) -> Self {
        self.more(&format!("concurrency = {most}\n"))
    }

    /// What is owed to the last hook is an alert after so many seconds instead of 900.
    pub(crate) fn late_after_s(self, seconds: u64) -> Self {
        self.more(&format!("undelivered_after_s = {seconds}\n"))
    }

    fn more(mut self, line: &str) -> Self {
        self.hooks.last_mut().expect("a hook").more.push_str(line);
        self
    }

    /// The last hook may take so many seconds instead of 30.
    pub(crate) fn within_s(mut self, seconds: u64) -> Self {
        self.hooks.last_mut().expect("a hook").timeout_s = seconds;
        self
    }

    /// Who is told of what was given up: a script as a hook's, whose file is that of the name `on_abandoned`.
    pub(crate) fn on_abandoned(mut self, script: &str) -> Self {
        self.on_abandoned = Some(script.to_owned());
        self
    }

    /// A hook that notes one line for each of its runs: event id, kind, order id, attempt.
    pub(crate) fn noting_hook(self, name: &str, on: &[&str]) -> Self {
        let note = "echo \"$TILLD_EVENT_ID $TILLD_EVENT $TILLD_ORDER_ID $TILLD_ATTEMPT\" >> \"$1\"";
        self.hook(name, on, note)
    }

    /// More flags for the sandbox, such as `--pool=50`.
    pub(crate) fn sandbox(mut self, flags: &[&str]) -> Self {
        self.sandbox
            .extend(flags.iter().map(|&flag| flag.to_owned()));
        self
    }

    /// The service spells what it says in one way, for tests that look at its texts.
    pub(crate) fn plain(self) -> Self {
        self.sandbox(&["--plain"])
    }

    /// Runs the daemon by way of this program, which must become it in the same process.
    pub(crate) fn under(mut self, program: &[&str]) -> Self {
        self.under = program.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// The listener's port is held for the daemon and handed over at each start under this name.
    pub(crate) fn holding_port(mut self, name: &str) -> Self {
        self.held = Held::Port;
        self.under(&["/bin/sh", "-c", HANDS, name])
    }

    /// The same with any socket.
    pub(crate) fn holding(mut self, socket: impl Into<OwnedFd>, name: &str) -> Self {
        self.held = Held::Other(Arc::new(socket.into()));
        self.under(&["/bin/sh", "-c", HANDS, name])
    }

    /// Another service than the sandbox, by its address. Nobody is logged in there.
    pub(crate) fn service(mut self, url: &str) -> Self {
        self.service = Some(url.to_owned());
        self.logged_out()
    }

    /// Nobody has logged in yet.
    pub(crate) fn logged_out(mut self) -> Self {
        self.login = false;
        self
    }

    /// The daemon is not started yet.
    pub(crate) fn not_served(mut self) -> Self {
        self.serve = false;
        self
    }

    /// Builds it.
    #[track_caller]
    pub(crate) fn start(self) -> World {
        World::build(self)
    }

    /// Writes the scripts and gives the text of the config.
    pub(super) fn write(&self, dir: &Path) -> String {
        let hooks = dir.join(HOOKS);
        fs::create_dir_all(&hooks).expect("a directory");
        let mut text = String::new();
        for (key, value) in &self.settings {
            text.extend([key, " = ", value, "\n"]);
        }
        for hook in &self.hooks {
            let Hook {
                name,
                on,
                does,
                timeout_s,
                more,
            } = hook;
            let does = match does {
                Does::Script(script) => format!("run = {:?}", run(&hooks, name, script)),
                Does::Post(address) => {
                    let secret = format!("{}/{name}.{SECRET_END}", hooks.display());
                    write_secret(Path::new(&secret), SECRET);
                    format!("post = {address:?}\nsecret_file = {secret:?}")
                }
            };
            let block = format!(
                "[[hook]]\nname = \"{name}\"\non = {on:?}\n{does}\ntimeout_s = {timeout_s}\n"
            );
            text.extend([block.as_str(), more]);
        }
        if let Some(script) = &self.on_abandoned {
            let run = run(&hooks, "on_abandoned", script);
            let block = format!("[on_abandoned]\nrun = {run:?}\n");
            text.push_str(&block);
        }
        text
    }
}

/// Writes a script and gives the line that runs it. Read by a shell instead of run: a file just written here may be held
/// open by a child about to start.
fn run(hooks: &Path, name: &str, script: &str) -> [String; 3] {
    let path = |end: &str| format!("{}/{name}.{end}", hooks.display());
    let (file, log) = (path("sh"), path("log"));
    fs::write(&file, script).expect("a script");
    ["/bin/sh".to_owned(), file, log]
}
