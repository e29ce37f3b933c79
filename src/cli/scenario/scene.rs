//! What runs while a scenario plays: the sandbox in this process, the real daemon as a child on a directory of its own, and
//! those who act: customers, the shop, whoever looks. Login is no part of a scenario: a token is issued and stored as
//! `tilld login` stores it.

use std::fs::{DirBuilder, File};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::book::{self, Booked};
use super::judged::Script;
use super::step::Settings;
use crate::cli::remote::Remote;
use crate::cli::stage::daemon::Daemon;
use crate::cli::stage::directory::Directory;
use crate::cli::stage::script::FULFIL_SCRIPT;
use crate::cli::stage::trouble::Trouble;
use crate::cli::stage::{self, command};
use crate::client::address::Address;
use crate::client::credentials::{Credentials, Store};
use crate::clock;
use crate::invoice::event::EventKind;
use crate::ledger::{Ledger, Reader};
use crate::sandbox::{self, Sandbox, Visitor};
use crate::secret::Secret;

/// The hook that is run for each paid order.
pub(super) const HOOK: &str = "fulfil";
/// The socket of the daemon, in its state directory.
const SOCKET: &str = "control.sock";

/// Those who act and look. Shared by what goes on at once.
pub(super) struct Scene<'d> {
    /// Where everything is.
    pub(super) directory: &'d Directory,
    /// The service.
    pub(super) sandbox: Sandbox,
    /// The customers.
    pub(super) visitor: Visitor,
    /// Whoever looks into the ledger.
    pub(super) reader: Reader,
    /// The shop.
    pub(super) remote: Remote,
    /// The script that is judged, unless it is the scenario's own.
    pub(super) script: Option<&'d Script>,
    /// What is expected may take so long.
    pub(super) within: Duration,
    /// The access token, to look that nobody prints it.
    pub(super) token: Secret,
}

/// The daemon, which is killed at times.
pub(super) struct Tilld<'d> {
    directory: &'d Directory,
    listen: SocketAddr,
    daemon: Option<Daemon>,
}

/// Starts everything.
pub(super) async fn open<'d>(
    directory: &'d Directory,
    settings: &Settings,
    seed: u64,
    script: Option<&'d Script>,
) -> Result<(Scene<'d>, Tilld<'d>), Trouble> {
    let sandbox = stage::start_sandbox(sandbox::Settings {
        seed,
        pool: settings.pool,
        invoice_lifetime_s: settings.window_s,
        notify_retry_ms: settings.notify_retry_ms,
        speed: settings.speed,
        ..sandbox::Settings::default()
    })
    .await?;
    let visitor = Visitor::new()?;
    let token = log_in(directory, &sandbox, &visitor).await?;
    let write = |listen| write(directory, &sandbox, listen, settings, script);
    let daemon = Daemon::start(directory, write).await?;
    let scene = Scene {
        reader: Ledger::open_reader(&directory.state())?,
        remote: Remote::at(&directory.state().join(SOCKET)),
        directory,
        visitor,
        sandbox,
        script,
        within: Duration::from_secs(settings.within_s),
        token,
    };
    let tilld = Tilld {
        directory,
        listen: daemon.listen(),
        daemon: Some(daemon),
    };
    Ok((scene, tilld))
}

/// Stores a token that the service issues, in the form `tilld login` has for it.
async fn log_in(
    directory: &Directory,
    sandbox: &Sandbox,
    visitor: &Visitor,
) -> Result<Secret, Trouble> {
    let asked = json!({ "clientName": "scenario" });
    let control = sandbox.control_url();
    let issued = visitor.control(&control, "/tokens/issue", &asked).await?;
    let text = |name: &str| issued.get(name).and_then(Value::as_str).unwrap_or_default();
    let token = Secret::new(text("token").to_owned());
    let origin = Address::parse(&sandbox.url(), false).map(|address| address.origin());
    let origin = origin.unwrap_or_else(|_loopback| sandbox.url());
    let store = Store::new(&directory.state());
    store.store(&Credentials {
        token: token.clone(),
        shop_name: text("shopName").to_owned(),
        origin,
        stored_ms: clock::wall_ms(),
    })?;
    Ok(token)
}

/// Writes config and scripts.
fn write(
    directory: &Directory,
    sandbox: &Sandbox,
    listen: SocketAddr,
    settings: &Settings,
    script: Option<&Script>,
) -> Result<(), Trouble> {
    let base = sandbox::config_text(sandbox, listen, directory.path());
    let config = format!(
        "# written by `tilld sandbox run`\n{base}\n{}",
        tables(directory, settings, script)
    );
    let text = if script.is_some() {
        super::runs::WITNESS
    } else {
        FULFIL_SCRIPT
    };
    // A script's line and what it prints may hold a secret of the merchant's, and a named directory is open to others.
    let mut private = DirBuilder::new();
    let made = private.recursive(true).mode(0o700).create(directory.runs());
    made.map_err(|source| Trouble::File {
        path: directory.runs(),
        source,
    })?;
    for (path, text) in [
        (directory.config(), config.as_str()),
        (directory.fulfil(), text),
    ] {
        let mut file = File::options();
        let file = file
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|source| Trouble::File { path, source })?;
    }
    Ok(())
}

/// The tables beside those of a sandbox's config: quick, since nobody waits for a scenario gladly.
fn tables(directory: &Directory, settings: &Settings, script: Option<&Script>) -> String {
    // The directory took care that its path is UTF-8; JSON's strings are TOML's.
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let fulfil = path(&directory.fulfil());
    let (run, on, schedule) = match script {
        Some(script) => (
            {
                let [runs, command, again] = script.witnessed(path(&directory.runs()));
                json!(["/bin/sh", fulfil, runs, command, again])
            },
            json!(super::judged::ON.map(EventKind::as_str)),
            "[0, 0, 0]",
        ),
        None => (
            json!(["/bin/sh", fulfil, path(&directory.fulfilled())]),
            json!(["paid"]),
            "[0, 0, 0, 1, 1, 1, 1, 1, 1, 1]",
        ),
    };
    let timeout_s = super::judged::TIMEOUT.as_secs();
    [
        "[moves]".to_owned(),
        format!("confirm_paid = {}", settings.confirm_paid),
        "[poller]".to_owned(),
        "cadence_s = 1".to_owned(),
        format!(
            "schedule = [{{ until_s = 7776000, every_s = {} }}]",
            settings.poll_s
        ),
        "after_expiry_s = 0".to_owned(),
        "requests_per_second = 100".to_owned(),
        "concurrency = 16".to_owned(),
        "[outbox]".to_owned(),
        format!("schedule_s = {schedule}"),
        "grace_s = 1".to_owned(),
        "drain_s = 2".to_owned(),
        "[[hook]]".to_owned(),
        format!("name = \"{HOOK}\""),
        format!("on = {on}"),
        format!("run = {run}"),
        format!("timeout_s = {timeout_s}"),
        String::new(),
    ]
    .join("\n")
}

impl Scene<'_> {
    /// The service's book, oldest first.
    pub(super) async fn book(&self) -> Result<Vec<Booked>, Trouble> {
        book::read(&self.visitor, &self.sandbox).await
    }

    /// The newest invoice of an order in the service's book.
    pub(super) async fn booked(&self, order: &str) -> Result<Booked, Trouble> {
        let book = self.book().await?;
        let found = book.into_iter().rev().find(|one| one.order == order);
        found.ok_or_else(|| {
            let expected = format!("the service to know order {order}");
            Trouble::otherwise(expected, "no such invoice there")
        })
    }

    /// Has the sandbox's control listener do something.
    pub(super) async fn control(&self, path: &str, what: &Value) -> Result<Value, Trouble> {
        let url = self.sandbox.control_url();
        Ok(self.visitor.control(&url, path, what).await?)
    }

    /// Runs a command of tilld's to its end and gives its answer.
    pub(super) async fn tilld(&self, words: &[&str]) -> Result<Value, Trouble> {
        command::ask(&self.directory.config(), words).await
    }
}

impl Tilld<'_> {
    /// Kills it. Nothing happens to one that is down.
    pub(super) async fn down(&mut self) -> Result<(), Trouble> {
        let Some(mut daemon) = self.daemon.take() else {
            return Ok(());
        };
        match daemon.has_ended() {
            Some(trouble) => Err(trouble),
            None => daemon.kill().await,
        }
    }

    /// Starts it again. Nothing happens to one that runs.
    pub(super) async fn up(&mut self) -> Result<(), Trouble> {
        if self.daemon.is_none() {
            self.daemon = Some(Daemon::start_again(self.directory, self.listen).await?);
        }
        Ok(())
    }

    /// Tells it to stop, and waits for its end.
    pub(super) async fn stop(&mut self) -> Result<(), Trouble> {
        let Some(mut daemon) = self.daemon.take() else {
            return Ok(());
        };
        match daemon.has_ended() {
            Some(trouble) => Err(trouble),
            None => daemon.stop().await,
        }
    }
}
