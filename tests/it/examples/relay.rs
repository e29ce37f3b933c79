//! A way from a port of this machine to a Unix socket, for programs that know no such sockets.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;

/// Opens the way. It lives as long as the test process: it holds nothing but its port.
pub(super) fn to(socket: &Path) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let socket = socket.to_owned();
    drop(thread::spawn(move || {
        for client in listener.incoming() {
            // A side that is gone is the other's trouble: its connection ends.
            drop(client.and_then(|client| join(client, socket.clone())));
        }
    }));
    address
}

fn join(client: TcpStream, socket: PathBuf) -> io::Result<()> {
    let server = UnixStream::connect(socket)?;
    let (mut from, mut into) = (client.try_clone()?, server.try_clone()?);
    drop(thread::spawn(move || {
        drop(io::copy(&mut from, &mut into));
        into.shutdown(Shutdown::Write)
    }));
    let (mut from, mut into) = (server, client);
    drop(thread::spawn(move || {
        drop(io::copy(&mut from, &mut into));
        into.shutdown(Shutdown::Write)
    }));
    Ok(())
}
