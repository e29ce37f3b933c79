//! A refused opening that begins anew in its own row (A32): the ledger's half of a create that waits for requisites.

use super::*;

/// The same opening once more, a minute later.
fn again(first: &Intent) -> Intent {
    Intent {
        now_ms: first.now_ms + 60_000,
        deadline_ms: first.deadline_ms + 60_000,
        ..first.clone()
    }
}

/// A row whose request was refused, and what it was begun with.
async fn refused(writer: &Writer, order: &str) -> (InvoiceKey, Intent) {
    let first = intent(writer, order);
    let Ok(Begun::Fresh(key)) = writer.begin_opening(first.clone()).await else {
        panic!("not fresh");
    };
    let full = Settled::Refused("no requisites".into());
    let (row, _) = writer.settle_opening(key, full).await.expect("stored");
    assert_eq!(row.opening, Opening::Refused);
    (key, first)
}

#[tokio::test]
async fn a_refused_row_begins_anew_and_its_age_with_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let (writer, reader) = (ledger.writer(), ledger.reader());
    let (key, first) = refused(&writer, "a").await;
    let wish = again(&first);
    let begun = writer.begin_opening(wish.clone()).await;
    assert!(matches!(begun, Ok(Begun::Fresh(same)) if same == key));
    let row = reader.invoice(key).await.expect("read").expect("there");
    assert_eq!((row.opening, row.opening_note), (Opening::Creating, None));
    assert_eq!(
        (row.created_ms, row.creator_deadline_ms),
        (wish.now_ms, wish.deadline_ms)
    );
    assert!(row.creator.is_some(), "somebody else sees it under way");
    let other = writer.begin_opening(intent(&writer, "a")).await;
    assert!(matches!(other, Ok(Begun::BeingCreated(_))));
    // The token it was written with first is the one that is compared.
    let watched = reader.watched(first.reference).await.expect("read");
    assert!(watched.is_some_and(|watched| watched.token.is_some()));
}

#[tokio::test]
async fn a_row_that_is_no_longer_refused_is_not_opened_twice() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let (writer, reader) = (ledger.writer(), ledger.reader());
    let insisting = |first: &Intent| {
        let mut wish = again(first);
        wish.wanted.anew = true;
        wish
    };
    // The service said no, and has it all the same.
    let (key, first) = refused(&writer, "a").await;
    let told = said(Source::Notification, "id-a", "new", 1);
    writer.record(key, told).await.expect("stored");
    let row = reader.invoice(key).await.expect("read").expect("there");
    assert_eq!(row.opening, Opening::Answered);
    let begun = writer.begin_opening(insisting(&first)).await;
    assert!(matches!(begun, Ok(Begun::Standing(row)) if row.key == key));
    // Nor in another mode, in a row of its own, which is what falling back means.
    let mut redirect = intent(&writer, "a");
    (redirect.wanted.mode, redirect.wanted.anew) = (Mode::Redirect, true);
    redirect.instead_of = Some(first.reference.clone());
    let begun = writer.begin_opening(redirect).await;
    assert!(matches!(begun, Ok(Begun::Standing(row)) if row.key == key));
    // For another create of the order as well.
    let other = writer.begin_opening(intent(&writer, "a")).await;
    assert!(matches!(other, Ok(Begun::Standing(_))), "{other:?}");

    // Nobody knows what became of the second try.
    let (key, first) = refused(&writer, "b").await;
    let begun = writer.begin_opening(again(&first)).await;
    assert!(matches!(begun, Ok(Begun::Fresh(_))));
    let lost = Settled::Unknown("no answer".into());
    writer.settle_opening(key, lost).await.expect("stored");
    let begun = writer.begin_opening(insisting(&first)).await;
    assert!(matches!(begun, Ok(Begun::Unknown(row)) if row.key == key));

    // Somebody else opened the order's invoice meanwhile.
    let (_, first) = refused(&writer, "c").await;
    let key = opened(&writer, "c").await;
    let begun = writer.begin_opening(again(&first)).await;
    assert!(matches!(begun, Ok(Begun::Standing(row)) if row.key == key));
}
