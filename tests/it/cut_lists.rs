//! Lists that are longer than what is shown of them. Relies on a shell, which reads the line that goes on as a person's would.
//! Promises that a list that is cut says so, in JSON too, and that its line shows the rest: nothing twice, nothing missed.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Ran, Setup, World, next_name, run, under_test, wait_until};

/// Runs the line that a cut list printed.
#[track_caller]
fn go_on(world: &World, line: &str) -> Ran {
    let mut command = Command::new("sh");
    let script = format!("tilld() {{ '{}' \"$@\"; }}\n{line}\n", under_test());
    command.args(["-c", &script]).current_dir("/");
    run(&mut command, &world.log_dir(), &next_name()).ends_with(0)
}

/// What the control socket answers.
#[track_caller]
fn socket(world: &World, path: &str) -> Value {
    let answer = world.call("GET", path, "");
    serde_json::from_str(&answer.body).expect("JSON")
}

/// The line that goes on, if the list says that it was cut.
#[track_caller]
fn next(ran: &Ran, shown: usize) -> Option<String> {
    let said = ran.stderr.lines().last()?;
    let begin = format!("{shown} shown, and there are more. Go on with: ");
    let line = said.strip_prefix(&begin);
    Some(line.unwrap_or_else(|| panic!("{ran:?}")).to_owned())
}

/// Follows a list through its pages of two, and holds the rows against those of the whole list.
#[track_caller]
fn comes_whole(world: &World, list: &[&str], rows: usize) {
    for json in [[].as_slice(), &["--json"]] {
        let heading = usize::from(json.is_empty());
        let cells = |ran: &Ran| -> Vec<String> {
            let rows = ran.stdout.lines().skip(heading);
            // How wide columns are depends on what else is shown.
            rows.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "))
                .collect()
        };
        let whole = world.tilld(&[list, json].concat()).ends_with(0);
        assert_eq!(whole.stderr, "", "{list:?}");
        assert_eq!(cells(&whole).len(), rows, "{list:?}: {whole:?}");
        let cut = [list, json, &["--limit=2"]].concat();
        let mut page = world.tilld(&cut).ends_with(0);
        let mut pages = 1;
        let mut seen = cells(&page);
        while let Some(line) = next(&page, 2) {
            page = go_on(world, &line);
            pages += 1;
            seen.extend(cells(&page));
        }
        assert_eq!(seen, cells(&whole), "{list:?}");
        assert_eq!(pages, rows.div_ceil(2), "{list:?}");
    }
}

/// A world with five orders, one of them paid, and three notifications that were rejected.
fn full() -> World {
    let world = Setup::new().quiet().noting_hook("log", &["*"]).start();
    let orders = ["A-1", "it's 2", "A-3", "A-4", "A-5"];
    let invoices = orders.map(|order| world.create(order));
    world.pay("A-6");
    world.settle();
    for _ in 0..3 {
        let [_, invoice, ..] = &invoices;
        let wrong = [("X-Notification-Token", "wrong")];
        let body = invoice.with(&json!({})).to_string();
        assert_eq!(world.notify(&invoice.reference, &wrong, &body).status, 401);
    }
    wait_until(PATIENCE, "the refusals to be written", || {
        world.value("SELECT count(*) FROM refusal") == "3"
    });
    world
}

#[test]
fn a_list_that_is_cut_says_how_to_go_on() {
    let mut world = full();
    for is_served in [true, false] {
        if !is_served {
            assert_eq!(world.stop_serve(PATIENCE), 0);
        }
        comes_whole(&world, &["invoice", "list"], 6);
        comes_whole(&world, &["invoice", "list", "--open"], 5);
        comes_whole(&world, &["event", "list"], 7);
        comes_whole(&world, &["event", "list", "--after", "2"], 5);
        comes_whole(&world, &["delivery", "list"], 7);
        comes_whole(
            &world,
            &["delivery", "list", "--state=done", "--hook=log"],
            7,
        );
        comes_whole(&world, &["delivery", "list", "--order", "A-6"], 2);
        comes_whole(&world, &["refusal", "list"], 3);
        comes_whole(&world, &["refusal", "list", "--order", "it's 2"], 3);
    }
    let unknown = ["invoice", "list", "--before", "AAAAAAAAAAAAAAAAAAAAAA"];
    let refused = world.tilld(&unknown).ends_with(3);
    assert!(refused.stderr.contains("no ref `AAAA"), "{refused:?}");
}

#[test]
fn the_socket_says_where_its_list_goes_on() {
    let world = full();
    let mut before = String::new();
    let mut seen = Vec::new();
    loop {
        let path = format!("/v1/invoices?limit=4{before}");
        let answer = socket(&world, &path);
        let list = answer.get("invoices").and_then(Value::as_array);
        let orders = list.expect("a list").iter();
        seen.extend(orders.filter_map(|row| row.get("order_id").cloned()));
        match answer.get("next_before") {
            Some(Value::String(reference)) => before = format!("&before={reference}"),
            end => break assert_eq!(end, Some(&Value::Null)),
        }
    }
    assert_eq!(
        json!(seen),
        json!(["A-6", "A-5", "A-4", "A-3", "it's 2", "A-1"])
    );
    let whole = socket(&world, "/v1/invoices?limit=6");
    assert_eq!(whole.get("next_before"), Some(&Value::Null));
    let unknown = socket(&world, "/v1/invoices?before=AAAAAAAAAAAAAAAAAAAAAA");
    assert_eq!(unknown.get("error"), Some(&json!("not_found")));
}

/// The invoices of one order are paged in their own order: the one that stands for it comes first.
#[test]
fn the_invoices_of_an_order_come_whole_too() {
    let world = Setup::new().quiet().start();
    for _ in 0..3 {
        let more = ["--new"];
        world.open("A-1", "599.80", &more).ends_with(0);
    }
    let refs = |path: &str| -> (Vec<Value>, Value) {
        let answer = socket(&world, path);
        let list = answer.get("invoices").and_then(Value::as_array);
        let refs = list.expect("a list").iter();
        let refs = refs.filter_map(|row| row.get("ref").cloned()).collect();
        (
            refs,
            answer.get("next_before").cloned().expect("it is said"),
        )
    };
    let (whole, end) = refs("/v1/invoices?order_id=A-1");
    assert_eq!((whole.len(), end), (3, Value::Null));
    let (first, next) = refs("/v1/invoices?order_id=A-1&limit=2");
    let before = next.as_str().expect("there are more");
    let (rest, end) = refs(&format!(
        "/v1/invoices?order_id=A-1&limit=2&before={before}"
    ));
    assert_eq!([first, rest].concat(), whole);
    assert_eq!(end, Value::Null);
}
