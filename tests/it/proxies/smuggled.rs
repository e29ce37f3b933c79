//! Requests inside others, through a proxy, while honest customers pay. What is at stake: an order that nobody paid for counts as
//! paid, or a customer's notification is answered with what is another's, and so is lost.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::tell;
use crate::framing::corpus::{Case, corpus};
use crate::framing::statuses;
use crate::harness::{Issued, World, head};

/// How long a connection may say nothing before it is taken to have said all: proxies keep what they do not understand open.
const SILENCE: Duration = Duration::from_millis(500);

/// A host the proxy has no site for: a request it sees that names this is answered by the proxy itself. tilld looks at no host.
const HIDDEN: &str = "hidden.example";
/// Customers who pay while others send what is odd.
const HONEST: usize = 3;

/// No request comes through that the proxy did not see as one, and nobody gets another's answer.
pub(super) fn hides_nothing(world: &World, proxy: SocketAddr) {
    let known = world.create("C-0");
    // No poll would find it paid.
    let hidden = world.create("C-1").as_if("paid");
    let body = hidden.object.to_string();
    let target = World::target(&hidden.reference);
    let token = [("X-Notification-Token", hidden.token.as_str())];
    // Authentic: whoever brings these bytes to tilld as a request has it stored.
    let inner = head(HIDDEN, "POST", &target, &token, Some(body.len())) + &body;
    let honest: Vec<Issued> = (0..HONEST)
        .map(|number| world.create(&format!("H-{number}")))
        .collect();

    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for issued in &honest {
            scope.spawn(|| pays(world, proxy, issued, &known, &is_over));
        }
        let cases = corpus(&known, &inner);
        let odd: Vec<_> = cases
            .into_iter()
            .map(|case| scope.spawn(|| judge_answers(proxy, case, &known)))
            .collect();
        let odd: Vec<_> = odd
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect();
        is_over.store(true, Ordering::SeqCst);
        for judged in odd {
            if let Err(panic) = judged {
                std::panic::resume_unwind(panic);
            }
        }
    });
    // As a request of its own it is the proxy's to answer.
    drop(sent(proxy, inner.as_bytes()));
    let paid =
        "SELECT order_id FROM events WHERE kind = 'paid' AND order_id GLOB '[CH]-*' ORDER BY 1";
    assert_eq!(world.sql(paid).concat(), ["H-0", "H-1", "H-2"]);
    // And it would have been stored.
    assert_eq!(statuses(&sent(world.listen(), inner.as_bytes())), [200]);
    assert_eq!(world.sql(paid).concat(), ["C-1", "H-0", "H-1", "H-2"]);
}

/// Sends a case. No more may be answered than was asked, and no more be told that it was stored.
fn judge_answers(proxy: SocketAddr, case: Case, known: &Issued) {
    let Case { name, bytes, .. } = case;
    let answers = sent(proxy, &bytes);
    let asked = String::from_utf8_lossy(&bytes);
    let text = String::from_utf8_lossy(&answers);
    let targets = asked.matches(&World::target(&known.reference)).count();
    let requests = targets + asked.matches(HIDDEN).count();
    let final_ones = statuses(&answers)
        .into_iter()
        .filter(|status| *status >= 200);
    // What is no request at all is answered once, too.
    assert!(final_ones.count() <= requests.max(1), "{name}: {text}");
    let stored = text.matches("\r\n\r\nok\n").count();
    assert!(stored <= targets, "{name}: {text}");
}

/// One customer's notification among requests that are answered otherwise, again and again, the last time when all is over.
fn pays(world: &World, proxy: SocketAddr, issued: &Issued, known: &Issued, is_over: &AtomicBool) {
    let paid = issued.as_if("paid");
    let own = [("X-Notification-Token", paid.token.as_str())];
    let others = [("X-Notification-Token", paid.token.as_str())];
    let (object, target) = (paid.object.to_string(), World::target(&paid.reference));
    let (known, strange) = (World::target(&known.reference), World::target("a/b"));
    let count = format!(
        "SELECT count(*) FROM events WHERE kind = 'paid' AND order_id = '{}'",
        paid.order
    );
    loop {
        let is_last = is_over.load(Ordering::SeqCst);
        for (target, headers, body, wanted) in [
            (&target, &own[..], object.as_str(), (200, "ok\n")),
            (
                &known,
                &others[..],
                object.as_str(),
                (401, "unauthorized\n"),
            ),
            (&strange, &own[..], object.as_str(), (404, "not found\n")),
            (&target, &own[..], "[]", (400, "not an invoice\n")),
        ] {
            let answer = tell(proxy, target, headers, body);
            assert_eq!((answer.status, answer.body.as_str()), wanted, "{target}");
            // 200 means this order, and it is stored.
            assert_eq!(world.value(&count), "1", "{}", paid.order);
        }
        if is_last {
            return;
        }
    }
}

/// Sends these bytes, and gives all that came until the other side closed or said nothing more.
fn sent(to: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(to).expect("it listens");
    stream.set_read_timeout(Some(SILENCE)).expect("an option");
    let mut answers = Vec::new();
    // A side that has refused may have closed already, or says nothing more.
    drop(stream.write_all(bytes));
    drop(stream.read_to_end(&mut answers));
    answers
}
