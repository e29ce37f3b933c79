//! Whose rules hold: the daemon's, which the ledger remembers, whatever the settings of a command say; and a command's own until a
//! daemon has served. With two ledgers open beside each other, as daemon and command have them.

use super::*;

fn wanting(hook: &str, on: Selector) -> Subscription {
    Subscription {
        hook: hook.to_owned(),
        on: vec![on],
    }
}

/// As of a command without a config: no name means paid, and no hook wants anything.
fn bare() -> Rules {
    let mut rules = of_a_command(rules());
    rules.policy.lists = StatusLists::default();
    rules.subscriptions = Vec::new();
    rules
}

async fn pays(ledger: &Ledger, order: &str) -> Recorded {
    let key = opened(&ledger.writer(), order).await;
    let paid = said(Source::Poll, &format!("id-{order}"), "paid", 9);
    ledger.writer().record(key, paid).await.expect("stored")
}

/// The hooks that are owed something for an order, each once.
async fn owed(ledger: &Ledger, order: &str) -> Vec<String> {
    let choice = Choice {
        whose: Whose::Order(order.to_owned()),
        ..Choice::default()
    };
    let rows = ledger.reader().chosen_deliveries(choice, 20).await;
    let mut hooks: Vec<String> = rows
        .expect("read")
        .into_iter()
        .map(|row| row.hook)
        .collect();
    hooks.sort();
    hooks.dedup();
    hooks
}

#[tokio::test]
async fn a_command_decides_and_owes_as_the_daemon_does() {
    let directory = tempfile::tempdir().expect("a directory");
    let daemon = open(&directory);
    let command = open_with(&directory, bare());
    assert_eq!(command.overruled(), Some(&["[statuses]", "[[hook]]"][..]));
    assert_eq!(daemon.overruled(), Some(&[][..]));
    assert_eq!(pays(&command, "a").await.outcome, Outcome::Paid);
    assert_eq!(owed(&command, "a").await, ["fulfil", "log"]);
    command.close(PATIENCE).await;
    daemon.close(PATIENCE).await;
    // With none beside it too.
    let command = open_with(&directory, bare());
    assert_eq!(pays(&command, "b").await.outcome, Outcome::Paid);
    assert_eq!(owed(&command, "b").await, ["fulfil", "log"]);
}

#[tokio::test]
async fn rules_that_change_beside_a_command_hold_for_what_it_records_next() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut own = rules();
    own.policy.lists.paid = vec!["settled".into()];
    own.subscriptions = vec![wanting("own", Selector::All)];
    let command = open_with(&directory, of_a_command(own));
    assert_eq!(command.overruled(), None, "no daemon ever served it");
    assert_eq!(pays(&command, "a").await.outcome, Outcome::Open);
    assert_eq!(owed(&command, "a").await, ["own"]);

    let daemon = open(&directory);
    assert_eq!(pays(&command, "b").await.outcome, Outcome::Paid);
    assert_eq!(owed(&command, "b").await, ["fulfil", "log"]);

    let mut others = rules();
    others.subscriptions = vec![wanting("ship", Selector::Kind(EventKind::Paid))];
    daemon.writer().owe(others).await.expect("stored");
    for (ledger, order) in [(&command, "c"), (&daemon, "d")] {
        assert_eq!(pays(ledger, order).await.outcome, Outcome::Paid);
        assert_eq!(owed(ledger, order).await, ["ship"]);
    }
    for (order, hooks) in [("a", &["own"][..]), ("b", &["fulfil", "log"])] {
        assert_eq!(owed(&daemon, order).await, hooks, "what is owed stays owed");
    }
}

#[tokio::test]
async fn settings_that_cannot_be_stored_are_not_taken_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let daemon = open(&directory);
    let lock = HeldLock::take(&directory.path().join("state"));
    let mut others = rules();
    others.subscriptions = vec![wanting("ship", Selector::All)];
    let refused = daemon.writer().owe(others).await;
    assert!(
        matches!(refused, Err(WriteError::NotStored(_))),
        "{refused:?}"
    );
    // The same as before needs nothing stored.
    daemon.writer().owe(rules()).await.expect("as it is");
    drop(lock);
    pays(&daemon, "a").await;
    assert_eq!(owed(&daemon, "a").await, ["fulfil", "log"]);
}

#[tokio::test]
async fn what_a_command_sorted_before_a_daemon_served_is_sorted_again_by_the_daemons_lists() {
    let directory = tempfile::tempdir().expect("a directory");
    let command = open_with(&directory, bare());
    let key = opened(&command.writer(), "a").await;
    let told = said(Source::Notification, "id-a", "paid", 9);
    command.writer().record(key, told).await.expect("stored");
    command.close(PATIENCE).await;
    let daemon = open(&directory);
    let done = daemon.writer().reassess(NOW + 1_000).await.expect("stored");
    assert_eq!(done.changed, 1);
    let row = daemon.reader().invoice(key).await.expect("read");
    assert_eq!(row.map(|row| row.outcome), Some(Outcome::Paid));
    let held = daemon.reader().held_count().await.expect("read");
    assert_eq!(held, 2, "both hooks, for a person");
    let missing = daemon.reader().missing(Choice::default()).await;
    assert_eq!(missing.expect("read"), []);
}
