//! Clients that go away, or only send nothing more, while their request is with the service.

use super::*;

const WAITS: &[u8] = b"GET /waits HTTP/1.1\r\nHost: t\r\n\r\n";
const HELD: &[u8] = b"GET /held HTTP/1.1\r\nHost: t\r\n\r\n";

async fn send(running: &Running, bytes: &[u8]) -> TcpStream {
    let mut client = running.connect().await;
    client.write_all(bytes).await.expect("sent");
    running.trial.arrived.notified().await;
    client
}

/// Closes so that the other end gets a reset.
fn reset(client: TcpStream) {
    client.set_zero_linger().expect("set");
    drop(client);
}

/// Else what only waits for its client would wait for ever, and hold a place.
#[tokio::test]
async fn a_service_that_asks_learns_that_its_client_sends_nothing_more() {
    let running = Running::start(small()).await;
    let told = async |what| {
        timeout(BOUND, running.trial.release.notified())
            .await
            .unwrap_or_else(|_| panic!("it is told of one that {what}"));
    };
    let mut shut = send(&running, WAITS).await;
    shut.shutdown().await.expect("shut");
    told("shut its half").await;
    assert_eq!(status(&rest(&mut shut).await), "200", "it may still wait");
    drop(send(&running, WAITS).await);
    told("closed").await;
    reset(send(&running, WAITS).await);
    told("reset").await;
    assert_eq!(running.stop().await.cut, 0);
}

/// Behind what it sent ahead nobody sees it go, so that it is told of at once; and its next request is as good as any.
#[tokio::test]
async fn a_client_that_sends_ahead_holds_no_place() {
    let running = Running::start(small()).await;
    let told = async || {
        let told = timeout(BOUND, running.trial.release.notified()).await;
        assert!(
            told.is_ok(),
            "it is told of one that sends ahead or has gone"
        );
    };
    let (first, rest_of_it) = WAITS.split_at(1);
    let mut client = send(&running, WAITS).await;
    client.write_all(first).await.expect("sent");
    told().await;
    client.write_all(rest_of_it).await.expect("sent");
    running.trial.arrived.notified().await;
    let early = timeout(Duration::from_millis(50), running.trial.release.notified()).await;
    assert!(early.is_err(), "the next one waits");
    drop(client);
    told().await;
    assert_eq!(running.stop().await.cut, 0);
}

/// What was read whole is seen through: a sender that gives up early must not undo what it said.
#[tokio::test]
async fn a_reset_cuts_no_request_that_was_read_whole() {
    let running = Running::start(small()).await;
    let seen_through = Arc::clone(&running.trial.seen_through);
    reset(send(&running, HELD).await);
    // A whole exchange later the reset has been seen.
    assert_eq!(status(&running.exchange(GET_CLOSE).await.0), "200");
    running.trial.release.notify_one();
    assert_eq!(running.stop().await.cut, 0);
    assert_eq!(seen_through.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_client_that_only_sends_nothing_more_gets_its_answer_and_the_connection_ends() {
    let running = Running::start(small()).await;
    let mut client = send(&running, HELD).await;
    client.shutdown().await.expect("shut");
    assert_eq!(status(&running.exchange(GET_CLOSE).await.0), "200");
    running.trial.release.notify_one();
    let answer = rest(&mut client).await;
    assert!(answer.ends_with("held\n"), "{answer}");
    assert_eq!(running.stop().await.cut, 0);
}
