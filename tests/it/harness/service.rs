//! A payment service of a few lines, for what must be seen to the byte: it keeps the request bodies it was sent and
//! answers what the scenario says.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Answers a request, by method, path and body, with a status and a body.
type Say = dyn Fn(&str, &str, &str) -> (u16, String) + Send;

/// A running service. Lives as long as the test process: it holds nothing but its port.
#[derive(Debug)]
pub(crate) struct Service {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Service {
    /// Starts one that answers with `say`.
    pub(crate) fn start(say: impl Fn(&str, &str, &str) -> (u16, String) + Send + 'static) -> Self {
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

    /// Its base address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The request bodies so far.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("no panic there").clone()
    }
}

fn answer(mut stream: TcpStream, heard: &Mutex<Vec<String>>, say: &Say) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body).into_owned();
    let mut words = first.split(' ');
    let (method, path) = (words.next(), words.next());
    let (status, said) = say(method.unwrap_or_default(), path.unwrap_or_default(), &body);
    heard.lock().expect("no panic there").push(body);
    let length = said.len();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{said}"
    )
}
