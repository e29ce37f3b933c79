//! `tilld invoice seen`: what a person has looked at asks for nobody any more, and nothing else is changed by it.

use serde_json::json;

use crate::harness::{PATIENCE, Setup, wait_until};

#[test]
fn what_was_seen_to_needs_nobody_until_something_new_does() {
    let world = Setup::new().quiet().noting_hook("all", &["*"]).start();
    let less = world.create("A-1");
    let less = world.dictate_fields(&less, &json!({ "status": "paid", "amount": "500" }));
    assert_eq!(world.tell_as_it_is(&less).status, 200);
    world.settle();
    world.tilld(&["status"]).ends_with(16);
    let told = world.hook_log("all").len();
    let seen = world.tilld(&["invoice", "seen", "A-1"]).ends_with(0);
    assert!(
        seen.stderr.contains("order A-1: mismatch is seen to"),
        "{seen:?}"
    );
    world.tilld(&["status"]).ends_with(0);
    assert_eq!(world.invoice("A-1", "outcome"), "mismatch");
    let explained = world.tilld(&["explain", "A-1"]).ends_with(0).stdout;
    assert!(
        explained.contains("a person has seen to what needed one"),
        "{explained}"
    );
    // The same claim again is no news, and no hook was told of the look.
    assert_eq!(world.tell_as_it_is(&less).status, 200);
    wait_until(PATIENCE, "it to be heard", || {
        world.value("SELECT count(*) FROM heard WHERE source = 'notification'") == "2"
    });
    world.tilld(&["status"]).ends_with(0);
    assert_eq!(world.hook_log("all").len(), told);

    let none = world.tilld(&["invoice", "seen", "A-1"]).ends_with(1);
    assert!(
        none.stderr.contains("hint: nothing of it needs a person"),
        "{none:?}"
    );
    world.tilld(&["invoice", "seen", "A-9"]).ends_with(3);
    // What goes by what settles it stays.
    let odd = world.create("A-2");
    let odd = world.dictate(&odd, "ODD");
    assert_eq!(world.tell_as_it_is(&odd).status, 200);
    let kept = world.tilld(&["invoice", "seen", "A-2"]).ends_with(1);
    assert!(
        kept.stderr
            .contains("hint: unsorted_status goes by what settles it"),
        "{kept:?}"
    );
}
