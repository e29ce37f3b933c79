//! A server that answers whatever a case wants, byte by byte.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::client::error::{CreateError, Error};
use crate::client::proxy::Proxy;
use crate::client::{Client, Settings};
use crate::invoice::amount::Amount;
use crate::invoice::ids::InvoiceId;
use crate::invoice::observation::Report;
use crate::secret::Secret;
use crate::wire::create::CreateRequest;

pub(super) const TOKEN: &str = "shop:very-secret-token";
pub(super) const NOTIFY_TOKEN: &str = "notify-token-notify-token-notify-token-1234";
pub(super) const INVOICE: &str =
    r#"{"amount":"599.80","id":"inv-1","internalId":"order-1","status":"new"}"#;
/// For cases in which no time-out is the point: long enough for a loaded machine.
pub(super) const PATIENT: Duration = Duration::from_secs(30);

/// What the server does with each connection.
#[derive(Clone)]
pub(super) enum Reply {
    /// Reads the request, writes this, closes.
    Text(String),
    /// Answers every request of a connection that stays open, and notes where a connection begins.
    KeepAlive(String),
    /// Closes with the request unread, which resets the connection.
    Reset,
    /// Reads the request, writes this, and then nothing more.
    Stall(String),
    /// Answers, and goes on writing the body until the client has had enough.
    Endless,
}

pub(super) struct Stub {
    pub(super) client: Client,
    pub(super) token: Secret,
    /// Written by the server task, read by the test.
    requests: Arc<Mutex<Vec<String>>>,
    server: JoinHandle<()>,
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Stub {
    pub(super) async fn new(reply: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&requests);
        let request_timeout = match reply {
            Reply::Stall(_) => Duration::from_millis(500),
            Reply::Text(_) | Reply::KeepAlive(_) | Reply::Reset | Reply::Endless => PATIENT,
        };
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serve(stream, &reply, &seen).await;
            }
        });
        let client = client(format!("http://{address}/gw"), request_timeout);
        Self {
            client,
            token: Secret::new(TOKEN),
            requests,
            server,
        }
    }

    pub(super) async fn answering(status: &str, headers: &str, body: &str) -> Self {
        Self::new(Reply::Text(response(status, headers, body))).await
    }

    pub(super) async fn fetch(&self) -> Result<Report, Error> {
        let id = InvoiceId::new("inv-1").expect("an id");
        self.client.fetch_invoice((&self.token, None), &id).await
    }

    pub(super) async fn create(&self) -> Result<Report, CreateError> {
        self.client.create_invoice(&self.token, &request()).await
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.requests
            .lock()
            .expect("no panic in the server")
            .clone()
    }
}

pub(super) fn request() -> CreateRequest {
    CreateRequest {
        internal_id: "order-1".into(),
        amount: Amount::parse_payable("599.80").expect("an amount"),
        currency: "RUB".into(),
        start_deal: true,
        method: "SBP".into(),
        notification_url: "https://shop.example/n/ref".into(),
        notification_token: Secret::new(NOTIFY_TOKEN),
        return_urls: None,
    }
}

pub(super) fn client(base_url: String, request_timeout: Duration) -> Client {
    Client::new(&settings(base_url, request_timeout)).expect("a client")
}

pub(super) fn settings(base_url: String, request_timeout: Duration) -> Settings {
    Settings {
        base_url,
        connect_timeout: request_timeout,
        request_timeout,
        allow_plain_http: true,
        proxy: Proxy::Straight,
    }
}

pub(super) fn response(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

async fn serve(mut stream: TcpStream, reply: &Reply, seen: &Mutex<Vec<String>>) {
    if matches!(reply, Reply::Reset) {
        // One byte is waited for, so that the connection stood and the rest of the request lies unread.
        stream.read_u8().await.expect("a request begins");
        seen.lock().expect("no panic").push("reset".into());
        return;
    }
    if let Reply::KeepAlive(text) = reply {
        seen.lock().expect("no panic").push("connection".into());
        while stream.peek(&mut [0]).await.is_ok_and(|count| count > 0) {
            let request = read_request(&mut stream).await;
            seen.lock().expect("no panic").push(request);
            drop(stream.write_all(text.as_bytes()).await);
        }
        return;
    }
    let request = read_request(&mut stream).await;
    seen.lock().expect("no panic").push(request);
    match reply {
        Reply::Text(text) => drop(stream.write_all(text.as_bytes()).await),
        Reply::Stall(text) => {
            stream
                .write_all(text.as_bytes())
                .await
                .expect("the client listens");
            std::future::pending::<()>().await;
        }
        Reply::Endless => {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\n\r\n")
                .await
                .expect("the client listens");
            while stream.write_all(&[b' '; 8_192]).await.is_ok() {}
        }
        Reply::Reset | Reply::KeepAlive(_) => {}
    }
}

pub(super) async fn read_request(stream: &mut TcpStream) -> String {
    let mut request = String::new();
    loop {
        let length = request
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |text| text.parse().expect("a number"));
        if request
            .split_once("\r\n\r\n")
            .is_some_and(|(_, body)| body.len() >= length)
        {
            return request;
        }
        let mut piece = vec![0; 4_096];
        let count = stream.read(&mut piece).await.expect("readable");
        assert!(count > 0, "the client closed early: {request}");
        request.push_str(
            std::str::from_utf8(piece.get(..count).expect("read")).expect("ASCII request"),
        );
    }
}
