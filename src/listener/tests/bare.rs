//! The bare path, for invoices whose notificationUrl was not made here, and what is kept of a refused POST.

use super::*;

/// The bare path's answers are those of an invoice's own address, to the byte (A01, A15).
#[tokio::test]
async fn the_bare_path_answers_as_an_address_of_its_own() {
    let running = Running::start().await;
    let bare = |target: &'static str| format!("POST /pay/n{target}");
    let other_id = BODY.replace("i-1", "i-2");
    let by_order = BODY.replace("i-1\"", "i-2\",\"internalId\":\"order-7\"");
    for target in ["", "/", "?x=1"] {
        let answer = running.send(&bare(target), "{T}\r\n", BODY).await;
        assert_eq!(answer, running.post(REF, "{T}\r\n", BODY).await);
        assert_eq!(status(&answer), "200", "{target}");
    }
    assert_eq!(running.book.recorded().len(), 6);
    assert_eq!(running.book.refusals(), []);

    let own = running.post(REF, "", BODY).await;
    assert_eq!(status(&own), "401");
    running.book.refusals();
    for (headers, body, refusal) in [
        ("", BODY, (Some(7), "token_missing")),
        (
            "x-notification-token: wrong\r\n",
            BODY,
            (Some(7), "token_wrong"),
        ),
        (
            "{T}\r\nx-notification-token: x\r\n",
            BODY,
            (Some(7), "token_doubled"),
        ),
        ("{T}\r\n", other_id.as_str(), (None, "invoice_unknown")),
        ("", other_id.as_str(), (None, "invoice_unknown")),
        // Found by its order; this ledger then finds that the id is another's.
        ("{T}\r\n", by_order.as_str(), (Some(7), "not_this_invoice")),
        ("", by_order.as_str(), (Some(7), "token_missing")),
    ] {
        let answer = running.send(&bare(""), headers, body).await;
        assert_eq!(answer, own, "{headers} {body}");
        assert_eq!(running.book.refusals(), [refusal]);
    }
    // The shape comes before everything else, and a body of no shape names nobody.
    let misshapen = running.send(&bare(""), "{T}\r\n", "[]").await;
    assert_eq!(status(&misshapen), "400");
    assert_eq!(running.book.refusals(), [(None, "body_not_an_object")]);
    assert_eq!(misshapen, running.post(REF, "{T}\r\n", "[]").await);
    running.book.refusals();
    running.book.0.unreadable.store(true, Ordering::SeqCst);
    let busy = running.send(&bare(""), "{T}\r\n", BODY).await;
    assert_eq!(status(&busy), "503");
    assert_eq!(running.book.refusals(), [(None, "ledger_unavailable")]);
    assert_eq!(running.book.recorded().len(), 6);
}

/// Nothing that could be a secret is kept: no value, no body, no ref.
#[tokio::test]
async fn a_refusal_keeps_names_and_hashes() {
    let running = Running::start().await;
    let headers = "X-Secret: hidden-value\r\nAuthorization: Bearer hidden-value\r\n";
    running.post(REF, headers, BODY).await;
    running.post("hidden-value", "", "hidden-value").await;
    running.send("POST /pay/n", "", BODY).await;
    running.post(REF, "content-encoding: gzip\r\n", BODY).await;
    let kept = std::mem::take(&mut *running.book.0.refusals.lock().expect("not poisoned"));
    let text = format!("{kept:?}");
    assert!(
        !text.contains("hidden-value") && !text.contains(REF),
        "{text}"
    );
    let told: Vec<_> = kept
        .iter()
        .map(|refusal| (refusal.ref_hash.as_str(), refusal.body_bytes))
        .collect();
    let own = sha256_hex(REF.as_bytes());
    let own = own.get(..8).expect("longer");
    let strange = sha256_hex(b"hidden-value");
    let strange = strange.get(..8).expect("longer");
    // A body that was not read has no size.
    let wanted = [(own, BODY.len()), (strange, 12), ("", BODY.len()), (own, 0)];
    assert_eq!(told, wanted);
    let names: Vec<_> = kept.iter().map(|refusal| &refusal.header_names).collect();
    let usual = "connection,content-length,host";
    assert_eq!(
        names,
        [
            "authorization,connection,content-length,host,x-secret",
            usual,
            usual,
            "connection,content-encoding,content-length,host"
        ]
    );
}
