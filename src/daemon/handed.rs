//! The sockets that systemd listens on and hands over: while tilld is started anew, who connects waits instead of being
//! refused.
//!
//! They go by their names (`FileDescriptorName=`): [`CONTROL`] and [`PUBLIC`]. One alone that has neither is the public
//! listener's. What is handed over is served as it is; of several that could be meant none is guessed.

use std::env;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use listenfd::ListenFd;

use super::kept::Kept;
use crate::http::Public;

/// The name of the control socket.
pub(crate) const CONTROL: &str = "control";
/// The name of the public listener's socket.
pub(crate) const PUBLIC: &str = "notifications";
/// The names of what is handed over, with colons between.
const NAMES: &str = "LISTEN_FDNAMES";

/// What was handed over.
#[derive(Debug, Default)]
pub(crate) struct Handed {
    /// Where the shop asks.
    pub(crate) control: Option<UnixListener>,
    /// Where notifications come in.
    pub(crate) public: Option<Socket>,
}

/// A socket that the world reaches; nobody waits for it yet.
#[derive(Debug)]
pub(crate) enum Socket {
    /// On a port.
    Port(TcpListener),
    /// On a Unix socket.
    Local(Kept),
}

/// Where that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// This address.
    Port(SocketAddr),
    /// This path; empty where it has none.
    Local(PathBuf),
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Port(address) => address.fmt(f),
            Self::Local(path) => path.display().fmt(f),
        }
    }
}

/// Why what was handed over is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandedError {
    /// Several could be meant.
    #[error("{count} sockets were handed over, and `{name}` is none of the names that tilld knows")]
    Unknown {
        /// How many.
        count: usize,
        /// What it is called.
        name: String,
    },
    /// Each is one socket.
    #[error("two sockets were handed over as `{0}`")]
    Twice(&'static str),
    /// It is no socket that can be listened on so.
    #[error("the socket that was handed over as `{name}` is no listening {kind}")]
    Wrong {
        /// What it is for.
        name: &'static str,
        /// What it should be.
        kind: &'static str,
        /// What is wrong.
        #[source]
        source: io::Error,
    },
}

/// What a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Control,
    Public,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Control => CONTROL,
            Self::Public => PUBLIC,
        }
    }
}

/// Takes them. It changes the environment, so it comes before any thread.
pub(crate) fn take() -> Result<Handed, HandedError> {
    let names = env::var(NAMES).ok();
    let mut handed = ListenFd::from_env();
    let mut taken = Handed::default();
    for (at, role) in roles(names.as_deref(), handed.len())?
        .into_iter()
        .enumerate()
    {
        match role {
            Role::Control => {
                let socket = handed.take_unix_listener(at);
                taken.control = socket.map_err(wrong(role, "Unix socket"))?;
            }
            Role::Public => {
                taken.public = match handed.take_tcp_listener(at) {
                    Ok(socket) => socket.map(Socket::Port),
                    // Then it is one of the other kind, or nothing that can be used.
                    Err(_no_port) => {
                        let socket = handed.take_unix_listener(at);
                        let socket = socket.map_err(wrong(role, "TCP or Unix socket"))?;
                        socket.map(|socket| Socket::Local(socket.into()))
                    }
                };
            }
        }
    }
    Ok(taken)
}

fn wrong(role: Role, kind: &'static str) -> impl FnOnce(io::Error) -> HandedError {
    move |source| HandedError::Wrong {
        name: role.name(),
        kind,
        source,
    }
}

/// What each of so many is for. Where the socket unit names none, systemd gives the unit's own name.
fn roles(names: Option<&str>, count: usize) -> Result<Vec<Role>, HandedError> {
    let names = names.unwrap_or_default().split(':');
    let names: Vec<&str> = names.chain(std::iter::repeat("")).take(count).collect();
    let is_known = |name: &&&str| [CONTROL, PUBLIC].contains(*name);
    let strangers = count - names.iter().filter(is_known).count();
    let mut roles = Vec::new();
    for name in names {
        let role = match name {
            CONTROL => Role::Control,
            PUBLIC => Role::Public,
            _ if strangers == 1 => Role::Public,
            _ => {
                let name = name.to_owned();
                return Err(HandedError::Unknown { count, name });
            }
        };
        if roles.contains(&role) {
            return Err(HandedError::Twice(role.name()));
        }
        roles.push(role);
    }
    Ok(roles)
}

impl Socket {
    /// Where it is, and what waits for connections there. In the runtime that serves it.
    pub(crate) fn at(&self) -> io::Result<At> {
        match self {
            Self::Port(port) => port.local_addr().map(At::Port),
            Self::Local(local) => local.path().map(At::Local),
        }
    }

    /// To be waited for, by the runtime this is called in.
    pub(super) fn waited_for(self) -> io::Result<Public> {
        match self {
            Self::Port(port) => {
                port.set_nonblocking(true)?;
                tokio::net::TcpListener::from_std(port).map(Public::Port)
            }
            Self::Local(local) => local.waited_for().map(Public::Local),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_go_by_their_names_and_none_is_guessed_among_several() {
        use Role::{Control, Public};
        let told = |names, count| roles(names, count).map_err(|error| error.to_string());
        for (names, count, wanted) in [
            (None, 0, vec![]),
            (None, 1, vec![Public]),
            (Some("unknown"), 1, vec![Public]),
            (Some("tilld.socket"), 1, vec![Public]),
            (Some("control"), 1, vec![Control]),
            (Some("notifications"), 1, vec![Public]),
            (Some("notifications:control"), 2, vec![Public, Control]),
            (Some("control:tilld.socket"), 2, vec![Control, Public]),
        ] {
            assert_eq!(told(names, count), Ok(wanted), "{names:?}");
        }
        for (names, count, wanted) in [
            (
                Some("a.socket:b.socket"),
                2,
                "2 sockets were handed over, and `a.socket` is none of the names that tilld knows",
            ),
            (
                None,
                2,
                "2 sockets were handed over, and `` is none of the names that tilld knows",
            ),
            (
                Some("control:control"),
                2,
                "two sockets were handed over as `control`",
            ),
            (
                Some("notifications:other"),
                2,
                "two sockets were handed over as `notifications`",
            ),
        ] {
            assert_eq!(told(names, count), Err(wanted.to_owned()), "{names:?}");
        }
    }
}
