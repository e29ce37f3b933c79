//! Servers that are compiled into this program and run in a process of their own: it starts itself with a word that says
//! which. The runtime, which is one thread's, and hyper's settings are those of the daemon's listener, so that what differs
//! is the work.
//!
//! Such a process says its address in a line and ends when its standard input does, so none outlives this program.

use std::convert::Infallible;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tilld::bench::Stocked;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

use super::{Server, Started, Stored, naive};
use crate::load::INVOICES;

/// The word.
pub(crate) const WORD: &str = "--inner";
/// hyper's buffer as the daemon sets it, bytes.
const BUFFER: usize = 16 * 1024;

/// An answer of such a server.
pub(super) type Answer = Response<Full<Bytes>>;

/// A server that is compiled in.
pub(super) trait Receiver: Send + Sync + 'static {
    /// Answers a request whose body was read.
    fn answer(&self, request: &Request<()>, body: &Bytes) -> Answer;
}

/// Serves until the standard input ends. `args` are those behind the word.
pub(crate) fn serve(args: &[String]) {
    match args {
        [name] if name == "hello" => listen(Hello::default()),
        [name, file] if name == "naive" => listen(naive::Naive::open(Path::new(file))),
        other => panic!("{other:?} is no server"),
    }
}

fn listen(receiver: impl Receiver) {
    thread::spawn(|| {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a thread that was started can wait");
        runtime.block_on(accept(Arc::new(receiver)));
    });
    // The process ends with this thread, and takes the other one along.
    let read = io::stdin().read_to_end(&mut Vec::new());
    read.expect("a pipe");
}

async fn accept(receiver: Arc<impl Receiver>) {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = socket.local_addr().expect("bound");
    writeln!(io::stdout(), "{address}").expect("a pipe");
    loop {
        let (stream, _peer) = socket.accept().await.expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        let receiver = Arc::clone(&receiver);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(&*receiver, request));
            let served = http1::Builder::new()
                .header_read_timeout(None)
                .max_header_size(BUFFER)
                .max_buf_size(BUFFER)
                .writev(false)
                .half_close(true)
                .serve_connection(TokioIo::new(stream), service);
            // How a connection ends is the sender's to count.
            drop(served.await);
        });
    }
}

async fn answer(
    receiver: &impl Receiver,
    request: Request<Incoming>,
) -> Result<Answer, Infallible> {
    let (parts, body) = request.into_parts();
    Ok(match body.collect().await {
        Ok(body) => receiver.answer(&Request::from_parts(parts, ()), &body.to_bytes()),
        Err(_cut) => plain(StatusCode::BAD_REQUEST, String::new()),
    })
}

pub(super) fn plain(status: StatusCode, text: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    answer
}

/// Answers 200 to whatever is posted, and says how many that were when it is asked.
#[derive(Default)]
struct Hello {
    posted: AtomicU64,
}

impl Receiver for Hello {
    fn answer(&self, request: &Request<()>, _body: &Bytes) -> Answer {
        if request.method() == Method::GET {
            let posted = self.posted.load(Ordering::Relaxed);
            return plain(StatusCode::OK, posted.to_string());
        }
        self.posted.fetch_add(1, Ordering::Relaxed);
        plain(StatusCode::OK, "ok\n".to_owned())
    }
}

/// Such a process, seen from outside. Killed when it is dropped.
pub(super) struct Inner {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Inner {
    /// Starts this program again, with these words behind the one.
    pub(super) fn start(args: &[&str]) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .arg(WORD)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let said = BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line);
        said.expect("a line");
        let address = line.trim().parse().expect("an address");
        Self { child, address }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

struct HelloServer(Inner);

impl Server for HelloServer {
    fn address(&self) -> SocketAddr {
        self.0.address
    }

    fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// It has no file, and says itself what it counted.
    fn stored(&self) -> Stored {
        let mut stream = TcpStream::connect(self.0.address).expect("it listens");
        let asked = stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        asked.expect("asked");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        let (_head, posted) = answer.split_once("\r\n\r\n").expect("a head");
        let posted = posted.parse().expect("a number");
        Stored {
            events: posted,
            deliveries: posted,
        }
    }

    fn stop(self: Box<Self>) {}
}

/// Starts the bare server.
pub(super) fn hello() -> Started {
    Started {
        server: Box::new(HelloServer(Inner::start(&["hello"]))),
        stocked: invented(),
    }
}

/// Invoices of the shape of tilld's, for servers that do not open them.
pub(crate) fn invented() -> Vec<Stocked> {
    let one = |number: u32| Stocked {
        number,
        reference: format!("r{number:021}"),
        token: format!("t{number:042}"),
        invoice_id: format!("00000000-0000-4000-8000-{number:012}"),
        order_id: format!("order-{number:07}"),
    };
    (1..=INVOICES).map(one).collect()
}
