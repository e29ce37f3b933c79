//! Lists of status names that change: what stored orders amount to then, and that nothing old fires by surprise.

use std::collections::BTreeMap;

use super::acts::{act, of, would};
use super::*;
use crate::invoice::attention::Attention;
use crate::ledger::fact::LISTS_NUMBER;

/// More than one commit of the pass sorts anew.
const MANY: u32 = 60;

/// The rules with these names for paid.
fn paid_are(names: &[&str]) -> Rules {
    let mut rules = rules();
    rules.policy.lists.paid = names.iter().map(|&name| name.to_owned()).collect();
    rules
}

/// Closes the ledger and opens it by the rules, as the daemon does.
async fn reopened(directory: &tempfile::TempDir, ledger: Ledger, rules: Rules) -> Ledger {
    ledger.close(PATIENCE).await;
    open_with(directory, rules)
}

/// Runs the pass to its end; gives how many invoices changed since the lists did.
async fn pass(ledger: &Ledger) -> u64 {
    loop {
        let done = ledger.writer().reassess(NOW + 1_000).await.expect("stored");
        if !done.more {
            return done.changed;
        }
    }
}

async fn tell(ledger: &Ledger, key: InvoiceKey, observation: Observation) -> Recorded {
    ledger
        .writer()
        .record(key, observation)
        .await
        .expect("stored")
}

/// An order that was told of as `status` by a notification at 9.
async fn told(ledger: &Ledger, order: &str, status: &str) -> InvoiceKey {
    let key = opened(&ledger.writer(), order).await;
    let id = format!("id-{order}");
    tell(ledger, key, said(Source::Notification, &id, status, 9)).await;
    key
}

async fn outcome(ledger: &Ledger, key: InvoiceKey) -> (Outcome, Vec<Attention>) {
    let row = ledger.reader().invoice(key).await.expect("read");
    let row = row.expect("there");
    (row.outcome, row.attention)
}

async fn kinds(ledger: &Ledger, order: &str) -> Vec<EventKind> {
    let events = ledger.reader().events(Some(order), 0, 100).await;
    events
        .expect("read")
        .iter()
        .map(|event| event.kind)
        .collect()
}

/// Hook, kind and why of all that is held, oldest first.
async fn held(ledger: &Ledger) -> Vec<(String, EventKind, Option<String>)> {
    let rows = would(ledger, Act::Release, Choice::default()).await;
    let rows = rows.into_iter();
    rows.map(|row| (row.hook, row.kind, row.held_why)).collect()
}

fn newly(hook: &str, kind: EventKind) -> (String, EventKind, Option<String>) {
    (hook.to_owned(), kind, Some("newly_sorted".to_owned()))
}

#[tokio::test]
async fn a_name_put_on_a_list_pays_old_orders_and_runs_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let key = told(&ledger, "a", "settled").await;
    let untouched = opened(&ledger.writer(), "b").await;
    let unsorted = vec![Attention::UnsortedStatus];
    assert_eq!(outcome(&ledger, key).await, (Outcome::Open, unsorted));
    let ledger = reopened(&directory, ledger, paid_are(&["paid", "settled"])).await;
    assert_eq!(pass(&ledger).await, 1);

    assert_eq!(outcome(&ledger, key).await, (Outcome::Paid, Vec::new()));
    let paid = [EventKind::Opened, EventKind::Status, EventKind::Paid];
    assert_eq!(kinds(&ledger, "a").await, paid);
    let event = ledger.reader().events(Some("a"), 2, 1).await.expect("read");
    let event = event.first().expect("the payment");
    assert_eq!(event.source, Some(Source::Notification));
    assert_eq!(event.amount_reported.as_deref(), Some("1500"));
    let both = [
        newly("fulfil", EventKind::Paid),
        newly("log", EventKind::Paid),
    ];
    assert_eq!(held(&ledger).await, both);
    assert_eq!(ledger.reader().held_count().await.expect("read"), 2);
    let known = ledger.reader().overview(NOW, NOW).await.expect("read");
    assert_eq!(known.unsorted, [("settled".to_owned(), 1)]);

    // Neither the same word again, nor a restart, changes anything.
    for source in [Source::Notification, Source::Poll] {
        let recorded = tell(&ledger, key, said(source, "id-a", "settled", 9)).await;
        assert_eq!((recorded.event, recorded.resorted), (None, None));
    }
    let ledger = reopened(&directory, ledger, paid_are(&["settled", "paid"])).await;
    assert_eq!(pass(&ledger).await, 0);
    assert_eq!(kinds(&ledger, "a").await, paid);
    assert_eq!(kinds(&ledger, "b").await, [EventKind::Opened]);
    assert_eq!(outcome(&ledger, untouched).await.0, Outcome::Open);
    let ran = ledger.writer();
    let ran = ran
        .claim_deliveries(ProcessMark::own(), NOW + 9_000, lanes(8))
        .await
        .expect("stored");
    assert!(
        ran.iter().all(|c| c.event.kind != EventKind::Paid),
        "{ran:?}"
    );
}

#[tokio::test]
async fn a_name_put_on_a_wrong_list_and_taken_off_again_leaves_nothing_to_release() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let (one, other) = (
        told(&ledger, "a", "checking").await,
        told(&ledger, "b", "checking").await,
    );
    let ledger = reopened(&directory, ledger, paid_are(&["paid", "checking"])).await;
    assert_eq!(pass(&ledger).await, 2);
    assert_eq!(held(&ledger).await.len(), 4);
    // One of them was released before the mistake was seen, and its hook may have run.
    let wish = of(Whose::Order("b".to_owned()), Some("fulfil"));
    assert_eq!(act(&ledger, Act::Release, wish, NOW).await, 1);

    let ledger = reopened(&directory, ledger, paid_are(&["paid"])).await;
    assert_eq!(pass(&ledger).await, 2);
    for key in [one, other] {
        assert_eq!(outcome(&ledger, key).await.0, Outcome::Open);
    }
    let left = held(&ledger).await;
    assert!(
        left.iter().all(|(_, kind, _)| *kind != EventKind::Paid),
        "{left:?}"
    );
    // The money that comes now is the first that anybody hears of; or the second, where a hook was told.
    for (key, id, kind) in [
        (one, "id-a", EventKind::Paid),
        (other, "id-b", EventKind::PaidAgain),
    ] {
        let recorded = tell(&ledger, key, said(Source::Notification, id, "paid", 12)).await;
        assert_eq!(recorded.event.map(|event| event.kind), Some(kind));
    }
}

/// A script that goes by the number would take the payment for one it has seen.
#[tokio::test]
async fn a_number_that_was_withdrawn_is_given_to_no_other_delivery() {
    async fn look(ledger: &Ledger, seen: &mut BTreeMap<i64, String>) {
        let rows = ledger.reader().list_deliveries(None, 100).await;
        for row in rows.expect("read") {
            let event = seen.entry(row.key.0).or_insert(row.event_id.clone());
            assert_eq!(*event, row.event_id, "{}", row.key.0);
        }
    }
    let directory = tempfile::tempdir().expect("a directory");
    let (mut ledger, mut seen) = (open(&directory), BTreeMap::new());
    let key = told(&ledger, "a", "checking").await;
    for names in [&["paid", "checking"][..], &["paid"]] {
        ledger = reopened(&directory, ledger, paid_are(names)).await;
        pass(&ledger).await;
        look(&ledger, &mut seen).await;
    }
    assert_eq!(outcome(&ledger, key).await.0, Outcome::Open, "withdrawn");
    tell(&ledger, key, said(Source::Notification, "id-a", "paid", 12)).await;
    look(&ledger, &mut seen).await;
}

#[tokio::test]
async fn an_observation_that_comes_before_the_pass_finds_the_order_sorted() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let old = told(&ledger, "a", "settled").await;
    let open_still = opened(&ledger.writer(), "b").await;
    let ledger = reopened(&directory, ledger, paid_are(&["paid", "settled"])).await;
    let recorded = tell(&ledger, old, said(Source::Poll, "id-a", "settled", 9)).await;
    let resorted = recorded.resorted.expect("sorted first");
    assert_eq!(resorted.event.kind, EventKind::Paid);
    assert_eq!((recorded.event, recorded.outcome), (None, Outcome::Paid));

    // What comes only now is no old news: its hooks run.
    let new = tell(
        &ledger,
        open_still,
        said(Source::Notification, "id-b", "settled", 9),
    )
    .await;
    assert_eq!((new.outcome, new.resorted), (Outcome::Paid, None));
    assert_eq!(held(&ledger).await.len(), 2);
    assert_eq!(pass(&ledger).await, 1);
    assert_eq!(held(&ledger).await.len(), 2);
    for order in ["a", "b"] {
        let kinds = kinds(&ledger, order).await;
        let paid = kinds.iter().filter(|kind| **kind == EventKind::Paid);
        assert_eq!(paid.count(), 1, "{order}");
    }
}

#[tokio::test]
async fn a_name_taken_off_a_list_gives_the_outcome_back_and_paid_fires_once_in_a_life() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let key = told(&ledger, "a", "paid").await;
    let ledger = reopened(&directory, ledger, paid_are(&["settled"])).await;
    assert_eq!(pass(&ledger).await, 1);
    let unsorted = vec![Attention::UnsortedStatus];
    assert_eq!(outcome(&ledger, key).await, (Outcome::Open, unsorted));
    assert_eq!(held(&ledger).await, [newly("log", EventKind::Status)]);
    let due = ledger.reader().due(NOW + 100_000, 10).await.expect("read");
    assert_eq!(due.len(), 1, "it is asked about again");

    let ledger = reopened(&directory, ledger, paid_are(&["paid"])).await;
    assert_eq!(pass(&ledger).await, 1);
    assert_eq!(outcome(&ledger, key).await, (Outcome::Paid, Vec::new()));
    let life = [
        EventKind::Opened,
        EventKind::Paid,
        EventKind::Status,
        EventKind::PaidAgain,
    ];
    assert_eq!(kinds(&ledger, "a").await, life);
    let log = [
        newly("log", EventKind::Status),
        newly("log", EventKind::PaidAgain),
    ];
    assert_eq!(held(&ledger).await, log);
}

#[tokio::test]
async fn an_order_open_again_past_its_horizon_is_unresolved_and_nobody_is_told_by_surprise() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let key = told(&ledger, "a", "paid").await;
    let ledger = reopened(&directory, ledger, paid_are(&["settled"])).await;
    let later = NOW + 400_000_000;
    ledger.writer().reassess(later).await.expect("stored");
    let (outcome, attention) = outcome(&ledger, key).await;
    assert_eq!(outcome, Outcome::Open);
    assert_eq!(
        attention,
        [Attention::UnsortedStatus, Attention::Unresolved]
    );
    let log = [
        newly("log", EventKind::Status),
        newly("log", EventKind::Unresolved),
    ];
    assert_eq!(held(&ledger).await, log);
    let due = ledger.reader().due(later, 10).await.expect("read");
    assert!(due.is_empty(), "{due:?}");
}

#[tokio::test]
async fn a_pass_that_is_cut_short_goes_on_where_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    for number in 0..MANY {
        told(&ledger, &format!("o-{number}"), "settled").await;
    }
    let lists = || paid_are(&["paid", "settled"]);
    let ledger = reopened(&directory, ledger, lists()).await;
    let first = ledger.writer().reassess(NOW + 1_000).await.expect("stored");
    assert!(first.more);
    let sorted = first.resorted.len();
    assert!(sorted > 0 && sorted < 60, "{sorted} in one commit");
    let ledger = reopened(&directory, ledger, lists()).await;
    let second = ledger.writer().reassess(NOW + 1_000).await.expect("stored");
    assert_eq!(second.resorted.len() + sorted, 60, "none twice");
    assert_eq!(
        pass(&ledger).await,
        if second.more { u64::from(MANY) } else { 0 }
    );
    let rows = would(&ledger, Act::Release, of(Whose::All, Some("fulfil"))).await;
    assert_eq!(rows.len(), 60);

    // Lists that change again before it is through lose nothing either.
    let ledger = reopened(&directory, ledger, paid_are(&["paid"])).await;
    ledger.writer().reassess(NOW + 2_000).await.expect("stored");
    let ledger = reopened(&directory, ledger, lists()).await;
    pass(&ledger).await;
    for number in 0..MANY {
        let order = format!("o-{number}");
        let rows = ledger
            .reader()
            .invoices_of_order(&order)
            .await
            .expect("read");
        assert!(
            rows.iter().all(|row| row.outcome == Outcome::Paid),
            "{order}"
        );
        let wish = of(Whose::Order(order.clone()), Some("fulfil"));
        let held = would(&ledger, Act::Release, wish).await;
        assert_eq!(
            held.len(),
            1,
            "{order}: once, however often the lists changed"
        );
    }
}

#[tokio::test]
async fn a_command_with_other_lists_sorts_nothing_anew() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let key = told(&ledger, "a", "settled").await;
    ledger.close(PATIENCE).await;
    let ledger = open_with(&directory, of_a_command(paid_are(&["settled"])));
    assert_eq!(pass(&ledger).await, 0);
    assert_eq!(outcome(&ledger, key).await.0, Outcome::Open);
    let ledger = reopened(&directory, ledger, rules()).await;
    assert_eq!(pass(&ledger).await, 0, "the stored lists are the old ones");
    let number = ledger.reader().fact(&LISTS_NUMBER).await.expect("read");
    assert_eq!(number, Some(1));
}

#[tokio::test]
async fn a_shop_that_trusts_no_push_has_old_payments_confirmed_and_held() {
    let directory = tempfile::tempdir().expect("a directory");
    let strict = |names: &[&str]| {
        let mut rules = paid_are(names);
        rules.policy.confirm_paid = true;
        rules
    };
    let ledger = open_with(&directory, strict(&["paid"]));
    let key = told(&ledger, "a", "settled").await;
    let ledger = reopened(&directory, ledger, strict(&["paid", "settled"])).await;
    assert_eq!(pass(&ledger).await, 0);
    let row = ledger
        .reader()
        .invoice(key)
        .await
        .expect("read")
        .expect("there");
    assert_eq!((row.outcome, row.doubt), (Outcome::Open, true));
    let due = ledger.reader().due(NOW + 1_000, 10).await.expect("read");
    assert_eq!(due.len(), 1, "asked about at once");
    let answer = tell(&ledger, key, said(Source::Poll, "id-a", "settled", 9)).await;
    assert_eq!(answer.event.map(|event| event.kind), Some(EventKind::Paid));
    let both = [
        newly("fulfil", EventKind::Paid),
        newly("log", EventKind::Paid),
    ];
    assert_eq!(held(&ledger).await, both);
    // What happens to it from now on is new.
    tell(&ledger, key, said(Source::Poll, "id-a", "failed", 20)).await;
    tell(&ledger, key, said(Source::Poll, "id-a", "failed", 40_020)).await;
    assert_eq!(outcome(&ledger, key).await.0, Outcome::Reversed);
    assert_eq!(held(&ledger).await.len(), 2);
}

#[tokio::test]
async fn what_is_released_runs_once_and_in_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    told(&ledger, "a", "settled").await;
    told(&ledger, "b", "settled").await;
    let ledger = reopened(&directory, ledger, paid_are(&["paid", "settled"])).await;
    assert_eq!(pass(&ledger).await, 2);
    let writer = ledger.writer();
    let release =
        |whose: Whose, hook: Option<&str>| act(&ledger, Act::Release, of(whose, hook), NOW + 3_000);
    let order = || Whose::Order("a".to_owned());
    assert_eq!(release(order(), Some("none")).await, 0);
    assert_eq!(release(order(), Some("fulfil")).await, 1);
    assert_eq!(release(order(), Some("fulfil")).await, 0);
    let own = ProcessMark::own();
    let claimed = writer
        .claim_deliveries(own, NOW + 3_000, lanes(8))
        .await
        .expect("stored");
    let fulfil: Vec<_> = claimed.iter().filter(|c| c.hook == "fulfil").collect();
    assert!(fulfil.len() <= 1, "{fulfil:?}");
    assert!(fulfil.iter().all(|c| !c.replay && c.event.order_id == "a"));
    assert_eq!(release(Whose::All, None).await, 3);
    assert_eq!(ledger.reader().held_count().await.expect("read"), 0);
    assert_eq!(ledger.reader().abandoned_count().await.expect("read"), 0);
    let rows = ledger
        .reader()
        .list_deliveries(None, 100)
        .await
        .expect("read");
    assert!(rows.iter().all(|row| row.held_why.is_none()), "{rows:?}");
}

#[tokio::test]
async fn what_waits_behind_a_held_delivery_says_so_until_it_is_released() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let key = told(&ledger, "a", "settled").await;
    let ledger = reopened(&directory, ledger, paid_are(&["paid", "settled"])).await;
    assert_eq!(pass(&ledger).await, 1);
    let paid = ledger.reader().events(Some("a"), 2, 1).await.expect("read");
    let paid = paid.first().expect("the payment").clone();
    tell(&ledger, key, said(Source::Poll, "id-a", "on its way", 12)).await;
    // Twice, since it leaves a payment.
    let mut again = said(Source::Poll, "id-a", "on its way", 12);
    again.received_ms += 60_000;
    tell(&ledger, key, again).await;
    let behind = |rows: Vec<DeliveryRow>| -> Vec<Option<i64>> {
        let waiting = rows
            .iter()
            .filter(|row| row.state == DeliveryState::Waiting);
        waiting
            .filter(|row| row.seq > paid.seq)
            .map(|row| row.behind)
            .collect()
    };
    let list = async || {
        let rows = ledger.reader().list_deliveries(None, 100).await;
        rows.expect("read")
    };
    // The events before it are still owed to the same hook, and come first.
    let first = behind(list().await);
    assert_eq!(first.len(), 1, "{first:?}");
    assert!(
        first
            .iter()
            .all(|seq| seq.is_some_and(|seq| seq <= paid.seq)),
        "{first:?}"
    );
    run_all(&ledger).await;
    assert_eq!(behind(list().await), [Some(paid.seq)]);
    act(&ledger, Act::Release, Choice::default(), NOW).await;
    run_all(&ledger).await;
    assert!(
        list()
            .await
            .iter()
            .all(|row| row.state == DeliveryState::Done)
    );
}

/// Claims and ends well whatever may run, again and again.
async fn run_all(ledger: &Ledger) {
    let writer = ledger.writer();
    loop {
        let claimed = writer
            .claim_deliveries(ProcessMark::own(), NOW + 900_000, lanes(8))
            .await;
        let claimed = claimed.expect("stored");
        if claimed.is_empty() {
            return;
        }
        for one in claimed {
            let record = AttemptRecord {
                started_ms: NOW,
                ended_ms: NOW,
                result: "exit 0".to_owned(),
                stdout: Vec::new(),
                stderr: Vec::new(),
            };
            writer
                .finish_attempt(one.key, record, After::Done)
                .await
                .expect("stored");
        }
    }
}
