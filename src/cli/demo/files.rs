//! What is written into the demo's directory before anything runs: the config and the two scripts, commented so that they
//! can be read as examples.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use crate::cli::stage::directory::Directory;
use crate::cli::stage::script::FULFIL_SCRIPT;
use crate::cli::stage::trouble::Trouble;
use crate::sandbox::{self, Sandbox};

/// The hook that is run for each paid order.
pub(super) const FULFIL: &str = "fulfil";
/// The hook that is run for each order that came to nothing.
pub(super) const CANCELLED: &str = "cancelled";

const CANCELLED_SCRIPT: &str = r#"#!/bin/sh
# Runs once it is clear that an order will not be paid: here the shop would free the stock.
# The contract is that of fulfil.sh.
set -eu
printf 'order=%s status=%s event=%s\n' "$TILLD_ORDER_ID" "$TILLD_STATUS" "$TILLD_EVENT_ID" >>"$1"
"#;

/// Writes config and scripts. The config makes tilld listen on `listen`.
pub(super) fn write(
    directory: &Directory,
    sandbox: &Sandbox,
    listen: SocketAddr,
) -> Result<(), Trouble> {
    let base = sandbox::config_text(sandbox, listen, directory.path());
    let config = format!("# written by `tilld demo`\n{base}\n{}", tables(directory));
    for (path, text) in [
        (directory.config(), config.as_str()),
        (directory.fulfil(), FULFIL_SCRIPT),
        (directory.cancelled(), CANCELLED_SCRIPT),
    ] {
        fs::write(&path, text).map_err(|source| Trouble::File { path, source })?;
    }
    sandbox.has_config(&directory.config());
    Ok(())
}

/// The tables a demo has beside those of a sandbox's config.
fn tables(directory: &Directory) -> String {
    // The directory took care that its path is UTF-8; JSON's strings are TOML's.
    let quoted = |path: &Path| serde_json::Value::from(path.to_string_lossy()).to_string();
    let run = |script: &Path, log: &Path| {
        format!("run = [\"/bin/sh\", {}, {}]", quoted(script), quoted(log))
    };
    [
        "# Quick, so that a lost notification is found while one watches. The defaults suit a shop.".to_owned(),
        "[poller]".to_owned(),
        "cadence_s = 1".to_owned(),
        "schedule = [{ until_s = 3600, every_s = 3 }]".to_owned(),
        String::new(),
        "[outbox]".to_owned(),
        "grace_s = 1".to_owned(),
        "drain_s = 2".to_owned(),
        String::new(),
        "[[hook]]".to_owned(),
        format!("name = \"{FULFIL}\""),
        "on = [\"paid\"]".to_owned(),
        run(&directory.fulfil(), &directory.fulfilled()),
        String::new(),
        "[[hook]]".to_owned(),
        format!("name = \"{CANCELLED}\""),
        "on = [\"failed\"]".to_owned(),
        run(&directory.cancelled(), &directory.cancelled_log()),
        String::new(),
    ]
    .join("\n")
}
