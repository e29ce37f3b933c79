//! One request on a connection of its own. Promises that an answer is read within a time and a size, and that a request that
//! may have arrived is told apart from one that was never sent.

use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout};

use super::super::failure::{Exit, Failure};
use super::{NoAnswer, Remote};

/// A daemon that runs takes connections at once.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// Between two tries while as many wait for it as may.
const CONNECT_PAUSE: Duration = Duration::from_millis(20);
/// An answer from the ledger takes milliseconds; a disk may be slow. What is waited for on purpose comes on top.
const ANSWER_TIME: Duration = Duration::from_secs(15);
/// After so long without an answer it is tried whether the daemon answers anything, which it does at once.
const KNOCK_TIME: Duration = Duration::from_secs(5);
/// The largest answer that is read, bytes: a thousand invoices are some 3 MB.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// RFC 7240.
const PREFER: HeaderName = HeaderName::from_static("prefer");

/// A request.
#[derive(Debug)]
pub(super) struct Call {
    method: Method,
    target: String,
    /// Seconds of `Prefer: wait=`.
    prefer_wait: Option<u64>,
    body: String,
    within: Duration,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Call {
    /// A question whose answer may take so long.
    pub(super) fn get(target: String, wait: Duration) -> Self {
        Self {
            method: Method::GET,
            target,
            prefer_wait: None,
            body: String::new(),
            within: wait + ANSWER_TIME,
        }
    }

    /// A wish for which the service is asked, which may take so long.
    pub(super) fn post(target: String, body: String, wait: Duration) -> Self {
        Self {
            method: Method::POST,
            body,
            ..Self::get(target, wait)
        }
    }

    /// Has it tried for so long.
    pub(super) fn prefers_wait(mut self, seconds: u64) -> Self {
        self.prefer_wait = Some(seconds).filter(|seconds| *seconds > 0);
        self
    }

    /// Has its answer waited for no longer.
    pub(super) fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    fn request(self) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let mut request = Request::builder()
            .method(self.method)
            .uri(self.target)
            .header(HOST, "tilld");
        if let Some(seconds) = self.prefer_wait {
            request = request.header(PREFER, format!("wait={seconds}"));
        }
        if !self.body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request.body(Full::new(self.body.into()))
    }
}

/// Connects.
pub(super) async fn connect(path: &Path) -> io::Result<UnixStream> {
    let connected = async {
        loop {
            match UnixStream::connect(path).await {
                // It listens, and as many wait for it as may.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    sleep(CONNECT_PAUSE).await;
                }
                other => return other,
            }
        }
    };
    match timeout(CONNECT_TIME, connected).await {
        Ok(connected) => connected,
        Err(_late) => Err(io::ErrorKind::TimedOut.into()),
    }
}

impl Remote {
    /// Sends it, and reads the answer.
    pub(super) async fn call(&self, call: Call) -> Result<Answer, NoAnswer> {
        let within = call.within;
        let request = call.request().map_err(|error| {
            let failure = Failure::new(Exit::Usage, error);
            NoAnswer::Ended(failure.context("this cannot be asked for"))
        })?;
        let stream = self.connect().await?;
        let began = Instant::now();
        tokio::select! {
            answered = self.exchange(stream, request) => answered,
            () = sleep(within) => Err(self.silent(began)),
            () = self.stands_still() => Err(self.silent(began)),
        }
    }

    fn silent(&self, began: Instant) -> NoAnswer {
        NoAnswer::Silent {
            path: self.path.clone(),
            within: began.elapsed(),
        }
    }

    /// Resolves when it answers nothing any more: what waits for the service is told from what waits for nobody.
    async fn stands_still(&self) {
        let knock = || {
            Request::head("/v1/openapi.json")
                .header(HOST, "tilld")
                .body(Full::default())
        };
        loop {
            sleep(KNOCK_TIME).await;
            let asked = async {
                let stream = self.connect().await.ok()?;
                self.exchange(stream, knock().ok()?).await.ok()
            };
            if !matches!(timeout(KNOCK_TIME, asked).await, Ok(Some(_))) {
                return;
            }
        }
    }

    async fn exchange(
        &self,
        stream: UnixStream,
        request: Request<Full<Bytes>>,
    ) -> Result<Answer, NoAnswer> {
        let begun = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = begun.map_err(|_closed| self.gone())?;
        let answer = async {
            let response = sender.send_request(request).await;
            let (head, body) = response.map_err(|_closed| self.gone())?.into_parts();
            let body = Limited::new(body, MOST_BYTES).collect().await;
            let body = body.map_err(|error| self.torn(error.as_ref()))?;
            Ok(Answer {
                status: head.status,
                headers: head.headers,
                body: body.to_bytes(),
            })
        };
        tokio::pin!(answer);
        tokio::select! {
            answered = &mut answer => answered,
            // What had come before the end is still to be read.
            _ended = connection => answer.await,
        }
    }

    fn torn(&self, error: &(dyn std::error::Error + 'static)) -> NoAnswer {
        if !error.is::<http_body_util::LengthLimitError>() {
            return self.gone();
        }
        let text = format!("the answer is larger than {MOST_BYTES} bytes");
        NoAnswer::Ended(Failure::new(Exit::Error, text).hint("ask for less with `--limit`"))
    }
}
