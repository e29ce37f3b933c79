//! `tilld refusal list`: an operator sees why notifications are refused, and nobody sees anything secret by it.

use serde_json::{Value, json};

use crate::harness::{Issued, PATIENCE, Setup, World, request, wait_until};
use crate::shop::Shop;

/// Stands where a token may stand.
const HIDDEN: &str = "hidden-value-of-the-sender";

/// One refused notification for a known ref, one for an unknown ref, one on the bare path, in this order.
fn three_refused(world: &World) -> Issued {
    let invoice = world.create("A-1");
    let secret = [("X-Notification-Token", HIDDEN), ("X-Sent-By", HIDDEN)];
    let body = invoice.with(&json!({ "note": HIDDEN })).to_string();
    assert_eq!(world.notify(&invoice.reference, &secret, &body).status, 401);
    let strange = format!("{}?token={HIDDEN}", World::target(HIDDEN));
    for target in [strange, World::target("")] {
        let body = body.replace(&invoice.id, "inv-of-nobody");
        let answer = request(world.listen(), "POST", &target, &secret, &body);
        assert_eq!(answer.status, 401);
    }
    wait_until(PATIENCE, "the refusals to be written", || {
        world.value("SELECT count(*) FROM refusal") == "3"
    });
    invoice
}

fn lines(text: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).expect("JSON");
    text.lines().map(parse).collect()
}

#[test]
fn what_was_refused_is_listed_newest_first() {
    let world = Setup::new().quiet().start();
    let invoice = three_refused(&world);
    let list = |flags: &[&str]| {
        let args = [&["refusal", "list"], flags].concat();
        world.tilld(&args).ends_with(0)
    };
    let all = lines(&list(&["--json"]).stdout);
    let of = |field: &str| -> Vec<Value> {
        let value = |line: &Value| line.get(field).cloned().unwrap_or_default();
        all.iter().map(value).collect()
    };
    let reasons = ["invoice_unknown", "ref_unknown", "token_wrong"];
    assert_eq!(of("reason"), reasons);
    assert_eq!(of("order_id"), [json!(null), json!(null), json!("A-1")]);
    let ids = [json!(null), json!(null), json!(invoice.id)];
    assert_eq!(of("invoice_id"), ids);
    let (hashes, clients) = (of("ref_hash"), of("client"));
    // The first 8 hex digits of the SHA-256 of `hidden-value-of-the-sender`.
    assert_eq!(hashes.get(..2), Some(&[json!(null), json!("ade69036")][..]));
    assert_eq!(clients, ["127.0.0.1"; 3]);
    let names = json!([
        "content-length",
        "content-type",
        "host",
        "x-notification-token",
        "x-sent-by"
    ]);
    assert_eq!(of("headers").last(), Some(&names));
    assert_eq!(of("headers_left_out"), [0; 3]);

    let table = list(&[]).stdout;
    let mut rows = table.lines().map(str::split_whitespace);
    let heading: Vec<&str> = rows.next().expect("a heading").collect();
    assert_eq!(
        heading,
        [
            "TIME", "REASON", "ORDER", "REF", "CLIENT", "BYTES", "HEADERS"
        ]
    );
    let newest: Vec<&str> = rows.next().expect("a row").skip(1).take(3).collect();
    assert_eq!(newest, ["invoice_unknown", "-", "-"]);
    assert_eq!(rows.count(), 2);

    let count = |flags: &[&str]| list(flags).stdout.lines().skip(1).count();
    assert_eq!(count(&["--limit", "2"]), 2);
    assert_eq!(count(&["--order", "A-1"]), 1);
    assert_eq!(count(&["--reason", "ref_unknown"]), 1);
    assert_eq!(count(&["--since", "2001-01-01T00:00:00Z"]), 3);
    let late = list(&["--since", "2200-01-01T00:00:00Z", "--json"]);
    assert_eq!(late.stdout, "");
    assert!(late.stderr.contains("no such refused"), "{}", late.stderr);

    // Nowhere does it say what a sender wrote, nor a ref.
    let kept = format!("{:?}", world.sql("SELECT * FROM refusal"));
    for text in [kept, table, format!("{all:?}"), world.serve_log()] {
        assert!(!text.contains(HIDDEN), "{text}");
    }
    let shown = format!("{all:?}");
    assert!(!shown.contains(&invoice.reference), "{shown}");
}

#[test]
fn an_empty_list_says_so() {
    let shop = Shop::new("");
    shop.refused_invoice("1042");
    let said = shop.tilld(&["refusal", "list"], 0);
    assert_eq!(said.stdout, "");
    said.told(&["no refused notification in the ledger"]);
    for wrong in [["--reason", "token_lost"], ["--since", "yesterday"]] {
        let args = [&["refusal", "list"], &wrong[..]].concat();
        shop.tilld(&args, 2).told(&[wrong[1]]);
    }
}
