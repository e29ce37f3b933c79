//! Each limit, seen to fire.

use std::future::Future;
use std::io;
use std::sync::Mutex;

use super::super::accept::{Accept, PAUSE};
use super::super::serve;
use super::*;

#[tokio::test]
async fn a_client_that_sends_nothing_is_closed() {
    let running = Running::start(small()).await;
    let (answer, took) = running.exchange(b"").await;
    assert_eq!(answer, "");
    assert!(took < SOON, "{took:?}");
    assert_eq!(running.stop().await.slow_heads, 1);
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_is_closed() {
    let running = Running::start(small()).await;
    let started = Instant::now();
    let mut client = running.connect().await;
    for byte in GET.iter().cycle() {
        if client.write_all(&[*byte]).await.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(started.elapsed() < BOUND, "never closed");
        if started.elapsed() > Duration::from_millis(400) {
            break;
        }
    }
    // 400 ms of single bytes are far fewer than the head has, so only the deadline can have closed it.
    rest(&mut client).await;
    let served = running.stop().await;
    assert_eq!(served.slow_heads, 1, "{served:?}");
}

#[tokio::test]
async fn a_later_request_has_its_own_time_for_the_head_and_for_idleness() {
    let limits = Limits {
        idle_time: Duration::from_millis(300),
        ..small()
    };
    let running = Running::start(limits).await;
    let mut client = running.connect().await;
    client.write_all(GET).await.expect("sent");
    assert_eq!(status(&one_answer(&mut client).await), "200");
    client.write_all(b"GET / HT").await.expect("sent");
    assert_eq!(rest(&mut client).await, "");
    let mut client = running.connect().await;
    client.write_all(GET).await.expect("sent");
    assert_eq!(status(&one_answer(&mut client).await), "200");
    assert_eq!(rest(&mut client).await, "");
    let served = running.stop().await;
    assert_eq!((served.slow_heads, served.idle), (1, 1));
}

#[tokio::test]
async fn half_a_body_is_answered_408_and_closed() {
    let running = Running::start(small()).await;
    let (answer, took) = running.exchange(&post("Content-Length: 10", "half")).await;
    assert_eq!(status(&answer), "408");
    assert!(answer.contains("connection: close"), "{answer}");
    assert!(took < BOUND, "{took:?}");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_closed() {
    let running = Running::start(small()).await;
    let mut client = running.connect().await;
    client
        .write_all(b"GET /big HTTP/1.1\r\nHost: t\r\n\r\n")
        .await
        .expect("sent");
    while running.trial.seen.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    // The drain is longer than the bound of `stop`: only the write deadline can end it.
    let served = running.stop().await;
    assert_eq!(served.slow_readers, 1, "{served:?}");
    drop(client);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_and_one_at_the_limit_is_not() {
    let running = Running::start(small()).await;
    let of = |length: usize| {
        post(
            &format!("Content-Length: {length}\r\nConnection: close"),
            &"x".repeat(length),
        )
    };
    assert_eq!(status(&running.exchange(&of(1000)).await.0), "200");
    assert_eq!(status(&running.exchange(&of(1001)).await.0), "413");
    assert_eq!(status(&running.exchange(&of(60_000)).await.0), "413");
    let chunk = format!("400\r\n{}\r\n", "x".repeat(0x400));
    let endless = post("Transfer-Encoding: chunked", &chunk.repeat(5));
    assert_eq!(status(&running.exchange(&endless).await.0), "413");
}

/// A sender that is still sending when it is refused must not run into a reset: many then never read the answer.
#[tokio::test]
async fn a_refused_sender_may_finish_its_sentence() {
    let running = Running::start(small()).await;
    let mut client = running.connect().await;
    let begun = post("Content-Length: 60000", &"x".repeat(8_000));
    client.write_all(&begun).await.expect("sent");
    client.readable().await.expect("answered");
    for _ in 0..5 {
        // By the second round the server has seen the first: a reset would have come back.
        tokio::time::sleep(Duration::from_millis(5)).await;
        let sent = client.write_all(&[b'x'; 4_000]).await;
        assert!(sent.is_ok(), "{sent:?}");
    }
    client.shutdown().await.expect("shut");
    assert_eq!(status(&rest(&mut client).await), "413");
}

#[tokio::test]
async fn ten_declared_gigabytes_are_refused_before_a_byte_of_them() {
    let running = Running::start(small()).await;
    let mut client = running.connect().await;
    let head = post("Content-Length: 10000000000\r\nExpect: 100-continue", "");
    let started = Instant::now();
    client.write_all(&head).await.expect("sent");
    client.shutdown().await.expect("shut");
    let answer = rest(&mut client).await;
    assert_eq!(status(&answer), "413", "{answer}");
    assert!(started.elapsed() < SOON);
}

#[tokio::test]
async fn a_head_over_the_limit_is_431() {
    let running = Running::start(small()).await;
    for headers in [
        format!("X-Long: {}", "x".repeat(64 * 1024)),
        "X-Many: x\r\n".repeat(200).trim_end().to_owned(),
    ] {
        assert_eq!(
            status(&running.exchange(&post(&headers, "")).await.0),
            "431"
        );
    }
    assert_eq!(running.trial.seen.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_missing_or_repeated_host_is_refused_before_the_service() {
    let running = Running::start(small()).await;
    for head in ["", "Host: a\r\nHost: a\r\n", "Host: a\r\nHost: b\r\n"] {
        let request = format!("GET / HTTP/1.1\r\n{head}\r\n");
        let (answer, _) = running.exchange(request.as_bytes()).await;
        assert_eq!(status(&answer), "400", "{head}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
    assert_eq!(running.trial.seen.load(Ordering::SeqCst), 0);
    let (answer, _) = running.exchange(b"GET / HTTP/1.0\r\n\r\n").await;
    assert_eq!(status(&answer), "200");
}

#[tokio::test]
async fn a_request_smuggled_behind_two_lengths_is_never_served() {
    let running = Running::start(small()).await;
    for lengths in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
    ] {
        let before = running.trial.seen.load(Ordering::SeqCst);
        let bytes = post(lengths, "0\r\n\r\nGET /inner HTTP/1.1\r\nHost: t\r\n\r\n");
        let (answer, _) = running.exchange(&bytes).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
        let seen = running.trial.seen.load(Ordering::SeqCst) - before;
        assert!(seen <= 1, "{lengths}: {seen} requests reached the service");
    }
}

/// R21: the slow ones make room, the longest silent first; an honest client does not wait for their time to end.
#[tokio::test]
async fn an_honest_request_gets_through_a_wall_of_silent_connections() {
    let limits = Limits {
        header_time: BOUND,
        ..small()
    };
    let running = Running::start(limits).await;
    let mut wall = Vec::new();
    for _ in 0..32 {
        wall.push(running.connect().await);
    }
    let (answer, took) = running.exchange(GET_CLOSE).await;
    assert_eq!(status(&answer), "200");
    assert!(took < SOON, "{took:?}");
    let served = running.stop().await;
    assert!(served.evicted >= 24, "{served:?}");
    assert_eq!(served.slow_heads, 0);
}

#[tokio::test]
async fn a_request_in_progress_is_never_evicted_and_newcomers_wait_for_it() {
    let limits = Limits {
        connections: 1,
        ..small()
    };
    let running = Running::start(limits).await;
    let mut busy = running.connect().await;
    busy.write_all(b"GET /held HTTP/1.1\r\nHost: t\r\n\r\n")
        .await
        .expect("sent");
    running.trial.arrived.notified().await;
    let mut waiting = running.connect().await;
    waiting.write_all(GET_CLOSE).await.expect("sent");
    // It stays in the backlog for at least as long as a silent one would have been given.
    let early = timeout(Duration::from_millis(200), waiting.readable()).await;
    assert!(early.is_err(), "answered while the only place was taken");
    running.trial.release.notify_one();
    assert_eq!(status(&one_answer(&mut busy).await), "200");
    assert_eq!(status(&rest(&mut waiting).await), "200");
    assert_eq!(running.stop().await.evicted, 0);
}

#[tokio::test]
async fn a_panic_is_answered_500_and_ends_only_its_request() {
    let running = Running::start(small()).await;
    let mut client = running.connect().await;
    client
        .write_all(b"GET /panic HTTP/1.1\r\nHost: t\r\n\r\n")
        .await
        .expect("sent");
    assert_eq!(status(&one_answer(&mut client).await), "500");
    client.write_all(GET_CLOSE).await.expect("sent");
    assert_eq!(status(&rest(&mut client).await), "200");
    assert_eq!(running.stop().await.panics, 1);
}

#[tokio::test]
async fn a_sender_that_shuts_its_side_after_the_request_still_gets_the_answer() {
    let running = Running::start(small()).await;
    let mut client = running.connect().await;
    client
        .write_all(b"GET /held HTTP/1.1\r\nHost: t\r\n\r\n")
        .await
        .expect("sent");
    client.shutdown().await.expect("shut");
    running.trial.arrived.notified().await;
    running.trial.release.notify_one();
    assert_eq!(status(&rest(&mut client).await), "200");
}

/// Fails like a process without descriptors a few times, then goes on.
struct Exhausted {
    failures: Mutex<u32>,
    listener: TcpListener,
}

impl Accept for Exhausted {
    type Peer = SocketAddr;
    type Io = TcpStream;

    fn accept(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send {
        const EMFILE: i32 = 24;
        async {
            {
                let mut failures = self.failures.lock().expect("not poisoned");
                if let Some(left) = failures.checked_sub(1) {
                    *failures = left;
                    return Err(io::Error::from_raw_os_error(EMFILE));
                }
            }
            self.listener.accept().await
        }
    }
}

#[tokio::test]
async fn running_out_of_descriptors_neither_spins_nor_ends_the_loop() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = listener.local_addr().expect("an address");
    let source = Exhausted {
        failures: Mutex::new(3),
        listener,
    };
    let (trial, shutdown) = (Trial::default(), Shutdown::new());
    let task = tokio::spawn(serve::run(
        source,
        small(),
        trial.clone(),
        shutdown.clone(),
        BOUND,
    ));
    let running = Running {
        at,
        trial,
        shutdown,
        task,
    };
    let (answer, took) = running.exchange(GET_CLOSE).await;
    assert_eq!(status(&answer), "200");
    assert!(took >= PAUSE * 3, "spun: {took:?}");
    assert_eq!(running.stop().await.accept_errors, 3);
}
