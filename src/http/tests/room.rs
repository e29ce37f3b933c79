//! Who makes room at the cap, and who does not. What is at stake: half requests cost a client next to nothing, and must
//! not keep an honest sender from being heard; a request that came whole must not be lost to a newcomer.

use super::super::progress::GRACE;
use super::*;

/// Time enough for everything, so that only eviction can end a connection.
fn patient(connections: usize) -> Limits {
    Limits {
        header_time: BOUND * 2,
        body_time: BOUND * 2,
        connections,
        ..small()
    }
}

async fn send(running: &Running, bytes: &[u8]) -> TcpStream {
    let mut client = running.connect().await;
    client.write_all(bytes).await.expect("sent");
    client
}

fn held() -> Vec<u8> {
    b"POST /held HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nbody".to_vec()
}

/// R21, with a byte of a body each: that is what a wall is cheapest built of.
#[tokio::test]
async fn an_honest_request_gets_through_a_wall_of_half_bodies() {
    let running = Running::start(patient(8)).await;
    let mut wall = Vec::new();
    for _ in 0..32 {
        wall.push(send(&running, &post("Content-Length: 10", "h")).await);
    }
    let honest = post("Content-Length: 5\r\nConnection: close", "whole");
    let (answer, took) = running.exchange(&honest).await;
    assert_eq!(status(&answer), "200");
    assert!(took < SOON, "{took:?}");
    drop(wall);
    let served = running.stop().await;
    assert_eq!((served.evicted, served.cut), (25, 0), "{served:?}");
}

#[tokio::test]
async fn an_evicted_half_body_is_told_when_to_come_again() {
    let running = Running::start(patient(1)).await;
    let mut half = send(&running, &post("Content-Length: 10", "half")).await;
    while running.trial.seen.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(status(&running.exchange(GET_CLOSE).await.0), "200");
    let answer = rest(&mut half).await;
    assert_eq!(status(&answer), "503", "{answer}");
    assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
}

#[tokio::test]
async fn the_oldest_half_body_makes_room_first() {
    let running = Running::start(patient(2)).await;
    let half = post("Content-Length: 4", "ha");
    let mut first = send(&running, &half).await;
    while running.trial.seen.load(Ordering::SeqCst) < 1 {
        tokio::task::yield_now().await;
    }
    let mut second = send(&running, &half).await;
    while running.trial.seen.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(status(&running.exchange(GET_CLOSE).await.0), "200");
    assert_eq!(status(&rest(&mut first).await), "503");
    second.write_all(b"lf").await.expect("sent");
    assert_eq!(status(&one_answer(&mut second).await), "200");
}

#[tokio::test]
async fn a_request_that_was_read_whole_is_never_evicted() {
    let running = Running::start(patient(1)).await;
    let mut busy = send(&running, &held()).await;
    running.trial.arrived.notified().await;
    let mut newcomers = Vec::new();
    for _ in 0..4 {
        newcomers.push(send(&running, GET_CLOSE).await);
    }
    // For longer than any half request would have been left alone.
    let early = timeout(GRACE * 4, busy.readable()).await;
    assert!(early.is_err(), "answered or closed while held");
    running.trial.release.notify_one();
    let answer = one_answer(&mut busy).await;
    assert_eq!(status(&answer), "200");
    assert!(answer.contains("connection: close"), "{answer}");
    for newcomer in &mut newcomers {
        assert_eq!(status(&rest(newcomer).await), "200");
    }
    assert_eq!(running.stop().await.evicted, 0);
}

/// Its answer is lost on it anyway; its time to read is long, and nothing that it does makes it longer for a newcomer.
#[tokio::test]
async fn a_client_that_leaves_its_answer_unread_makes_room() {
    let running = Running::start(Limits {
        write_time: BOUND * 2,
        ..patient(1)
    })
    .await;
    let unread = send(&running, b"GET /big HTTP/1.1\r\nHost: t\r\n\r\n").await;
    unread.readable().await.expect("answered");
    assert_eq!(status(&running.exchange(GET_CLOSE).await.0), "200");
    let served = running.stop().await;
    assert_eq!((served.evicted, served.slow_readers), (1, 0), "{served:?}");
}

/// Between two of its requests there is no moment in which it could be asked.
#[tokio::test]
async fn a_client_that_asks_without_a_pause_makes_room_after_an_answer() {
    let running = Running::start(patient(1)).await;
    let (mut answers, mut asks) = running.connect().await.into_split();
    let asking =
        tokio::spawn(async move { while asks.write_all(&GET.repeat(64)).await.is_ok() {} });
    let reading = tokio::spawn(async move {
        let mut part = vec![0; 64 * 1024];
        let mut last = Vec::new();
        while let Ok(count @ 1..) = answers.read(&mut part).await {
            last = part.get(..count).unwrap_or_default().to_vec();
        }
        String::from_utf8_lossy(&last).into_owned()
    });
    while running.trial.seen.load(Ordering::SeqCst) < 64 {
        tokio::task::yield_now().await;
    }
    assert_eq!(status(&running.exchange(GET_CLOSE).await.0), "200");
    let last = timeout(BOUND, reading)
        .await
        .expect("closed")
        .expect("read");
    assert!(last.contains("connection: close"), "it is told: {last}");
    asking.abort();
}

/// With all other places busy, the last comer is the only one that could go; it is let read what it brought.
#[tokio::test]
async fn newcomers_with_whole_requests_do_not_push_each_other_out() {
    let running = Running::start(patient(2)).await;
    let mut busy = send(&running, &held()).await;
    running.trial.arrived.notified().await;
    let mut newcomers = Vec::new();
    for _ in 0..64 {
        newcomers.push(send(&running, GET_CLOSE).await);
    }
    for newcomer in &mut newcomers {
        assert_eq!(status(&rest(newcomer).await), "200");
    }
    running.trial.release.notify_one();
    assert_eq!(status(&one_answer(&mut busy).await), "200");
    assert_eq!(running.stop().await.evicted, 0);
}

#[tokio::test]
async fn a_newcomer_that_finds_no_room_in_time_is_answered_and_the_next_at_once() {
    let full_time = Duration::from_millis(100);
    let running = Running::start(Limits {
        full_time: Some(full_time),
        ..patient(1)
    })
    .await;
    let mut first = send(&running, &held()).await;
    running.trial.arrived.notified().await;
    for waits in [full_time, Duration::ZERO] {
        let (answer, took) = running.exchange(&held()).await;
        assert_eq!(status(&answer), "503", "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
        assert!(answer.ends_with("too many connections\n"), "{answer}");
        assert!(took >= waits && took < waits + SOON, "{took:?}");
    }
    running.trial.release.notify_one();
    assert_eq!(status(&one_answer(&mut first).await), "200");
    drop(first);
    // Turned away like the others, until it is seen that the first is gone.
    let mut turned_away = 2;
    let mut other = loop {
        let mut other = send(&running, &held()).await;
        tokio::select! {
            () = running.trial.arrived.notified() => break other,
            answer = rest(&mut other) => {
                assert_eq!(status(&answer), "503", "{answer}");
                turned_away += 1;
            }
        }
    };
    running.trial.release.notify_one();
    assert_eq!(status(&one_answer(&mut other).await), "200");
    drop(other);
    let served = running.stop().await;
    assert_eq!((served.turned_away, served.accepted), (turned_away, 2));
}
