//! What lies at the ledger's path and is none.

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
            Checkpoint::AfterAnswers,
        );
        assert!(matches!(opened.err(), Some(OpenError::Foreign { .. })));
        assert_eq!(fs::read(&path).expect("read"), bad);
    }
}
