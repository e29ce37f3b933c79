//! Writes a tilld config that fits a running sandbox: its addresses, its status names sorted, a state directory beside the
//! file. Replaces only files it wrote itself and nobody has edited since.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use super::Sandbox;
use crate::regular_file::{self, Rule};

/// Most bytes of a config file that is read, as of one that tilld reads.
const LARGEST: u64 = 1024 * 1024;

/// Start of the first line of every file written here, by which it is known again. The digest of the rest follows it.
const MARK: &str =
    "# written by `tilld sandbox --write-config`, which replaces it unless it was edited; digest ";
/// Why no config was written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// A file that somebody else wrote is there.
    #[error("`{0}` is there already and was not written by `tilld sandbox`")]
    NotOurs(PathBuf),
    /// It was written here and edited since, and names another sandbox.
    #[error("`{}` was edited since `tilld sandbox` wrote it, and does not name `{url}`", path.display())]
    Edited {
        /// Which file.
        path: PathBuf,
        /// The address of the sandbox that runs now.
        url: String,
    },
    /// tilld would listen where the sandbox does not notify it.
    #[error("the sandbox notifies loopback addresses only, and `{0}` is none")]
    NotLoopback(SocketAddr),
    /// No free port.
    #[error("could not find a free port on `{address}`")]
    NoPort {
        /// Where.
        address: SocketAddr,
        /// The system's word.
        #[source]
        source: io::Error,
    },
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

/// A config that fits a running sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Its absolute path.
    pub path: PathBuf,
    /// It was there with edits, and was left as it is.
    pub kept: bool,
    /// The directory that was made for it.
    pub made: Option<PathBuf>,
}

/// Writes a config for this sandbox to `path`, atomically, under which tilld listens on `listen`; for port 0 it names one
/// that is free now. A file that was edited since it was written here is kept when it names this sandbox's addresses, and
/// refused otherwise.
pub(crate) fn write_config(
    sandbox: &Sandbox,
    path: &Path,
    listen: SocketAddr,
) -> Result<Written, WriteError> {
    let listen = free(listen)?;
    let failed = |source| WriteError::Io {
        path: path.to_owned(),
        source,
    };
    let path = std::path::absolute(path).map_err(failed)?;
    let old = match regular_file::read(&path, Rule::open(LARGEST)) {
        Ok(old) => Some(old),
        Err(missing) if missing.is_missing() => None,
        Err(unfit) => return Err(failed(unfit.into_io())),
    };
    match old.map(|old| judge(&old, sandbox)) {
        None | Some(Old::Untouched) => {}
        Some(Old::Foreign) => return Err(WriteError::NotOurs(path)),
        Some(Old::Edited { fits: true }) => {
            return Ok(Written {
                path,
                kept: true,
                made: None,
            });
        }
        Some(Old::Edited { fits: false }) => {
            let url = sandbox.url();
            return Err(WriteError::Edited { path, url });
        }
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    let made = (!directory.exists()).then(|| directory.to_owned());
    fs::create_dir_all(directory).map_err(failed)?;
    let text = config_text(sandbox, listen, directory);
    let text = format!("{MARK}{:016x}\n{text}", digest(text.as_bytes()));
    let mut beside = path.clone().into_os_string();
    beside.push(".new");
    fs::write(&beside, text).map_err(failed)?;
    fs::rename(&beside, &path).map_err(failed)?;
    Ok(Written {
        path,
        kept: false,
        made,
    })
}

/// The address, with a port that nobody listens on where none is named. Nothing holds it until tilld does.
fn free(address: SocketAddr) -> Result<SocketAddr, WriteError> {
    if !address.ip().is_loopback() {
        return Err(WriteError::NotLoopback(address));
    }
    if address.port() > 0 {
        return Ok(address);
    }
    let bound = TcpListener::bind(address).and_then(|listener| listener.local_addr());
    bound.map_err(|source| WriteError::NoPort { address, source })
}

/// What stands where the config is to go.
enum Old {
    Foreign,
    Untouched,
    /// Somebody's work is in it. It fits when it still has the lines that name this sandbox.
    Edited {
        fits: bool,
    },
}

fn judge(old: &[u8], sandbox: &Sandbox) -> Old {
    let Some(rest) = old.strip_prefix(MARK.as_bytes()) else {
        return Old::Foreign;
    };
    let text = String::from_utf8_lossy(rest);
    let (noted, text) = text.split_once('\n').unwrap_or((&text, ""));
    if u64::from_str_radix(noted, 16) == Ok(digest(text.as_bytes())) {
        return Old::Untouched;
    }
    let fits = addresses(sandbox)
        .iter()
        .all(|wanted| text.lines().any(|line| line.trim() == wanted));
    Old::Edited { fits }
}

/// FNV-1a, 64 bits. It tells an edit from none; nobody is kept from forging it, who may write the file anyway.
fn digest(bytes: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.iter().fold(BASIS, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(PRIME)
    })
}

/// The lines that lead to this sandbox.
fn addresses(sandbox: &Sandbox) -> [String; 2] {
    [
        format!("url = {}", quoted(&sandbox.url())),
        format!("cabinet_url = {}", quoted(&sandbox.cabinet_url())),
    ]
}

/// JSON's strings are TOML's, but for one character that TOML wants escaped.
fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.replace('\u{7f}', "\\u007f")
}

/// A config for this sandbox, under which tilld listens on `listen` and keeps its state in `directory`/state. More
/// tables may follow it.
pub(crate) fn config_text(sandbox: &Sandbox, listen: SocketAddr, directory: &Path) -> String {
    let statuses = sandbox.statuses();
    let list = |names: &[String]| {
        let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        format!("[{}]", names.join(","))
    };
    let state_dir = directory.join("state");
    let [url, cabinet_url] = addresses(sandbox);
    [
        "# The status names beside `new` are the sandbox's invention.".to_owned(),
        format!("state_dir = {}", quoted(&state_dir.to_string_lossy())),
        String::new(),
        "[service]".to_owned(),
        url,
        cabinet_url,
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
