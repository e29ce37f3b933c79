//! Framing, and what one client may cost, at the public listener over raw sockets. What is at stake: a proxy in front and tilld
//! behind it must never see different requests in the same bytes (T05), and no client may keep the honest from being heard (T06).

pub(crate) mod corpus;
mod limits;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};

use self::corpus::corpus;
use crate::harness::{PATIENCE, Setup, World, head};

/// Those of the corpus that must be refused by whoever reads HTTP with care; the others were decided.
const MUST_BE_REFUSED: [&str; 25] = [
    "CL.TE",
    "TE.CL",
    "TE tab",
    "two CL that differ",
    "CL list",
    "CL +",
    "CL -",
    "CL hex",
    "CL 2^64",
    "CL empty",
    "CL blank before colon",
    "TE xchunked",
    "TE chunked, identity",
    "two TE",
    "TE on HTTP/1.0",
    "chunk size beyond 64 bits",
    "chunk without its end",
    "obs-fold",
    "bare CR in a value",
    "NUL in a value",
    "no Host",
    "two Hosts",
    "two tokens",
    "fragment",
    "absolute form of another host",
];

/// Sends all of it and nothing more; gives the status of each answer that comes until the other side closes.
pub(crate) fn exchange(address: SocketAddr, bytes: &[u8]) -> Vec<u16> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("an option");
    // A side that has refused may have closed already.
    let sent = stream.write_all(bytes).is_ok();
    if sent {
        drop(stream.shutdown(Shutdown::Write));
    }
    let mut answers = Vec::new();
    // Cut off when what was sent last was never read.
    drop(stream.read_to_end(&mut answers));
    statuses(&answers)
}

/// The status lines in what came back.
pub(crate) fn statuses(answers: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(answers);
    let status = |line: &str| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok();
    text.lines().filter_map(status).collect()
}

#[test]
fn each_doubtful_framing_is_refused_and_nothing_that_is_smuggled_is_stored() {
    let world = Setup::new().quiet().start();
    // A poll, which a refusal asks for, would not find them paid: only a notification can have said it.
    let known = world.create("A-1").as_if("paid");
    let hidden = world.create("A-2").as_if("paid");
    // Authentic, so that it is stored if anybody takes it for a request.
    let body = hidden.object.to_string();
    let target = World::target(&hidden.reference);
    let token = [("X-Notification-Token", hidden.token.as_str())];
    let inner = head("shop.example", "POST", &target, &token, Some(body.len())) + &body;

    let cases = corpus(&known, &inner);
    let (clear, doubtful): (Vec<_>, Vec<_>) = cases.into_iter().partition(|case| case.is_clear);
    for name in MUST_BE_REFUSED {
        assert!(doubtful.iter().any(|case| case.name == name), "{name}");
    }
    let honest = world.create("A-3").as_if("waiting");
    for case in &doubtful {
        let answers = exchange(world.listen(), &case.bytes);
        assert_eq!(answers, case.answers, "{}", case.name);
        // Whoever comes next gets his own answer.
        let answer = world.tell_as_it_is(&honest);
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (200, "ok\n"),
            "{}",
            case.name
        );
    }
    let events = "SELECT count(*) FROM events WHERE kind = 'paid'";
    assert_eq!(world.value(events), "0", "none of them was taken");

    // The same bytes but for the framing are a notification.
    for case in &clear {
        let answers = exchange(world.listen(), &case.bytes);
        assert_eq!(answers, case.answers, "{}", case.name);
    }
    let paid = "SELECT order_id FROM events WHERE kind = 'paid'";
    assert_eq!(world.sql(paid), [["A-1"]], "and what was inside them never");

    // In absolute form it is for the configured host alone, whatever `Host` says (RFC 9112 3.2.2).
    let own = world.listen();
    for (host, wanted) in [
        (format!("other.example:{}", own.port()), 404),
        (format!("{}:1", own.ip()), 404),
        (own.to_string(), 200),
    ] {
        let target = format!("http://{host}{target}");
        let absolute = head("shop.example", "POST", &target, &token, Some(body.len())) + &body;
        assert_eq!(exchange(world.listen(), absolute.as_bytes()), [wanted]);
        let is_paid = if wanted == 200 { "1" } else { "0" };
        let count = format!("{events} AND order_id = 'A-2'");
        assert_eq!(world.value(&count), is_paid, "{target}");
    }
    // By itself it is a notification like any other.
    assert_eq!(exchange(world.listen(), inner.as_bytes()), [200]);
    assert_eq!(world.sql(paid), [["A-1"], ["A-2"]]);
}
