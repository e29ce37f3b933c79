//! The daemon's own status page, as the merchant meets it in a browser: on a phone and a desktop, light and dark, by keyboard
//! and for a screen reader.

use serde_json::json;

use super::driver;
use super::inspect::{IN_ENGLISH, Inspector};
use crate::admin::{place, setup};
use crate::harness::{PATIENCE, skip, wait_until};

#[test]
fn the_status_page_can_be_read_by_all() {
    if let Some(lack) = driver::lack() {
        skip!("{lack}");
    }
    let world = setup()
        .set("outbox.schedule_s", "[0]")
        .hook("fails", &["paid"], "exit 1")
        .start();
    world.pay("A-told");
    let less = world.create("A-2");
    let less = world.dictate_fields(&less, &json!({ "status": "paid", "amount": "500" }));
    assert_eq!(world.tell_as_it_is(&less).status, 200);
    world.faults(&json!({ "lose": true }));
    let lost =
        world.create("an-order-with-a-long-name-that-has-no-place-to-break-at-all-0123456789");
    world.dictate(&lost, "paid");
    wait_until(PATIENCE, "it to be found", || {
        world.value("SELECT count(*) FROM invoices WHERE found_by = 'poll'") == "1"
    });
    world.settle();
    let inspector = Inspector::new(IN_ENGLISH);
    let person = &inspector.person;
    person.open(&format!("http://{}/", place(&world)));
    assert!(
        person.title().contains("need a person · tilld"),
        "{}",
        person.title()
    );
    let open = "document.querySelectorAll('details').forEach(one => { one.open = true })";
    person.script(open, &[]);
    inspector.look_over("status-page");
    let scripts =
        "return document.scripts.length + document.querySelectorAll('[onclick], [style]').length";
    assert_eq!(person.script(scripts, &[]), 0);
    let complaints = person.complaints();
    assert!(complaints.is_empty(), "{complaints:?}");
}
