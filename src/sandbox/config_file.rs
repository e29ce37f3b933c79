//! Writes a tilld config that fits a running sandbox: its addresses, its status names sorted, a state directory beside the
//! file. Replaces only files it wrote itself.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use super::Sandbox;

/// First line of every file written here, by which it is known again.
const MARK: &str = "# written by `tilld sandbox --write-config`; it may be replaced without asking";
/// Where the config lets tilld listen: the default of `listener.listen`.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8480);

/// Why no config was written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file that somebody else wrote is there.
    #[error("`{0}` is there already and was not written by `tilld sandbox`")]
    NotOurs(PathBuf),
    /// The path cannot be used.
    #[error("could not write the config `{path}`")]
    Io {
        /// Which file.
        path: PathBuf,
        /// The system's word.
        #[source]
        source: io::Error,
    },
}

/// Writes a config for this sandbox to `path`, atomically. Gives the absolute path of the file.
pub fn write_config(sandbox: &Sandbox, path: &Path) -> Result<PathBuf, WriteError> {
    let failed = |source| WriteError::Io {
        path: path.to_owned(),
        source,
    };
    let path = std::path::absolute(path).map_err(failed)?;
    match fs::read(&path) {
        Ok(old) if !old.starts_with(MARK.as_bytes()) => return Err(WriteError::NotOurs(path)),
        Ok(_ours) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory).map_err(failed)?;
    let text = format!("{MARK}\n{}", config_text(sandbox, LISTEN, directory));
    let mut beside = path.clone().into_os_string();
    beside.push(".new");
    fs::write(&beside, text).map_err(failed)?;
    fs::rename(&beside, &path).map_err(failed)?;
    Ok(path)
}

/// A config for this sandbox, under which tilld listens on `listen` and keeps its state in `directory`/state. More
/// tables may follow it.
pub fn config_text(sandbox: &Sandbox, listen: SocketAddr, directory: &Path) -> String {
    let statuses = sandbox.statuses();
    // JSON's strings and lists of strings are TOML's, for all that stands here.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let list = |names: &[String]| serde_json::Value::from(names.to_vec()).to_string();
    let state_dir = directory.join("state");
    [
        "# The status names beside `new` are the sandbox's invention.".to_owned(),
        format!("state_dir = {}", quoted(&state_dir.to_string_lossy())),
        String::new(),
        "[service]".to_owned(),
        format!("url = {}", quoted(&sandbox.url())),
        format!("cabinet_url = {}", quoted(&sandbox.cabinet_url())),
        String::new(),
        "[listener]".to_owned(),
        format!("listen = {}", quoted(&listen.to_string())),
        format!("public_url = {}", quoted(&format!("http://{listen}/n"))),
        String::new(),
        "[statuses]".to_owned(),
        format!("open = {}", list(&statuses.open)),
        format!("paid = {}", list(&statuses.paid)),
        format!("failed = {}", list(&statuses.failed)),
        format!("reversed = {}", list(&statuses.reversed)),
        String::new(),
    ]
    .join("\n")
}
