//! A payment service of a few lines, for what must be seen to the byte: it grants every login, keeps the requests it was
//! sent and answers what the scenario says.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::json;

/// The access token it grants.
pub(crate) const ACCESS_TOKEN: &str = "shop-7:access-token-of-the-short-service";
/// The device code it hands out.
pub(crate) const DEVICE_CODE: &str = "dc_device-code-of-the-short-service";

/// The status of an answer that is cut short.
pub(crate) const CUT: u16 = 0;
/// The status of an answer whose text is all of it: status line, head and body.
pub(crate) const RAW: u16 = 1;
/// The status of an answer whose text is the beginning of it, and nothing more comes while the client waits.
pub(crate) const HELD: u16 = 2;

/// A request it was sent.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    /// Its first line.
    pub(crate) line: String,
    /// Its header lines.
    pub(crate) headers: String,
    /// Its body.
    pub(crate) body: String,
}

impl Heard {
    /// The path in its first line.
    pub(crate) fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }
}

/// Answers a request with a status and a body, or with one of the statuses above.
type Say = dyn Fn(&Heard) -> (u16, String) + Send;

/// A running service. Lives as long as the test process: it holds nothing but its port.
#[derive(Debug)]
pub(crate) struct Service {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Service {
    /// Starts one that answers all but logins with `say`.
    pub(crate) fn start(say: impl Fn(&Heard) -> (u16, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heard);
        drop(thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that went away half-way is its own trouble.
                drop(stream.and_then(|stream| answer(stream, &kept, &say)));
            }
        }));
        Self { address, heard }
    }

    /// Starts one that answers each connection on a thread of its own.
    pub(crate) fn start_concurrent(
        say: impl Fn(&Heard) -> (u16, String) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (kept, say) = (Arc::clone(&heard), Arc::new(say));
        drop(thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, say) = (Arc::clone(&kept), Arc::clone(&say));
                drop(thread::spawn(move || answer(stream, &kept, &*say)));
            }
        }));
        Self { address, heard }
    }

    /// Its base address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().expect("no panic there").clone()
    }
}

fn answer(mut stream: TcpStream, kept: &Mutex<Vec<Heard>>, say: &Say) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut line, mut headers) = (String::new(), String::new());
    reader.read_line(&mut line)?;
    while !headers.ends_with("\r\n\r\n") && reader.read_line(&mut headers)? > 2 {}
    let length = headers.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.parse().expect("a length"))
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let heard = Heard {
        line,
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    let (status, said) = if heard.path().ends_with("/agent/login") {
        (201, login())
    } else if heard.path().ends_with("/agent/token") {
        (
            200,
            json!({ "token": ACCESS_TOKEN, "shopName": "Short" }).to_string(),
        )
    } else {
        say(&heard)
    };
    kept.lock().expect("no panic there").push(heard);
    let (status, length) = match status {
        CUT => (200, said.len() + 1),
        RAW => return stream.write_all(said.as_bytes()),
        HELD => {
            stream.write_all(said.as_bytes())?;
            // It ends when the client hangs up.
            return reader.read_to_end(&mut Vec::new()).map(drop);
        }
        status => (status, said.len()),
    };
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{said}"
    )
}

fn login() -> String {
    json!({
        "deviceCode": DEVICE_CODE,
        "userCode": "ABCD-EFGH",
        "verificationUrl": "https://cabinet.example/activate?code=ABCD-EFGH",
        "expiresIn": 60,
        "interval": 1,
    })
    .to_string()
}
