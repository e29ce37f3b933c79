//! Texts of the service that hold what is not seen. What is at stake: a status that looks like `paid` is none, and whoever reads a
//! page, a terminal or the answer of a socket must see that.

use crate::admin::{get, setup};

/// It looks like `paid` on a terminal and in a browser.
const STATUS: &str = "p\u{ad}a\u{200d}id\u{fe0f}";
/// How it is shown.
const SHOWN: &str = "p\\u00ada\\u200did\\ufe0f";

#[test]
fn a_status_that_looks_like_paid_is_seen_to_be_none() {
    let world = setup().quiet().noting_hook("fulfil", &["paid"]).start();
    let issued = world.create("A-1").as_if(STATUS);
    assert_eq!(world.tell_as_it_is(&issued).status, 200);
    assert_eq!(world.invoice("A-1", "outcome"), "open");
    let page = get(&world, "/").body;
    let order = world.call("GET", "/v1/orders/A-1", "");
    let status = order.json().get("status").cloned();
    assert_eq!(status, Some(STATUS.into()), "a program has the exact text");
    let shown = [
        ("the page", page),
        ("an order", order.body),
        ("invoices", world.call("GET", "/v1/invoices", "").body),
        ("events", world.call("GET", "/v1/events?after=0", "").body),
        ("the status", world.call("GET", "/v1/status", "").body),
        (
            "a terminal",
            world.tilld(&["invoice", "list"]).ends_with(0).stdout,
        ),
        (
            "explain",
            world.tilld(&["explain", "A-1"]).ends_with(0).stdout,
        ),
        (
            "the terminal's status",
            world.tilld(&["status"]).ends_with(16).stdout,
        ),
    ];
    for (place, text) in &shown {
        assert!(text.contains(SHOWN), "{place}: {text}");
        for hidden in ['\u{ad}', '\u{200d}', '\u{fe0f}'] {
            assert!(!text.contains(hidden), "{place}: {text}");
        }
    }
    world.settle();
}

/// Between other words nobody sees a blank at the end.
#[test]
fn blanks_at_an_end_of_a_status_are_seen() {
    let world = setup().quiet().start();
    let issued = world.create("A-1").as_if("paid ");
    assert_eq!(world.tell_as_it_is(&issued).status, 200);
    assert_eq!(world.invoice("A-1", "outcome"), "open");
    let page = get(&world, "/").body.replace("&quot;", "\"");
    let command = |args: &[&str], code| world.tilld(args).ends_with(code).stdout;
    for (place, text) in [
        ("the page", page),
        ("invoices", command(&["invoice", "list"], 0)),
        ("the invoice", command(&["invoice", "show", "A-1"], 0)),
        ("events", command(&["event", "list"], 0)),
        ("explain", command(&["explain", "A-1"], 0)),
        ("status", command(&["status"], 16)),
    ] {
        assert!(text.contains("\"paid \""), "{place}: {text}");
    }
}
