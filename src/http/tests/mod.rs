//! Serving, over real sockets. Limits are small so that each test takes well under
//! a second; where a test sleeps, the slowness is the attack itself.

mod flowing;
mod leaving;
mod limits;
mod progress;
mod room;
mod stopping;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hyper::{Request, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::shutdown::Shutdown;

/// Longer than any limit of a test, shorter than a patience.
const BOUND: Duration = Duration::from_secs(5);
const SOON: Duration = Duration::from_secs(1);

fn small() -> Limits {
    Limits {
        header_bytes: 4096,
        body_bytes: 1000,
        header_time: Duration::from_millis(150),
        body_time: Duration::from_millis(150),
        write_time: Duration::from_millis(150),
        idle_time: BOUND,
        connections: 8,
        full_time: None,
    }
}

#[derive(Clone, Default)]
struct Trial {
    /// Requests the service has seen.
    seen: Arc<AtomicUsize>,
    /// Rung when `/held` has been read whole.
    arrived: Arc<Notify>,
    /// Lets `/held` go on.
    release: Arc<Notify>,
    /// Those of `/held` that were seen through.
    seen_through: Arc<AtomicUsize>,
    limits: Option<Limits>,
    /// The maker's end of what `/flows` is answered with.
    pieces: Arc<Mutex<Option<Pieces>>>,
}

impl Service for Trial {
    type Peer = SocketAddr;

    async fn call(&self, request: Request<Body>, _peer: SocketAddr) -> Response {
        self.seen.fetch_add(1, Ordering::SeqCst);
        match request.uri().path() {
            "/panic" => panic!("on purpose"),
            "/big" => Response::new(Bytes::from(vec![b'x'; 32 << 20]).into()),
            "/flows" => {
                let (pieces, flow) = Flow::new();
                *self.pieces.lock().expect("no panic") = Some(pieces);
                self.arrived.notify_one();
                flowing(flow, "text/plain")
            }
            "/waits" => {
                let body = request.into_body();
                let caller = body.caller();
                self.arrived.notify_one();
                caller.sends_no_more().await;
                self.release.notify_one();
                plain(StatusCode::OK, "ok\n")
            }
            "/held" => {
                let limits = self.limits.clone().unwrap_or_else(small);
                if let Err(error) = read_body(request.into_body(), &limits).await {
                    return error.response();
                }
                self.arrived.notify_one();
                self.release.notified().await;
                self.seen_through.fetch_add(1, Ordering::SeqCst);
                plain(StatusCode::OK, "held\n")
            }
            _ => {
                let limits = self.limits.clone().unwrap_or_else(small);
                match read_body(request.into_body(), &limits).await {
                    Ok(_body) => plain(StatusCode::OK, "ok\n"),
                    Err(error) => error.response(),
                }
            }
        }
    }
}

struct Running {
    at: SocketAddr,
    trial: Trial,
    shutdown: Shutdown,
    task: JoinHandle<Served>,
}

impl Running {
    async fn start(limits: Limits) -> Self {
        Self::start_draining(limits, BOUND).await
    }

    async fn start_draining(limits: Limits, drain: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("an address");
        let shutdown = Shutdown::new();
        let trial = Trial {
            limits: Some(limits.clone()),
            ..Trial::default()
        };
        let task = tokio::spawn(serve(
            listener,
            limits,
            trial.clone(),
            shutdown.clone(),
            drain,
        ));
        Self {
            at,
            trial,
            shutdown,
            task,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.at).await.expect("a connection")
    }

    /// Sends `bytes` and returns everything until the server closes, with the time it took.
    async fn exchange(&self, bytes: &[u8]) -> (String, Duration) {
        let started = Instant::now();
        let mut client = self.connect().await;
        client.write_all(bytes).await.expect("sent");
        (rest(&mut client).await, started.elapsed())
    }

    async fn stop(self) -> Served {
        self.shutdown.request();
        timeout(BOUND, self.task)
            .await
            .expect("ends in time")
            .expect("does not panic")
    }
}

/// Everything until the server closes.
async fn rest(client: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let ended_or_reset = timeout(BOUND, client.read_to_end(&mut answer)).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(ended_or_reset.is_ok(), "not closed; so far: {answer}");
    answer
}

/// One answer of a connection that stays open. Good for the short answers of [`Trial`].
async fn one_answer(client: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let end: [&[u8]; 4] = [b"ok\n", b"held\n", b"error\n", b"busy\n"];
    while !end.iter().any(|end| answer.ends_with(end)) {
        let read = timeout(BOUND, client.read_buf(&mut answer)).await;
        assert!(
            matches!(read, Ok(Ok(1..))),
            "no whole answer: {}",
            String::from_utf8_lossy(&answer)
        );
    }
    String::from_utf8_lossy(&answer).into_owned()
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: t\r\n\r\n";
const GET_CLOSE: &[u8] = b"GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";

fn post(headers: &str, body: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: t\r\n{headers}\r\n\r\n{body}").into_bytes()
}

fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or_default()
}
