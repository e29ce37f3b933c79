//! The shop's own site, where the payment page sends its customer: a small listener that says which of its pages one is on.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A running site. Holds nothing but its port, so it may last as long as the test process.
#[derive(Debug)]
pub(super) struct Storefront {
    address: SocketAddr,
    visited: Arc<Mutex<Vec<String>>>,
}

impl Storefront {
    /// Opens one whose pages hold their own address and this.
    pub(super) fn open(content: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let visited = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&visited);
        drop(thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                // A browser opens connections ahead and says nothing on them: none may hold up another.
                drop(thread::spawn(move || answer(&stream, &kept, content)));
            }
        }));
        Self { address, visited }
    }

    /// The address of one of its pages.
    pub(super) fn page(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    /// The flags of `invoice create` that send a customer here.
    pub(super) fn flags(&self) -> [String; 4] {
        [
            "--redirect".to_owned(),
            format!("--success-url={}", self.page("success")),
            format!("--cancel-url={}", self.page("cancel")),
            format!("--error-url={}", self.page("error")),
        ]
    }

    /// Which pages were asked for, in their order.
    pub(super) fn visited(&self) -> Vec<String> {
        self.visited.lock().expect("no panic there").clone()
    }
}

fn answer(stream: &TcpStream, visited: &Mutex<Vec<String>>, content: &str) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    while lines
        .next()
        .transpose()?
        .is_some_and(|line| !line.is_empty())
    {}
    let path = first.split(' ').nth(1).unwrap_or_default();
    visited
        .lock()
        .expect("no panic there")
        .push(path.to_owned());
    let page = format!(
        "<!doctype html><html lang=\"en\"><link rel=\"icon\" href=\"data:,\"><title>shop</title><h1>{path}</h1>{content}"
    );
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    )
}
