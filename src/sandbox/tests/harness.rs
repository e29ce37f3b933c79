//! A running sandbox, a bare HTTP client and a shop that answers by script; all over real sockets.
#![expect(
    clippy::indexing_slicing,
    reason = "a missing field of a JSON value reads as null, which fails the assertion"
)]

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::sandbox::{Sandbox, Settings, start};
use crate::shutdown::Shutdown;

/// Longer than anything here takes, shorter than a patience.
pub(super) const BOUND: Duration = Duration::from_secs(10);
/// The notify token of every invoice made here.
pub(super) const TOKEN: &str = "a-notify-token-of-more-than-32-characters";

/// In a shop's script: no answer, until the sender goes away.
pub(super) const NEVER: u16 = 0;

/// An answer; status 0 when the connection closed without one.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a JSON body")
    }
}

pub(super) struct Ground {
    sandbox: Sandbox,
    pub(super) shop: Shop,
}

impl Ground {
    /// A sandbox with quick retries, and a shop that gives these answers and then only 200.
    pub(super) async fn new(script: &[u16]) -> Self {
        Self::trying_again_after(5, script).await
    }

    /// The same with so long between two tries, ms.
    pub(super) async fn trying_again_after(notify_retry_ms: u64, script: &[u16]) -> Self {
        let settings = Settings {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            control: SocketAddr::from(([127, 0, 0, 1], 0)),
            interval_s: 1,
            pool: 3,
            notify_retry_ms,
            ..Settings::default()
        };
        let sandbox = start(settings, Shutdown::new()).await.expect("it starts");
        Self {
            sandbox,
            shop: Shop::new(script.to_vec()).await,
        }
    }

    pub(super) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// A request to the service's listener, with these header lines.
    pub(super) async fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        request(&self.sandbox.url(), method, path, headers, body).await
    }

    /// A POST to the control listener that succeeds.
    pub(super) async fn control(&self, path: &str, body: Value) -> Value {
        let url = self.sandbox.control_url();
        let answer = request(&url, "POST", path, "", &body.to_string()).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    }

    pub(super) async fn state(&self) -> Value {
        let url = self.sandbox.control_url();
        request(&url, "GET", "/state", "", "").await.json()
    }

    /// A token for the first shop, as a header line.
    pub(super) async fn bearer(&self) -> String {
        let issued = self.control("/tokens/issue", json!({})).await;
        format!(
            "Authorization: Bearer {}\r\n",
            issued["token"].as_str().expect("a token")
        )
    }

    /// The body of a create for the shop.
    pub(super) fn invoice(&self, order: &str) -> Value {
        json!({
            "internalId": order, "direction": "in", "amount": 150, "currency": "RUB", "startDeal": true,
            "paymentMethod": "SBP", "notificationUrl": format!("http://{}/n/{order}", self.shop.address),
            "notificationToken": TOKEN,
        })
    }

    /// Creates an H2H invoice and gives the service's answer.
    pub(super) async fn create(&self, bearer: &str, order: &str) -> Answer {
        let body = self.invoice(order).to_string();
        self.ask("POST", "/api/v1/invoices", bearer, &body).await
    }

    /// Waits until the newest invoice has so many attempts, and gives the answers to them.
    pub(super) async fn answers(&self, wanted: usize) -> Vec<Value> {
        let look = async {
            loop {
                let state = self.state().await;
                let invoice = state["invoices"]
                    .as_array()
                    .and_then(|all| all.last().cloned());
                let attempts = invoice.expect("an invoice")["attempts"].clone();
                let attempts = attempts.as_array().expect("a list").clone();
                if attempts.len() >= wanted {
                    return attempts.iter().map(|one| one["answer"].clone()).collect();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(BOUND, look)
            .await
            .expect("attempts in time")
    }

    pub(super) async fn stop(self) {
        self.shop.task.abort();
        tokio::time::timeout(BOUND, self.sandbox.stop())
            .await
            .expect("it stops in time");
    }
}

/// One request on a connection of its own. A body for the service is JSON, and says so unless the headers say otherwise.
pub(super) async fn request(
    url: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Answer {
    let address = url.strip_prefix("http://").expect("http");
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let host = if headers.contains("Host:") {
            String::new()
        } else {
            format!("Host: {address}\r\n")
        };
        let kind = if method == "POST"
            && path.starts_with("/api/")
            && !headers.contains("Content-Type:")
        {
            "Content-Type: application/json\r\n"
        } else {
            ""
        };
        let length = body.len();
        let text = format!(
            "{method} {path} HTTP/1.1\r\n{host}Connection: close\r\nContent-Length: {length}\r\n{kind}{headers}\r\n{body}"
        );
        stream.write_all(text.as_bytes()).await.expect("written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("read");
        answer
    };
    let answer = tokio::time::timeout(BOUND, exchange)
        .await
        .expect("an answer in time");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Answer {
        status: status.unwrap_or(0),
        head: head.to_lowercase(),
        body: body.to_owned(),
    }
}

/// A notification as the shop got it. The body is null when it was cut short.
pub(super) struct Heard {
    pub(super) head: String,
    pub(super) body: Value,
    /// Reads it took.
    pub(super) pieces: usize,
}

/// A shop that answers by script.
pub(super) struct Shop {
    address: SocketAddr,
    heard: mpsc::Receiver<Heard>,
    task: JoinHandle<()>,
}

impl Shop {
    async fn new(script: Vec<u16>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let (sender, heard) = mpsc::channel(1_000);
        let task = tokio::spawn(async move {
            let mut script = script.into_iter();
            while let Ok((stream, _peer)) = listener.accept().await {
                let heard = hear(stream, script.next().unwrap_or(200)).await;
                sender.send(heard).await.expect("the test listens");
            }
        });
        Self {
            address,
            heard,
            task,
        }
    }

    /// The next notification.
    pub(super) async fn next(&mut self) -> Heard {
        let next = tokio::time::timeout(BOUND, self.heard.recv());
        next.await
            .expect("a notification in time")
            .expect("the shop is open")
    }
}

async fn hear(mut stream: TcpStream, answer: u16) -> Heard {
    let mut text = Vec::new();
    let mut heard = None;
    for pieces in 1.. {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).await.unwrap_or(0);
        text.extend(bytes.iter().take(count));
        let so_far = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = so_far.split_once("\r\n\r\n").unwrap_or((&so_far, ""));
        let whole = serde_json::from_str(body).ok();
        if whole.is_some() || count == 0 {
            heard.get_or_insert(Heard {
                head: head.to_owned(),
                body: whole.clone().unwrap_or_default(),
                pieces,
            });
        }
        if whole.is_some() && answer != NEVER {
            let reply =
                format!("HTTP/1.1 {answer} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(reply.as_bytes()).await.expect("written");
            break;
        }
        if count == 0 {
            break;
        }
    }
    heard.expect("a loop that has ended has heard")
}
