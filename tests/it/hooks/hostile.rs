//! Text from strangers: an order id or status that looks like an option, a command, a path, a line of a log or a terminal's
//! language, and fields far larger than any argument may be. The hook runs, its arguments are the merchant's own, and
//! nothing that is shown to a person is forged (A37, A39).

use std::fs;

use serde_json::{Value, json};

use super::results;
use crate::harness::{Issued, Ran, Setup, World};

/// Order ids that are taken to the letter.
const ORDERS: [&str; 6] = [
    "--config=/x",
    "-rf",
    "$(touch pwned)",
    "a; touch pwned",
    "../../x",
    "`touch pwned` && %s%n 'x\" *",
];

/// Statuses the service might send; nothing limits its alphabet.
const STATUSES: [&str; 7] = [
    "--config=/x",
    "-rf",
    "$(touch pwned)",
    "../../x",
    "a\n2025-01-01 ERROR forged",
    "\u{1b}[2J\u{1b}]0;forged\u{7}",
    "\u{7f}\r\u{202e}\0",
];

/// Notes how it was called and what it was told, and where it would be seen if something was done on the way.
const NOTES: &str = r#"
    printf '%s\n' "$(tr '\0' ' ' < /proc/$$/cmdline)" >> "$1"
    printf '%s|%s\n' "$TILLD_ORDER_ID" "$TILLD_STATUS" >> "$1.told"
    [ ! -e pwned ] && [ ! -e "$HOME/pwned" ] || echo PWNED >> "$1"
"#;

/// Opens an invoice whose order id may look like a flag.
fn open(world: &World, order: &str) -> Ran {
    let order = format!("--order={order}");
    world.tilld(&[
        "invoice",
        "create",
        "--json",
        &order,
        "--amount=599.80",
        "--currency=RUB",
        "--method=SBP",
    ])
}

/// Nothing in it speaks to a terminal, and no line was begun by a stranger.
#[track_caller]
fn is_harmless(what: &str, text: &str) {
    let spoken = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
    assert!(!text.chars().any(spoken), "{what}: {text:?}");
    let forged = text
        .lines()
        .any(|line| line.trim_start().starts_with("2025-01-01"));
    assert!(!forged && !text.contains('\u{202e}'), "{what}: {text:?}");
}

#[test]
fn what_strangers_write_is_no_option_no_command_and_no_line_of_a_log() {
    let world = Setup::new().quiet().hook("fulfil", &["*"], NOTES).start();
    for order in ORDERS {
        open(&world, order).ends_with(0);
        let issued = world.issued(order).expect("the service has it");
        let paid = world.dictate(&issued, "paid");
        assert_eq!(world.tell_as_it_is(&paid).status, 200);
    }
    let issued = world.create("A-1");
    for (number, status) in STATUSES.iter().enumerate() {
        let body = issued.saying(status, &issued.at_us(number + 1));
        assert_eq!(world.tell(&issued, &body).status, 200, "{status:?}");
    }
    world.settle();

    let hooks = world.dir().join("hooks");
    let called = format!("/bin/sh {0}/fulfil.sh {0}/fulfil.log ", hooks.display());
    let runs = world.hook_log("fulfil");
    assert!(runs.iter().all(|line| *line == called), "{runs:?}");
    let events = world.value("SELECT count(*) FROM events");
    assert_eq!(runs.len().to_string(), events);
    for status in STATUSES {
        let heard = world.sql("SELECT status FROM events WHERE order_id = 'A-1'");
        assert!(
            heard.concat().iter().any(|word| word == status),
            "{status:?}: {heard:?}"
        );
    }
    let told = fs::read_to_string(hooks.join("fulfil.log.told")).expect("written");
    for order in ORDERS {
        assert!(told.contains(&format!("{order}|paid\n")), "{order}: {told}");
    }
    assert!(
        told.contains("A-1|a\u{fffd}2025-01-01 ERROR forged\n"),
        "{told}"
    );
    assert!(
        told.contains("A-1|\u{fffd}[2J\u{fffd}]0;forged\u{fffd}\n"),
        "{told}"
    );
    assert!(!world.dir().join("pwned").exists());
    nothing_shown_is_forged(&world);
}

fn nothing_shown_is_forged(world: &World) {
    is_harmless("the daemon's log", &world.serve_log());
    let event = world.value("SELECT event_id FROM events WHERE status LIKE 'a%forged'");
    let mut commands = vec![
        vec!["invoice", "list"],
        vec!["invoice", "show", "A-1"],
        vec!["delivery", "list"],
        vec!["delivery", "show", &event],
        vec!["explain", "A-1"],
        vec!["status"],
        vec!["hook", "test", "fulfil", "--order", "A-1"],
    ];
    commands.extend(ORDERS.map(|order| vec!["invoice", "show", "--", order]));
    for command in commands {
        let ran = world.tilld(&command);
        // `status` ends with 16: statuses that no list sorts are for a person to look at.
        assert!([0, 5, 16].contains(&ran.code), "{command:?}: {ran:?}");
        is_harmless(&command.join(" "), &ran.stdout);
        is_harmless(&command.join(" "), &ran.stderr);
    }
}

#[test]
fn an_order_id_with_control_characters_is_refused_before_anybody_hears_of_it() {
    let world = Setup::new().quiet().start();
    for order in ["a\n2025-01-01 ERROR forged", "\u{1b}[2J", "\u{7f}"] {
        let refused = open(&world, order).ends_with(2);
        is_harmless("the refusal", &refused.stderr);
    }
    assert_eq!(world.requests("create"), 0);
}

/// 200 KB, beyond what Linux lets a single argument or variable be, and beyond what a pipe holds.
const HUGE: usize = 200_000;

fn paid_hugely(issued: &Issued) -> Value {
    let requisites = json!({ "bankName": "x".repeat(HUGE) }).to_string();
    issued.with(&json!({
        "status": "paid", "updatedAt": issued.at(1),
        "merchantName": "y".repeat(HUGE), "dealRequisites": requisites,
    }))
}

#[test]
fn fields_larger_than_an_argument_may_be_keep_no_hook_from_running() {
    let world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0]")
        .hook(
            "reads",
            &["paid"],
            "env > \"$1.env\"; cat > \"$1.stdin\"; cat payload.json > \"$1.file\"",
        )
        .hook("ignores", &["paid"], "exit 0")
        .hook("closes", &["paid"], "exec 0<&-; sleep 0.1")
        .start();
    let issued = world.create("A-1");
    let body = paid_hugely(&issued).to_string();
    assert_eq!(world.tell(&issued, &body).status, 200);
    world.settle();
    for hook in ["reads", "ignores", "closes"] {
        assert_eq!(results(&world, hook), ["exit 0"], "{hook}");
    }
    let read = |end: &str| {
        let file = world.dir().join(format!("hooks/reads.log.{end}"));
        fs::read_to_string(file).expect("written")
    };
    let document: Value = serde_json::from_str(&read("stdin")).expect("a whole document");
    let length = |pointer: &str| document.pointer(pointer)?.as_str().map(str::len);
    assert_eq!(length("/service/merchantName"), Some(HUGE));
    assert!(length("/service/dealRequisites") > Some(HUGE), "as it came");
    assert_eq!(read("file"), read("stdin"));
    let longest = read("env").lines().map(str::len).max();
    assert!(longest < Some(5_000), "variables are short: {longest:?}");
}
