//! Answers that go on: neither idle nor in anybody's way, and closed on a client that does not read.

use tokio::net::UnixStream;

use super::*;

const FLOWS: &[u8] = b"GET /flows HTTP/1.1\r\nHost: t\r\n\r\n";

impl Trial {
    /// The maker's end, once the request is there.
    async fn made(&self) -> Pieces {
        self.arrived.notified().await;
        let made = self.pieces.lock().expect("no panic").take();
        made.expect("it was kept")
    }
}

/// Reads until this has come.
async fn until(client: &mut TcpStream, end: &[u8]) {
    let mut all = Vec::new();
    while !all.windows(end.len()).any(|part| part == end) {
        let read = timeout(BOUND, client.read_buf(&mut all)).await;
        assert!(
            matches!(read, Ok(Ok(1..))),
            "so far: {}",
            String::from_utf8_lossy(&all)
        );
    }
}

#[tokio::test]
async fn a_flowing_answer_is_not_idle_and_ends_when_its_maker_says_so() {
    let limits = Limits {
        idle_time: Duration::from_millis(50),
        write_time: Duration::from_millis(100),
        ..small()
    };
    let running = Running::start(limits).await;
    let mut client = running.connect().await;
    client.write_all(FLOWS).await.expect("sent");
    let pieces = running.trial.made().await;
    for piece in ["first", "second"] {
        // Nothing is said for longer than any limit.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(pieces.offer(Bytes::from_static(piece.as_bytes())), Ok(()));
        until(&mut client, piece.as_bytes()).await;
    }
    drop(pieces);
    assert!(
        rest(&mut client).await.ends_with("0\r\n\r\n"),
        "it is told that it was all"
    );
    assert_eq!(running.stop().await.slow_readers, 0);
}

#[tokio::test]
async fn a_flowing_answer_makes_no_room() {
    let running = Running::start(Limits {
        connections: 1,
        ..small()
    })
    .await;
    let mut client = running.connect().await;
    client.write_all(FLOWS).await.expect("sent");
    let pieces = running.trial.made().await;
    let mut newcomer = running.connect().await;
    newcomer.write_all(GET_CLOSE).await.expect("sent");
    let waited = timeout(Duration::from_millis(300), newcomer.read_u8()).await;
    assert!(waited.is_err(), "it is in hand: {waited:?}");
    assert_eq!(pieces.offer(Bytes::from_static(b"still")), Ok(()));
    until(&mut client, b"still").await;
    drop(pieces);
    assert_eq!(status(&rest(&mut newcomer).await), "200");
    assert_eq!(running.stop().await.cut, 0);
}

#[tokio::test]
async fn a_client_that_does_not_read_what_flows_is_closed() {
    let running = Running::start(small()).await;
    let mut client = running.connect().await;
    client.write_all(FLOWS).await.expect("sent");
    let pieces = running.trial.made().await;
    // More than the kernel keeps for it.
    let piece = Bytes::from(vec![b'x'; 1 << 20]);
    while pieces.offer(piece.clone()) == Ok(()) {}
    timeout(BOUND, pieces.gone()).await.expect("it is closed");
    assert_eq!(running.stop().await.slow_readers, 1);
    drop(client);
}

struct Local {
    at: tempfile::TempDir,
    trial: LocalTrial,
}

#[derive(Clone, Default)]
struct LocalTrial(Trial);

impl Service for LocalTrial {
    type Peer = super::super::Local;

    async fn call(&self, request: Request<Body>, _peer: super::super::Local) -> Response {
        self.0.call(request, SocketAddr::from(([0; 4], 0))).await
    }
}

impl Local {
    fn start() -> Self {
        let at = tempfile::tempdir().expect("a directory");
        let listener =
            std::os::unix::net::UnixListener::bind(at.path().join("t.sock")).expect("bound");
        let listener = Named::new(listener, None).expect("a socket");
        let trial = LocalTrial::default();
        let served = serve_local(listener, small(), trial.clone(), Shutdown::new(), BOUND);
        drop(tokio::spawn(served));
        Self { at, trial }
    }

    async fn send(&self, bytes: &[u8]) -> UnixStream {
        let mut client = UnixStream::connect(self.at.path().join("t.sock"))
            .await
            .expect("connected");
        client.write_all(bytes).await.expect("sent");
        client
    }
}

/// What was sent and lies in the kernel counts as sent, so there must be little of it: else a client that never reads keeps its
/// place for as long as short pieces fit.
#[tokio::test]
async fn a_local_client_that_never_reads_is_closed_after_a_few_short_pieces() {
    let local = Local::start();
    let client = local.send(FLOWS).await;
    let pieces = local.trial.0.made().await;
    let mut taken = 0;
    // Each is out, or waits, before the next one comes.
    while timeout(small().write_time * 2, pieces.gone())
        .await
        .is_err()
    {
        assert_eq!(pieces.offer(Bytes::from_static(b": tilld\n\n")), Ok(()));
        taken += 1;
        assert!(taken <= 8, "so many lie unread");
    }
    drop(client);
}

/// Else whoever reloads a page would hold places until the time they no longer wait for is over.
#[tokio::test]
async fn what_a_local_client_waited_for_ends_when_it_leaves() {
    let local = Local::start();
    let client = local.send(FLOWS).await;
    let pieces = local.trial.0.made().await;
    drop(client);
    timeout(BOUND, pieces.gone()).await.expect("it is noticed");
}

#[tokio::test]
async fn a_local_client_that_only_sends_nothing_more_gets_its_answer() {
    let local = Local::start();
    let trial = &local.trial.0;
    let mut client = local.send(b"GET /held HTTP/1.1\r\nHost: t\r\n\r\n").await;
    trial.arrived.notified().await;
    client.shutdown().await.expect("shut");
    // A whole exchange later the end of what is sent has been seen.
    let mut other = local.send(GET_CLOSE).await;
    let mut answer = Vec::new();
    other.read_to_end(&mut answer).await.expect("read");
    trial.release.notify_one();
    answer.clear();
    let read = timeout(BOUND, client.read_to_end(&mut answer)).await;
    assert!(matches!(read, Ok(Ok(_))), "{read:?}");
    assert_eq!(status(&String::from_utf8_lossy(&answer)), "200");
}
