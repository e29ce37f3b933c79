//! What a person does with deliveries: which are found, what each act makes of them, and what it leaves alone.

use super::*;

/// More than any choice here has.
const ALL: u32 = 1_000;

/// Of one event, to one hook.
pub(super) fn of(whose: Whose, hook: Option<&str>) -> Choice {
    Choice {
        whose,
        hook: hook.map(str::to_owned),
        ..Choice::default()
    }
}

/// All that an act would change.
pub(super) async fn would(ledger: &Ledger, act: Act, choice: Choice) -> Vec<DeliveryRow> {
    let page = Page {
        after: DeliveryKey(0),
        upto: ledger.reader().newest_delivery().await.expect("read"),
        most: ALL,
    };
    let rows = ledger.reader().would_change(act, choice, page).await;
    rows.expect("read")
}

/// Looks and changes, as the commands do.
pub(super) async fn act(ledger: &Ledger, act: Act, choice: Choice, now_ms: i64) -> usize {
    let rows = would(ledger, act, choice).await;
    let acting = Acting {
        act,
        keys: rows.iter().map(|row| row.key).collect(),
        now_ms,
    };
    ledger.writer().act(acting).await.expect("stored")
}

/// Claims what may run and ends it so; gives hook, attempt, attempt of the round, and whether it is a replay.
async fn run(ledger: &Ledger, now_ms: i64, after: After) -> Vec<(String, u32, u32, bool)> {
    let claimed = ledger
        .writer()
        .claim_deliveries(ProcessMark::own(), now_ms, lanes(8))
        .await
        .expect("stored");
    let mut ran = Vec::new();
    for one in claimed {
        let record = AttemptRecord {
            started_ms: now_ms,
            ended_ms: now_ms,
            result: "exit".to_owned(),
            stdout: Vec::new(),
            stderr: Vec::new(),
        };
        let writer = ledger.writer();
        let finish = writer.finish_attempt(one.key, record, after);
        finish.await.expect("stored");
        ran.push((one.hook, one.attempt, one.round_attempt, one.replay));
    }
    ran
}

/// Each delivery, oldest first: hook, state, attempts, replay and who gave it up.
async fn shown(ledger: &Ledger) -> Vec<String> {
    let mut rows = ledger
        .reader()
        .list_deliveries(None, ALL)
        .await
        .expect("read");
    rows.reverse();
    let told = |row: DeliveryRow| {
        let (state, replay) = (row.state.as_str(), if row.replay { " replay" } else { "" });
        let by = row
            .abandoned_by
            .map_or(String::new(), |by| format!(" by {by}"));
        format!("{} {state} {}{replay}{by}", row.hook, row.attempts)
    };
    rows.into_iter().map(told).collect()
}

fn ran(hook: &str, attempt: u32, round: u32, replay: bool) -> (String, u32, u32, bool) {
    (hook.to_owned(), attempt, round, replay)
}

#[tokio::test]
async fn each_act_takes_what_it_is_for_and_leaves_the_rest() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    opened(&ledger.writer(), "a").await;
    let all = || of(Whose::All, None);
    // Within the longest wait: what is planned for later was planned by a clock that was ahead.
    let at = |turn: i64| NOW + 1_000 + turn * 10_000;

    // It waits: there is nothing to replay or to release.
    assert_eq!(act(&ledger, Act::Replay, all(), at(0)).await, 0);
    assert_eq!(act(&ledger, Act::Release, all(), at(0)).await, 0);
    let later = After::Retry { at_ms: at(5) };
    assert_eq!(run(&ledger, at(0), later).await, [ran("log", 1, 1, false)]);
    assert_eq!(run(&ledger, at(1), later).await, []);
    assert_eq!(act(&ledger, Act::Retry, all(), at(1)).await, 1);
    assert_eq!(run(&ledger, at(1), later).await, [ran("log", 2, 1, false)]);
    // Twice is as good as once.
    assert_eq!(act(&ledger, Act::Retry, all(), at(2)).await, 1);
    assert_eq!(act(&ledger, Act::Retry, all(), at(2)).await, 1);
    assert_eq!(
        run(&ledger, at(2), After::Done).await,
        [ran("log", 3, 1, false)]
    );
    assert_eq!(act(&ledger, Act::Retry, all(), at(3)).await, 0);
    assert_eq!(act(&ledger, Act::Abandon, all(), at(3)).await, 0);
    assert_eq!(shown(&ledger).await, ["log done 3"]);

    // A replay is one until it is over, through its retries, and counts on.
    assert_eq!(act(&ledger, Act::Replay, all(), at(3)).await, 1);
    assert_eq!(act(&ledger, Act::Replay, all(), at(3)).await, 0);
    assert_eq!(shown(&ledger).await, ["log waiting 3 replay"]);
    let soon = After::Retry { at_ms: at(4) };
    assert_eq!(run(&ledger, at(3), soon).await, [ran("log", 4, 1, true)]);
    assert_eq!(
        run(&ledger, at(4), After::Abandoned).await,
        [ran("log", 5, 2, true)]
    );
    assert_eq!(ledger.reader().abandoned_count().await.expect("read"), 1);
    assert_eq!(act(&ledger, Act::Abandon, all(), at(5)).await, 0);
    assert_eq!(act(&ledger, Act::Retry, all(), at(5)).await, 1);
    assert_eq!(
        run(&ledger, at(5), After::Abandoned).await,
        [ran("log", 6, 1, true)]
    );

    // What is acknowledged stays given up, and raises no alert; it may still be retried.
    assert_eq!(act(&ledger, Act::Acknowledge, all(), at(6)).await, 1);
    assert_eq!(act(&ledger, Act::Acknowledge, all(), at(6)).await, 0);
    assert_eq!(shown(&ledger).await, ["log abandoned 6 replay"]);
    assert_eq!(ledger.reader().abandoned_count().await.expect("read"), 0);
    assert_eq!(run(&ledger, at(9), After::Done).await, []);
    assert_eq!(act(&ledger, Act::Retry, all(), at(9)).await, 1);
    // To retry everything is no wish to run what the operator decided against.
    let named = || of(Whose::Order("a".to_owned()), None);
    assert_eq!(act(&ledger, Act::Abandon, all(), at(9)).await, 1);
    assert_eq!(shown(&ledger).await, ["log abandoned 6 replay by operator"]);
    assert_eq!(act(&ledger, Act::Acknowledge, all(), at(9)).await, 0);
    assert_eq!(act(&ledger, Act::Retry, all(), at(9)).await, 0);
    assert_eq!(act(&ledger, Act::Retry, named(), at(9)).await, 1);
    assert_eq!(shown(&ledger).await, ["log waiting 6 replay"]);
    assert_eq!(
        run(&ledger, at(9), After::Done).await,
        [ran("log", 7, 1, true)]
    );
}

#[tokio::test]
async fn what_runs_by_now_is_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    opened(&ledger.writer(), "a").await;
    opened(&ledger.writer(), "b").await;
    let found = would(&ledger, Act::Abandon, Choice::default()).await;
    assert_eq!(found.len(), 2);
    let claimed = ledger
        .writer()
        .claim_deliveries(ProcessMark::own(), NOW + 1_000, lanes(1))
        .await
        .expect("stored");
    let running = claimed.first().expect("one may run").key;
    for wish in Act::ALL {
        let acting = Acting {
            act: wish,
            keys: vec![running, DeliveryKey(99)],
            now_ms: NOW,
        };
        let changed = ledger.writer().act(acting).await.expect("stored");
        assert_eq!(changed, 0, "{wish:?}");
    }
    let acting = Acting {
        act: Act::Abandon,
        keys: found.iter().map(|row| row.key).collect(),
        now_ms: NOW,
    };
    assert_eq!(ledger.writer().act(acting).await.expect("stored"), 1);
    let left = ledger.reader().running_deliveries().await.expect("read");
    assert_eq!(left.len(), 1);
    assert!(left.iter().all(|left| left.key == running));
}

#[tokio::test]
async fn a_replay_of_an_older_event_comes_before_a_later_one_that_waits() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let key = opened(&ledger.writer(), "a").await;
    run(&ledger, NOW + 1_000, After::Done).await;
    let paid = said(Source::Notification, "id-a", "paid", 9);
    ledger.writer().record(key, paid).await.expect("stored");
    let first = of(Whose::All, Some("log"));
    assert_eq!(act(&ledger, Act::Replay, first, NOW + 1_000).await, 1);
    let rows = ledger.reader().list_deliveries(None, ALL).await;
    let behind: Vec<_> = rows
        .expect("read")
        .into_iter()
        .filter(|row| row.hook == "log")
        .map(|row| (row.seq, row.behind))
        .collect();
    assert_eq!(behind, [(2, Some(1)), (1, None)]);
    let mut order = Vec::new();
    for _ in 0..3 {
        order.extend(run(&ledger, NOW + 60_000, After::Done).await);
    }
    order.retain(|(hook, ..)| hook == "log");
    assert_eq!(order, [ran("log", 2, 1, true), ran("log", 1, 1, false)]);
}

#[tokio::test]
async fn a_choice_is_narrowed_by_all_that_is_said_and_pages_are_gapless() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    for order in ["a", "b", "c"] {
        opened(&ledger.writer(), order).await;
    }
    let paid = said(Source::Notification, "id-b", "paid", 9);
    let b = ledger.reader().invoices_of_order("b").await.expect("read");
    let b = b.first().expect("there").key;
    ledger.writer().record(b, paid).await.expect("stored");
    let rows = ledger.reader().list_deliveries(None, ALL).await;
    let rows = rows.expect("read");
    assert_eq!(rows.len(), 5);
    let paid_at = rows.first().expect("the newest").at_ms;
    let list = async |choice: Choice| {
        let rows = ledger.reader().chosen_deliveries(choice, ALL).await;
        let told = |row: DeliveryRow| (row.order_id, row.hook, row.seq);
        rows.expect("read")
            .into_iter()
            .map(told)
            .collect::<Vec<_>>()
    };
    let row = |order: &str, hook: &str, seq: i64| (order.to_owned(), hook.to_owned(), seq);
    let order = || Whose::Order("b".to_owned());
    assert_eq!(
        list(of(order(), Some("log"))).await,
        [row("b", "log", 4), row("b", "log", 2)]
    );
    assert_eq!(list(of(Whose::Order("none".to_owned()), None)).await, []);
    let since = |since_ms, until_ms| Choice {
        since_ms,
        until_ms,
        ..of(order(), Some("log"))
    };
    assert_eq!(list(since(Some(paid_at), None)).await, [row("b", "log", 4)]);
    assert_eq!(list(since(None, Some(paid_at))).await, [row("b", "log", 2)]);
    assert_eq!(list(since(Some(paid_at), Some(paid_at))).await, []);
    let held = Choice {
        state: Some(DeliveryState::Held),
        ..Choice::default()
    };
    assert_eq!(list(held.clone()).await, []);
    assert!(would(&ledger, Act::Retry, held).await.is_empty());

    let mut page = Page {
        after: DeliveryKey(0),
        upto: ledger.reader().newest_delivery().await.expect("read"),
        most: 2,
    };
    opened(&ledger.writer(), "d").await;
    let mut keys = Vec::new();
    loop {
        let rows = ledger
            .reader()
            .would_change(Act::Retry, Choice::default(), page.clone())
            .await
            .expect("read");
        assert!(rows.len() <= 2);
        let Some(last) = rows.last() else { break };
        page.after = last.key;
        keys.extend(rows.iter().map(|row| row.key.0));
    }
    assert_eq!(keys, [1, 2, 3, 4, 5], "what came meanwhile is not meant");
}
