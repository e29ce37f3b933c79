//! `tilld delivery list`: what narrows it, and by which times.

use serde_json::Value;

use super::{NOTE, delivery};
use crate::harness::Setup;

#[test]
fn a_list_is_narrowed_by_all_that_is_said() {
    let world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], NOTE)
        .noting_hook("log", &["*"])
        .start();
    for order in ["A-1", "A-2"] {
        world.pay(order);
    }
    world.settle();
    let list = |args: &[&str]| -> Vec<String> {
        let ran = delivery(&world, &[&["list", "--json"], args].concat(), 0);
        let row = |line: &str| {
            let row: Value = serde_json::from_str(line).expect("JSON");
            let text = |field| {
                row.get(field)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            format!("{} {} {}", text("order_id"), text("hook"), text("kind"))
        };
        ran.stdout.lines().map(row).collect()
    };
    assert_eq!(list(&[]).len(), 6);
    assert_eq!(
        list(&["--hook=fulfil"]),
        ["A-2 fulfil paid", "A-1 fulfil paid"]
    );
    assert_eq!(
        list(&["--order=A-1", "--state=done", "--hook=log"]),
        ["A-1 log paid", "A-1 log opened"]
    );
    assert_eq!(list(&["--order=A-1", "--limit=1"]).len(), 1);
    assert!(list(&["--order=none"]).is_empty() && list(&["--state=held"]).is_empty());
    // The times of events: of one exactly, from then on and before it.
    let paid_at = world.value("SELECT at FROM events WHERE kind = 'paid' AND order_id = 'A-2'");
    let (since, until) = (format!("--since={paid_at}"), format!("--until={paid_at}"));
    assert!(list(&[&since]).contains(&"A-2 fulfil paid".to_owned()));
    assert!(!list(&[&until]).contains(&"A-2 fulfil paid".to_owned()));
    assert_eq!(list(&[&since, &until]), Vec::<String>::new());
    assert_eq!(list(&["--since=2h", "--order=A-2"]).len(), 3);
    assert_eq!(list(&["--until=2h"]), Vec::<String>::new());
    assert_eq!(list(&["--since=2001-01-01", "--until=2200-01-01"]).len(), 6);
    let told = delivery(&world, &["list", "--limit=2"], 0);
    assert!(
        told.stdout.starts_with("EVENT") && told.stdout.lines().count() == 3,
        "{told:?}"
    );
    assert!(
        told.stderr
            .contains("2 shown, and there are more. Go on with: tilld "),
        "{told:?}"
    );
    assert_eq!(delivery(&world, &["list", "--limit=6"], 0).stderr, "");
    let wrong = delivery(&world, &["list", "--since=yesterday"], 2);
    assert!(wrong.stderr.contains("`2h` for two hours ago"), "{wrong:?}");
    let help = delivery(&world, &["list", "--help"], 0).stdout;
    assert!(help.contains("the beginning of that day, UTC"), "{help}");
}
