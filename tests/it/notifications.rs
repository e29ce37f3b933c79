//! Notifications as a sender experiences them, and what comes of them.

use crate::harness::Setup;

#[test]
fn a_paid_notification_runs_the_script_once() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    let invoice = world.create("A-1");
    let invoice = world.dictate(&invoice, "paid");
    let answer = world.tell(&invoice, &invoice.object.to_string());
    assert_eq!(answer.status_line, "HTTP/1.1 200 OK");
    world.settle();
    let event = world.value("SELECT event_id FROM events WHERE kind = 'paid'");
    assert_eq!(world.hook_log("fulfil"), [format!("{event} paid A-1 1")]);
}
