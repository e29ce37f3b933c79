//! What others do: the file at the ledger's path may be none of ours, and another process may write to one that is.

use super::*;

#[tokio::test]
async fn a_file_that_is_no_ledger_is_left_untouched() {
    let directory = tempfile::tempdir().expect("a directory");
    open(&directory).close(PATIENCE).await;
    let path = directory.path().join("state").join(FILE_NAME);
    let good = fs::read(&path).expect("read");
    let mut other_program = good.clone();
    other_program.splice(68..72, [0, 0, 0, 0]);
    let bounds = Bounds {
        history_per_invoice: 1,
        history_rows: 1,
        refusal_rows: 1,
    };
    for bad in [
        Vec::new(),
        b"hello".to_vec(),
        vec![b'x'; 4096],
        other_program,
    ] {
        fs::write(&path, &bad).expect("written");
        let opened = sqlite::SqliteStore::open(
            path.clone(),
            Duration::from_secs(1),
            bounds,
            (Checkpoint::AfterAnswers, LogLimits::WIDE),
        );
        assert!(matches!(opened.err(), Some(OpenError::Foreign { .. })));
        assert_eq!(fs::read(&path).expect("read"), bad);
    }
}

/// A command has no bell to ring: what it made due is begun because the writer of the daemon sees that somebody committed.
#[tokio::test]
async fn the_outbox_is_woken_by_what_another_process_commits() {
    let directory = tempfile::tempdir().expect("a directory");
    let (ours, theirs) = (open(&directory), open(&directory));
    let (owed, stranger) = (ours.bells().owed, theirs.writer());
    // More rounds than there can be rings for anything else: the first look, and what the opening stored.
    for round in 0..4 {
        let noted = stranger.note(&SERVING_SINCE, &round).await;
        noted.expect("stored");
        let rung = tokio::time::timeout(PATIENCE, owed.rung()).await;
        assert!(rung.is_ok(), "round {round}");
    }
}

/// What is at stake: the writer keeps invoices in memory. One that another process has written to in between must be read
/// again, or its payment is told twice.
#[tokio::test]
async fn what_another_process_recorded_is_what_is_recorded_upon() {
    let directory = tempfile::tempdir().expect("a directory");
    let (ours, theirs) = (open(&directory), open(&directory));
    let key = opened(&ours.writer(), "a").await;
    let told = |status, at| said(Source::Notification, "id-a", status, at);
    let mut events = Vec::new();
    for (ledger, status, at) in [
        (&ours, "wip", 10),
        (&theirs, "paid", 20),
        (&ours, "paid", 20),
    ] {
        let recorded = ledger.writer().record(key, told(status, at)).await;
        events.push(recorded.expect("stored").event.is_some());
    }
    assert_eq!(events, [true, true, false]);
}
