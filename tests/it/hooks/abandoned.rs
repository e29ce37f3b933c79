//! Who is told that a delivery was given up: what exactly, when, how often, and that it is never taken for the event.

use std::fs;

use serde_json::{Value, json};

use super::{WAIT, go, results, state};
use crate::harness::{PATIENCE, Setup, World, wait_until};

/// Notes what it is told, and keeps the document.
const ALERT: &str = "cat > \"$1.$TILLD_ABANDONED_HOOK.json\"\n\
    echo \"$TILLD_EVENT $TILLD_EVENT_ID $TILLD_ORDER_ID $TILLD_ABANDONED_HOOK $TILLD_ABANDONED_EVENT_ID \
    $TILLD_ABANDONED_RESULT\" >> \"$1\"";

/// Fails for good, and says why.
const BROKEN: &str = "echo \"$TILLD_EVENT\" >> \"$1\"; echo 'no stock' >&2; exit 65";

/// What the alert was told of a hook's giving up.
fn document(world: &World, hook: &str) -> Value {
    let file = format!("hooks/on_abandoned.log.{hook}.json");
    let text = fs::read_to_string(world.dir().join(file)).expect("written");
    serde_json::from_str(&text).expect("JSON")
}

fn event_id(world: &World, order: &str) -> String {
    let query = format!("SELECT event_id FROM events WHERE kind = 'paid' AND order_id = '{order}'");
    world.value(&query)
}

#[test]
fn who_is_to_know_is_told_what_was_given_up_and_why() {
    let world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0, 1]")
        .hook("fulfil", &["paid"], BROKEN)
        .hook("mail", &["paid", "*"], "[ $TILLD_EVENT != paid ] || exit 1")
        .noting_hook("log", &["*"])
        .on_abandoned(ALERT)
        .start();
    world.pay("A-1");
    world.settle();
    let event = event_id(&world, "A-1");
    let mut told = world.hook_log("on_abandoned");
    told.sort();
    let wanted = [
        format!("abandoned {event}-abandoned-fulfil-1 A-1 fulfil {event} exit 65"),
        format!("abandoned {event}-abandoned-mail-2 A-1 mail {event} exit 1"),
    ];
    assert_eq!(told, wanted);
    let document = document(&world, "fulfil");
    for (pointer, value) in [
        ("/event/kind", json!("abandoned")),
        ("/event/id", json!(format!("{event}-abandoned-fulfil-1"))),
        ("/event/outcome", json!("paid")),
        ("/event/previous_outcome", json!("paid")),
        ("/event/source", Value::Null),
        ("/service", Value::Null),
        ("/hook", json!("on_abandoned")),
        ("/attempt", json!(1)),
        ("/invoice/order_id", json!("A-1")),
        (
            "/abandoned",
            json!({ "hook": "fulfil", "event_id": event, "kind": "paid", "attempts": 1,
                "result": "exit 65", "stderr": "no stock\n" }),
        ),
    ] {
        assert_eq!(
            document.pointer(pointer),
            Some(&value),
            "{pointer}: {document}"
        );
    }
    // It is a delivery like any other, and no event.
    let rows = world.sql(
        "SELECT hook, kind, state, attempts FROM deliveries WHERE hook LIKE 'on_abandoned%' ORDER BY hook",
    );
    assert_eq!(
        rows,
        [
            ["on_abandoned:fulfil", "paid", "done", "1"],
            ["on_abandoned:mail", "paid", "done", "1"]
        ]
    );
    let kinds: Vec<String> = world.hook_log("log");
    assert_eq!(kinds.len(), 2, "{kinds:?}");
    let shown = world
        .tilld(&["delivery", "show", &event])
        .ends_with(0)
        .stdout;
    assert!(shown.contains("on_abandoned:fulfil"), "{shown}");
}

#[test]
fn nobody_is_told_that_nobody_could_be_told_nor_when_nobody_is_named() {
    let script = "echo \"$TILLD_ATTEMPT $TILLD_EVENT_ID\" >> \"$1\"; exit 1";
    let mut world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0, 1]")
        .hook("fulfil", &["paid"], BROKEN)
        .on_abandoned(script)
        .start();
    world.pay("A-1");
    world.settle();
    assert_eq!(results(&world, "on_abandoned:fulfil"), ["exit 1", "exit 1"]);
    assert_eq!(state(&world, "on_abandoned:fulfil"), "abandoned");
    let id = format!("{}-abandoned-fulfil-1", event_id(&world, "A-1"));
    let wanted = [format!("1 {id}"), format!("2 {id}")];
    assert_eq!(world.hook_log("on_abandoned"), wanted);
    assert_eq!(world.value("SELECT count(*) FROM deliveries"), "2");

    let file = world.dir().join("config.toml");
    let config = fs::read_to_string(&file).expect("readable");
    let (rest, _) = config.split_once("[on_abandoned]").expect("configured");
    fs::write(&file, rest).expect("written");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    world.start_serve();
    world.pay("A-2");
    world.settle();
    assert_eq!(world.value("SELECT count(*) FROM deliveries"), "3");
}

#[test]
fn what_is_retried_and_given_up_again_is_told_again_under_another_id() {
    let mut world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0]")
        .hook("fulfil", &["paid"], BROKEN)
        .on_abandoned(ALERT)
        .start();
    world.pay("A-1");
    world.settle();
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let event = event_id(&world, "A-1");
    world
        .tilld(&["delivery", "retry", &event, "--hook=fulfil"])
        .ends_with(0);
    world.start_serve();
    wait_until(PATIENCE, "the second alert", || {
        world.hook_log("on_abandoned").len() == 2
    });
    world.settle();
    let wanted = [1, 2].map(|attempts| {
        format!("abandoned {event}-abandoned-fulfil-{attempts} A-1 fulfil {event} exit 65")
    });
    assert_eq!(world.hook_log("on_abandoned"), wanted);
    assert_eq!(results(&world, "on_abandoned:fulfil"), ["exit 0", "exit 0"]);
}

#[test]
fn an_alert_that_hangs_holds_back_no_delivery_of_the_hook_that_gave_up() {
    let script = format!("echo begins >> \"$1\"; {WAIT}; echo ends >> \"$1\"");
    let world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0]")
        .hook(
            "fulfil",
            &["paid"],
            "echo $TILLD_ORDER_ID >> \"$1\"; [ $TILLD_ORDER_ID != bad ] || exit 65",
        )
        .on_abandoned(&script)
        .start();
    world.pay("bad");
    wait_until(PATIENCE, "the alert to hang", || {
        !world.hook_log("on_abandoned").is_empty()
    });
    world.pay("good");
    wait_until(PATIENCE, "the other order", || {
        world.hook_log("fulfil") == ["bad", "good"]
    });
    assert_eq!(world.hook_log("on_abandoned"), ["begins"]);
    fs::write(go(&world, "on_abandoned"), "").expect("written");
    world.settle();
    assert_eq!(world.hook_log("on_abandoned"), ["begins", "ends"]);
}

#[test]
fn an_alert_cut_off_by_a_crash_is_told_once_more() {
    let script = format!("echo \"$TILLD_EVENT_ID $TILLD_ATTEMPT\" >> \"$1\"; {WAIT}");
    let mut world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0]")
        .hook("fulfil", &["paid"], BROKEN)
        .on_abandoned(&script)
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "the alert to begin", || {
        !world.hook_log("on_abandoned").is_empty()
    });
    world.kill9_serve();
    world.start_serve();
    fs::write(go(&world, "on_abandoned"), "").expect("written");
    world.settle();
    let id = format!("{}-abandoned-fulfil-1", event_id(&world, "A-1"));
    let wanted = [format!("{id} 1"), format!("{id} 2")];
    assert_eq!(world.hook_log("on_abandoned"), wanted);
    assert_eq!(
        results(&world, "on_abandoned:fulfil"),
        ["interrupted", "exit 0"]
    );
}

#[test]
fn a_trial_of_the_alert_tells_what_was_given_up() {
    let world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0]")
        .hook("fulfil", &["paid"], BROKEN)
        .on_abandoned("cat >> \"$1\"")
        .start();
    let none = world.create("A-0");
    world.pay("A-1");
    world.settle();
    let event = event_id(&world, "A-1");
    let test = ["hook", "test", "on_abandoned", "--json"];
    let sample = world.tilld(&test).ends_with(0).json();
    let at = |report: &Value, pointer: &str| report.pointer(pointer).cloned().unwrap_or_default();
    assert_eq!(at(&sample, "/sample"), json!(true));
    assert_eq!(at(&sample, "/document/event/kind"), json!("abandoned"));
    assert_eq!(
        at(&sample, "/document/abandoned/hook"),
        json!("sample-hook")
    );
    let real = world.tilld(&[&test[..], &["--order", "A-1"]].concat());
    let real = real.ends_with(0).json();
    assert_eq!(at(&real, "/sample"), json!(false));
    assert_eq!(at(&real, "/document/abandoned/event_id"), json!(event));
    assert_eq!(
        at(&real, "/variables/TILLD_ABANDONED_RESULT"),
        json!("exit 65")
    );
    let id = format!("{event}-abandoned-fulfil-1");
    assert_eq!(at(&real, "/variables/TILLD_EVENT_ID"), json!(id));
    let none = world.tilld(&[&test[..], &["--order", &none.order]].concat());
    assert!(
        none.ends_with(3)
            .stderr
            .contains("no delivery of order `A-0` is given up")
    );
    assert_eq!(world.value("SELECT count(*) FROM deliveries"), "2");
}
