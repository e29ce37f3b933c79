//! `tilld explain` through the real program: one order's whole story, and why each thing was decided. What is at stake: the
//! question "why was this not paid" is answered by one command.

use serde_json::{Value, json};

use crate::harness::{Issued, PATIENCE, Ran, Setup, World, wait_until};
use crate::shop::Shop;

/// The lines of `tilld explain NAME --json`.
#[track_caller]
fn lines(world: &World, args: &[&str]) -> Vec<Value> {
    let all: Vec<&str> = ["explain", "--json"]
        .into_iter()
        .chain(args.iter().copied())
        .collect();
    let ran = world.tilld(&all).ends_with(0);
    assert!(ran.stderr.is_empty(), "{ran:?}");
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    ran.stdout.lines().map(parse).collect()
}

fn text<'v>(line: &'v Value, field: &str) -> &'v str {
    line.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// What each line is, with what tells it from others of its kind.
fn shape(lines: &[Value]) -> Vec<String> {
    lines
        .iter()
        .map(|line| {
            let told = match text(line, "what") {
                "observation" => ["source", "status", "decision", "why"].as_slice(),
                "event" => &["kind"],
                "delivery" => &["hook", "state"],
                "attempt" => &["hook", "result"],
                "refusal" => &["client"],
                _ => &[],
            };
            let mut words = vec![text(line, "what")];
            words.extend(told.iter().map(|field| text(line, field)));
            words.join(" ")
        })
        .collect()
}

/// The lines for people.
#[track_caller]
fn people(world: &World, args: &[&str]) -> String {
    let all: Vec<&str> = ["explain"]
        .into_iter()
        .chain(args.iter().copied())
        .collect();
    world.tilld(&all).ends_with(0).stdout
}

/// Waits until the ledger holds this many refusals: they are written after their answer.
fn refusals(world: &World, count: &str) {
    wait_until(PATIENCE, "the refusal to be kept", || {
        world.value("SELECT count(*) FROM refusal") == count
    });
}

/// A notification that is refused, then one that is doubted, which a poll resolves.
fn doubted(world: &World) -> Issued {
    let issued = world.create("A-1");
    let wrong = world.notify(
        &issued.reference,
        &[("X-Notification-Token", "not-this-one")],
        &issued.object.to_string(),
    );
    assert_eq!(wrong.status, 401);
    refusals(world, "1");
    // The nudge is asked about first, so that what follows comes in one order.
    wait_until(PATIENCE, "the nudge's poll", || {
        world.value("SELECT count(*) FROM heard WHERE source = 'poll'") == "1"
    });
    let paid = world.dictate(&issued, "paid");
    let mut untimed = paid.object.clone();
    if let Some(fields) = untimed.as_object_mut() {
        fields.remove("updatedAt");
    }
    assert_eq!(world.tell(&issued, &untimed.to_string()).status, 200);
    wait_until(PATIENCE, "the doubt to end", || {
        world.invoice("A-1", "outcome || doubt") == "paid0"
    });
    world.settle();
    issued
}

#[test]
fn a_refusal_a_doubt_and_a_failing_script_are_told_in_their_order() {
    let script = "echo one; echo two; echo three; echo four; printf '\\033[2Jfive\\n' >&2\n\
                  [ $TILLD_ATTEMPT -ge 2 ]";
    let world = Setup::new()
        .plain()
        .quiet()
        .hook("fulfil", &["paid"], script)
        .start();
    let issued = doubted(&world);
    let told = lines(&world, &["A-1"]);
    assert_eq!(
        shape(&told),
        [
            "create",
            "observation create new advance first",
            "event opened",
            "refusal 127.0.0.1",
            "observation poll new confirmed same",
            "observation notification paid doubt no_instant",
            "observation poll paid advance answered",
            "event paid",
            "delivery fulfil done",
            "attempt fulfil exit 1",
            "attempt fulfil exit 0",
            "asking",
        ]
    );
    let times: Vec<&str> = told
        .iter()
        .map(|line| text(line, "at"))
        .filter(|at| !at.is_empty())
        .collect();
    assert_eq!(times.len(), told.len() - 1);
    assert!(times.is_sorted(), "{times:?}");
    for line in &told {
        assert_eq!(text(line, "order_id"), "A-1");
        assert_eq!(text(line, "invoice_id"), issued.id);
        assert_eq!(text(line, "ref"), issued.reference);
    }
    // The service's id and the ref name it as well.
    for name in [&issued.id, &issued.reference] {
        assert_eq!(lines(&world, &[name]), told);
    }

    let shown = people(&world, &["A-1"]);
    for part in [
        "Order A-1, invoice ",
        "outcome paid, status paid",
        "599.80 RUB by SBP, h2h; answered",
        "new, 599.80 RUB, as of ",
        ": taken over; the first word about the invoice",
        "  answer ",
        "from 127.0.0.1, ",
        "paid, 599.80 RUB, without a time to order it by: doubted, the service is asked; its `updatedAt` is missing",
        "paid: outcome open -> paid, status new -> paid, by poll",
        "event 2 to `fulfil`: done, 2 attempts",
        "`fulfil` for event 2: exit 1 after ",
        "  stdout: three\n",
        "  stdout: ...; `--full` shows all\n",
        "  stderr: \\u001b[2Jfive\n",
        "asked last at ",
    ] {
        assert!(shown.contains(part), "`{part}` is missing in: {shown}");
    }
    assert!(!shown.contains("four"), "{shown}");
    assert!(people(&world, &["A-1", "--full"]).contains("  stdout: four\n"));
}

#[test]
fn a_lost_notification_is_found_by_a_poll_and_said_so() {
    let world = Setup::new().start();
    world.faults(&json!({ "lose": true }));
    let issued = world.create("A-1");
    world.happens(&issued, &json!({ "status": "paid" }));
    wait_until(PATIENCE, "the payment", || {
        world.invoice("A-1", "outcome") == "paid"
    });
    let told = shape(&lines(&world, &["A-1"]));
    assert!(
        told.contains(&"observation poll paid advance answered".to_owned()),
        "{told:?}"
    );
    assert!(
        !told.iter().any(|line| line.contains("notification")),
        "{told:?}"
    );
    assert_eq!(told.last().map(String::as_str), Some("asking"));
}

#[test]
fn a_mismatch_and_questions_without_an_answer_are_told() {
    let world = Setup::new().quiet().start();
    let issued = world.create("A-1");
    let down = json!({ "endpoint": "fetch", "status": 500, "times": true });
    world.faults(&json!({ "api_status": down }));
    let less = world.dictate_fields(&issued, &json!({ "status": "paid", "amount": "500" }));
    assert_eq!(world.tell_as_it_is(&less).status, 200);
    let failures = "SELECT failures FROM poll";
    wait_until(PATIENCE, "a question without an answer", || {
        world.value(failures) != "0"
    });
    let shown = people(&world, &["A-1"]);
    for part in [
        "paid, 500 RUB (not as agreed), as of ",
        ": doubted, the service is asked; amount or currency differ from what was agreed",
        " without an answer, due next at ",
    ] {
        assert!(shown.contains(part), "`{part}` is missing in: {shown}");
    }
    let told = lines(&world, &["A-1"]);
    let doubt = told
        .iter()
        .find(|line| text(line, "decision") == "doubt")
        .unwrap_or_else(|| panic!("{told:?}"));
    assert_eq!(text(doubt, "amount_reported"), "500");
    assert_eq!(text(doubt, "why"), "sum_differs");
    let asking = told.last().and_then(|line| line.get("unanswered"));
    assert!(
        asking
            .and_then(Value::as_u64)
            .is_some_and(|count| count > 0)
    );

    // The service answers again: what it says stands, and a person must look.
    world.faults(&json!({ "reset": true }));
    wait_until(PATIENCE, "the mismatch", || {
        world.invoice("A-1", "outcome") == "mismatch"
    });
    let shown = people(&world, &["A-1"]);
    assert!(
        shown.contains("mismatch: the service calls it paid with 500 RUB"),
        "{shown}"
    );
}

#[test]
fn a_run_under_way_is_told_as_that() {
    let script = "echo begun >> \"$1\"; while [ ! -e \"$1.go\" ]; do sleep 0.02; done";
    let world = Setup::new().quiet().hook("slow", &["paid"], script).start();
    world.pay("A-1");
    wait_until(PATIENCE, "the script", || world.hook_log("slow").len() == 1);
    let told = shape(&lines(&world, &["A-1"]));
    assert!(
        told.contains(&"delivery slow running".to_owned()),
        "{told:?}"
    );
    assert!(told.contains(&"attempt slow ".to_owned()), "{told:?}");
    let shown = people(&world, &["A-1"]);
    assert!(shown.contains("`slow` for event 2: under way\n"), "{shown}");
    std::fs::write(world.dir().join("hooks/slow.log.go"), "").expect("written");
    world.settle();
    let told = shape(&lines(&world, &["A-1"]));
    assert!(told.contains(&"attempt slow exit 0".to_owned()), "{told:?}");
}

#[test]
fn every_invoice_of_an_order_has_its_heading_oldest_first() {
    let shop = Shop::new("");
    shop.refused_invoice("1042");
    shop.refused_invoice("1042");
    let shown = shop.tilld(&["explain", "1042"], 0).stdout;
    let headings: Vec<&str> = shown
        .lines()
        .filter(|line| line.starts_with("Order "))
        .collect();
    let heading = "Order 1042, invoice without an id: outcome open, status -";
    assert_eq!(headings, [heading, heading]);
    assert!(
        shown.contains("599.80 RUB by SBP, h2h; refused: "),
        "{shown}"
    );
    let told = shop.tilld(&["explain", "1042", "--json"], 0).lines();
    let refs: Vec<&str> = told.iter().map(|line| text(line, "ref")).collect();
    let newest = shop
        .tilld(&["invoice", "show", "1042", "--json"], 0)
        .lines();
    let newest = newest.first().map(|line| text(line, "ref").to_owned());
    assert_eq!(refs.last().copied(), newest.as_deref());
    assert_ne!(refs.first().copied(), newest.as_deref());
}

#[test]
fn what_the_ledger_dropped_is_counted() {
    let world = Setup::new()
        .quiet()
        .set("ledger.history_per_invoice", 10)
        .start();
    let issued = world.create("A-1");
    // One line for the create, and so many for repeats: the bound is kept in steps.
    for _ in 0..29 {
        assert_eq!(world.tell_as_it_is(&issued).status, 200);
    }
    let told = lines(&world, &["A-1"]);
    let first = told.first().expect("a line");
    assert_eq!(
        (text(first, "what"), text(first, "of")),
        ("dropped", "history")
    );
    let dropped = first.get("count").and_then(Value::as_u64);
    let kept = told
        .iter()
        .filter(|line| text(line, "what") == "observation")
        .count();
    let kept = u64::try_from(kept).expect("few");
    assert_eq!(dropped.map(|dropped| dropped + kept), Some(30));
    let shown = people(&world, &["A-1"]);
    assert!(
        shown.contains(" older lines of the history were dropped"),
        "{shown}"
    );
}

#[test]
fn nothing_is_said_of_what_nobody_knows() {
    let world = Setup::new().quiet().start();
    let body = r#"{"id":"inv-1","status":"paid"}"#;
    let stray = world.notify("AAAAAAAAAAAAAAAAAAAAAA", &[], body);
    assert_eq!(stray.status, 401);
    refusals(&world, "1");
    let Ran { stdout, stderr, .. } = world
        .tilld(&["explain", "AAAAAAAAAAAAAAAAAAAAAA\u{1b}[2J"])
        .ends_with(3);
    assert!(stdout.is_empty(), "{stdout}");
    assert!(stderr.contains("\\u001b[2J` in the ledger"), "{stderr}");
    world
        .tilld(&["explain", "AAAAAAAAAAAAAAAAAAAAAA"])
        .ends_with(3);
}
