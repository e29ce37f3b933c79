//! R22, requests whose ends two readers may see at different places. Each carries the right token and an authentic body, so
//! that it is refused for its framing or not at all; each hides a request without a token where there is room for one.
//!
//! The control is a bare hyper server, which is right by the standard and accepts some of them.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, body::Incoming};
use hyper_util::rt::TokioIo;

use crate::harness::{Issued, World};
use crate::rows::quiet;
use crate::verdict::{Found, Verdict};

mod cases;

use self::cases::{Case, Fate, cases};

/// What comes later than that is no answer to a framing.
const ANSWERED: Duration = Duration::from_secs(1);

pub(crate) fn corpus() -> Verdict {
    let world = quiet().start();
    let invoice = world.create("A-1");
    let stranger = world.create("A-2");
    let found = sent(world.listen(), &invoice, &stranger);
    let heard: BTreeSet<String> = world
        .sql("SELECT status FROM heard")
        .concat()
        .into_iter()
        .collect();
    let strangers = heard.contains(cases::STRANGER);
    let stored = heard
        .iter()
        .filter(|status| status.starts_with("must-"))
        .count();
    let found = found
        .bar(!strangers, "a hidden request without a token was stored")
        .bar(stored == 0, format!("{stored} were stored"));
    let control = sent(bare_hyper(), &invoice, &stranger);
    Verdict::new(found).control("bare hyper", control)
}

/// Sends all of them side by side, and looks at what is answered.
fn sent(address: SocketAddr, invoice: &Issued, stranger: &Issued) -> Found {
    let cases = cases(&World::target(&invoice.reference), invoice, stranger);
    let answered: Vec<(Case, Vec<u16>)> = thread::scope(|scope| {
        let sending: Vec<_> = cases
            .into_iter()
            .map(|case| {
                scope.spawn(move || {
                    let codes = answers(address, &case.bytes);
                    (case, codes)
                })
            })
            .collect();
        let all = sending.into_iter();
        all.map(|one| one.join().expect("it ends")).collect()
    });
    let of = |fate: Fate| answered.iter().filter(move |(case, _)| case.fate == fate);
    let accepted = |fate: Fate| of(fate).filter(|(_, codes)| codes.contains(&200));
    let names: Vec<&str> = accepted(Fate::Refused).map(|(case, _)| case.name).collect();
    let (must, sound) = (of(Fate::Refused).count(), of(Fate::Accepted).count());
    let watched = accepted(Fate::Watched).count();
    let n = format!("{} requests, {must} must be refused", answered.len());
    let figure = format!(
        "{} of {must} accepted; of those only watched {watched}",
        names.len()
    );
    Found::new(n, figure)
        .bar(names.is_empty(), format!("accepted: {}", names.join(", ")))
        .needs(
            accepted(Fate::Accepted).count() == sound,
            "sound requests were not accepted",
        )
}

/// The codes of all answers to these bytes.
fn answers(address: SocketAddr, bytes: &[u8]) -> Vec<u16> {
    let mut wire = TcpStream::connect(address).expect("it listens");
    wire.set_read_timeout(Some(ANSWERED)).expect("a limit");
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    // It may have seen enough before all is sent.
    drop(wire.write_all(bytes));
    while let Ok(count @ 1..) = wire.read(&mut part) {
        all.extend(part.iter().take(count));
    }
    let text = String::from_utf8_lossy(&all);
    let lines = text.split("HTTP/1.").skip(1);
    let codes = lines.filter_map(|line| line.get(2..5)?.parse().ok());
    codes.filter(|code| *code >= 200).collect()
}

/// A server that answers 200 to whatever hyper takes for a request; it ends with the process.
pub(super) fn bare_hyper() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    listener.set_nonblocking(true).expect("an option");
    thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            while let Ok((wire, _)) = listener.accept().await {
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(wire), service_fn(welcome)),
                );
            }
        });
    });
    address
}

async fn welcome(request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, Infallible> {
    let mut answer = Response::new(Empty::new());
    if request.into_body().collect().await.is_err() {
        *answer.status_mut() = StatusCode::BAD_REQUEST;
    }
    Ok(answer)
}
