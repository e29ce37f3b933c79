//! What a stop closes, finishes and cuts.

use super::*;

#[tokio::test]
async fn stopping_closes_an_idle_connection_at_once() {
    let running = Running::start(small()).await;
    let mut client = running.connect().await;
    client.write_all(GET).await.expect("sent");
    assert_eq!(status(&one_answer(&mut client).await), "200");
    let started = Instant::now();
    let served = running.stop().await;
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    assert_eq!(served.cut, 0);
    assert_eq!(rest(&mut client).await, "");
}

#[tokio::test]
async fn stopping_finishes_what_is_in_progress_and_accepts_nothing_new() {
    let running = Running::start(small()).await;
    let mut client = running.connect().await;
    client
        .write_all(b"GET /held HTTP/1.1\r\nHost: t\r\n\r\n")
        .await
        .expect("sent");
    running.trial.arrived.notified().await;
    running.shutdown.request();
    let (at, release) = (running.at, Arc::clone(&running.trial.release));
    while TcpStream::connect(at).await.is_ok() {
        tokio::task::yield_now().await;
    }
    release.notify_one();
    let answer = rest(&mut client).await;
    assert_eq!(status(&answer), "200");
    assert!(answer.contains("connection: close"), "{answer}");
    assert_eq!(running.stop().await.cut, 0);
}

/// Also on a connection that has served before, which hyper itself would close.
#[tokio::test]
async fn stopping_waits_for_a_head_that_has_begun() {
    let limits = Limits {
        header_time: BOUND,
        ..small()
    };
    let running = Running::start(limits).await;
    let (at, shutdown) = (running.at, running.shutdown.clone());
    let (first, second) = GET.split_at(10);
    let mut client = running.connect().await;
    client.write_all(GET).await.expect("sent");
    assert_eq!(status(&one_answer(&mut client).await), "200");
    client.write_all(first).await.expect("sent");
    // A whole exchange later the loop has seen those bytes too.
    running.exchange(GET_CLOSE).await;
    shutdown.request();
    while TcpStream::connect(at).await.is_ok() {
        tokio::task::yield_now().await;
    }
    client.write_all(second).await.expect("sent");
    assert_eq!(status(&rest(&mut client).await), "200");
    assert_eq!(running.stop().await.cut, 0);
}

#[tokio::test]
async fn what_outlasts_the_drain_is_cut() {
    let running = Running::start_draining(small(), Duration::from_millis(100)).await;
    let mut client = running.connect().await;
    client
        .write_all(b"GET /held HTTP/1.1\r\nHost: t\r\n\r\n")
        .await
        .expect("sent");
    running.trial.arrived.notified().await;
    assert_eq!(running.stop().await.cut, 1);
    assert_eq!(rest(&mut client).await, "");
}

/// Who has just connected is about to send: closing would lose it, and nobody else can answer on that connection (A18).
#[tokio::test]
async fn stopping_waits_a_moment_for_who_has_just_connected() {
    let running = Running::start(small()).await;
    let (at, shutdown) = (running.at, running.shutdown.clone());
    let mut late = running.connect().await;
    let mut silent = running.connect().await;
    // Taken behind those two.
    running.exchange(GET_CLOSE).await;
    let started = Instant::now();
    shutdown.request();
    while TcpStream::connect(at).await.is_ok() {
        tokio::task::yield_now().await;
    }
    late.write_all(GET).await.expect("sent");
    let answer = rest(&mut late).await;
    assert_eq!(status(&answer), "200");
    assert!(answer.contains("connection: close"), "{answer}");
    assert_eq!(running.stop().await.cut, 0);
    assert!(started.elapsed() < BOUND, "{:?}", started.elapsed());
    assert_eq!(rest(&mut silent).await, "");
}
