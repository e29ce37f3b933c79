//! `docs/operating.md`: the output it shows of `status` and of `explain` is the program's own, but for times and other figures.

use serde_json::json;

use super::{example, plain};
use crate::harness::{PATIENCE, Setup, World, wait_until};

/// Fails for order 1041 always, and for order 1042 once.
const FULFIL: &str = r#"
case $TILLD_ORDER_ID-$TILLD_ATTEMPT in
1041-* | 1042-1) echo "shop.db is locked" >&2; exit 1 ;;
esac
"#;

fn stored(world: &World, query: &str, wanted: &str) {
    wait_until(PATIENCE, query, || {
        world
            .sql(query)
            .first()
            .is_some_and(|row| row.first().is_some_and(|value| value == wanted))
    });
}

#[test]
fn status_prints_what_the_page_shows() {
    let world = Setup::new()
        .plain()
        .set("poller.schedule", "[{ until_s = 86400, every_s = 60 }]")
        .set("outbox.schedule_s", "[0]")
        .hook("fulfil", &["paid"], FULFIL)
        .start();
    world.pay("1041");
    stored(&world, "SELECT state FROM deliveries", "abandoned");
    let unmapped = world.create("1040");
    world.tell_as_it_is(&world.dictate(&unmapped, "SETTLED"));
    let wrong = [("X-Notification-Token", "a-stranger-s-guess")];
    for headers in [&wrong[..], &wrong[..], &[]] {
        let answer = world.notify(&unmapped.reference, headers, &unmapped.object.to_string());
        assert_eq!(answer.status, 401);
    }
    world.pay("1039");
    world.create("1038");
    let state = world.state_dir().to_string_lossy().into_owned();
    let printed = || {
        let told = world.tilld(&["status"]).ends_with(16).stdout;
        plain(&told.replace(&state, "/var/lib/tilld"))
    };
    // Rejected requests are counted, and the doubtful invoice is polled, some moments later.
    let counted = |lines: &[String]| lines.iter().any(|line| line.starts_with("refused …"));
    let polled = |lines: &[String]| lines.iter().any(|line| line.starts_with("due no "));
    wait_until(PATIENCE, "both", || {
        let lines = printed();
        counted(&lines) && polled(&lines)
    });
    assert_eq!(printed(), plain(&example("status")));
}

#[test]
fn explain_prints_what_the_page_shows() {
    let world = Setup::new()
        .quiet()
        .plain()
        .set("outbox.schedule_s", "[0, 0]")
        .hook("fulfil", &["paid"], FULFIL)
        .start();
    let issued = world.create("1042");
    let wrong = [("X-Notification-Token", "a-stranger-s-guess")];
    let forged = world.notify(&issued.reference, &wrong, &issued.object.to_string());
    assert_eq!(forged.status, 401);
    let paid = world.dictate(&issued, "paid");
    let undated = paid.with(&json!({ "updatedAt": "yesterday" }));
    assert_eq!(world.tell(&paid, &undated.to_string()).status, 200);
    stored(&world, "SELECT state FROM deliveries", "done");
    stored(&world, "SELECT count(*) FROM refusal", "1");
    let told = world.tilld(&["explain", "1042"]).ends_with(0).stdout;
    assert_eq!(plain(&told), plain(&example("explain")));
}
