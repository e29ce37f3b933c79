//! `/metrics`, read by the public client library of Prometheus: every figure that is promised, with its type, and what moves
//! it. And that counting costs the ledger's size only once.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{get, setup};
use crate::harness::{PATIENCE, World, dice, skip, wait_until};

/// A sample's name and its labels, and the whole part of its value.
type Samples = BTreeMap<(String, Vec<(String, String)>), u64>;

/// What the library makes of the figures: families by name and type, and all samples. `None` without the library.
#[track_caller]
fn read(text: &str) -> Option<(BTreeMap<String, String>, Samples)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = root.join("target/prometheus");
    if !library.exists() {
        return None;
    }
    let mut python = Command::new("python3")
        .arg(root.join("tests/it/admin/prometheus.py"))
        .env("PYTHONPATH", library)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut stdin = python.stdin.take().expect("a pipe");
    stdin.write_all(text.as_bytes()).expect("it reads");
    drop(stdin);
    let output = python.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?} of {text}");
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let (mut families, mut samples) = (BTreeMap::new(), BTreeMap::new());
    for family in told.as_array().expect("a list") {
        let word = |key| family[key].as_str().unwrap_or_default().to_owned();
        families.insert(word("name"), word("type"));
        for sample in family["samples"].as_array().expect("a list") {
            let labels = sample[1].as_object().expect("labels").iter();
            let labels = labels
                .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()));
            let name = sample[0].as_str().unwrap_or_default().to_owned();
            let value = sample[2]
                .as_str()
                .and_then(|text| text.split('.').next()?.parse().ok());
            samples.insert((name, labels.collect()), value.expect("a number"));
        }
    }
    Some((families, samples))
}

#[track_caller]
fn sample(samples: &Samples, name: &str, labels: &[(&str, &str)]) -> u64 {
    let mut wanted: Vec<(String, String)> = labels
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    wanted.sort();
    let found = samples.get(&(name.to_owned(), wanted));
    *found.unwrap_or_else(|| panic!("no {name} {labels:?}: {samples:?}"))
}

/// Every family that is promised, with its type.
#[track_caller]
fn all_are_there(families: &BTreeMap<String, String>) {
    // The library leaves `_total` away from the names of counters.
    for (name, kind) in [
        ("tilld_invoices", "gauge"),
        ("tilld_transitions", "counter"),
        ("tilld_notifications", "counter"),
        ("tilld_requests_unserved", "counter"),
        ("tilld_detect_lag_seconds", "histogram"),
        ("tilld_outbox_depth", "gauge"),
        ("tilld_outbox_oldest_seconds", "gauge"),
        ("tilld_dead_letters", "gauge"),
        ("tilld_hook_runs", "counter"),
        ("tilld_poll_requests", "counter"),
        ("tilld_token_ok", "gauge"),
        ("tilld_last_notification_timestamp_seconds", "gauge"),
    ] {
        assert_eq!(families.get(name).map(String::as_str), Some(kind), "{name}");
    }
}

#[test]
fn every_figure_is_there_and_moves_with_what_happens() {
    if read("").is_none() {
        skip!("prometheus-client is not in target/prometheus; .ci/run installs it");
    }
    let world = setup()
        .quiet()
        .set("outbox.schedule_s", "[0]")
        .noting_hook("fulfil", &["paid"])
        .hook("fails", &["paid"], "exit 1")
        .start();
    let paid = world.pay("A-1");
    world.settle();
    let wrong = world.notify(
        &paid.reference,
        &[("X-Notification-Token", "not-this-one")],
        &paid.object.to_string(),
    );
    assert_eq!(wrong.status, 401);
    // Names that nobody listed make no labels.
    for (order, status) in [("A-2", "held \"x\"\\"), ("A-3", "queued")] {
        let odd = world.create(order);
        let odd = world.dictate(&odd, status);
        assert_eq!(world.tell_as_it_is(&odd).status, 200);
    }
    world.create("A-4");
    world.tilld(&["invoice", "poll", "A-4"]).ends_with(0);

    let answer = get(&world, "/metrics");
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    let (families, samples) = read(&answer.body).expect("the library is there");
    all_are_there(&families);
    let of = |name: &str, labels: &[(&str, &str)]| sample(&samples, name, labels);
    for (name, labels, wanted) in [
        (
            "tilld_invoices",
            [("status", "paid"), ("outcome", "paid")].as_slice(),
            1,
        ),
        (
            "tilld_invoices",
            &[("status", "other"), ("outcome", "open")],
            2,
        ),
        (
            "tilld_notifications_total",
            &[("result", "refused"), ("reason", "token_wrong")],
            1,
        ),
        (
            "tilld_notifications_total",
            &[("result", "refused"), ("reason", "ref_unknown")],
            0,
        ),
        (
            "tilld_hook_runs_total",
            &[("hook", "fulfil"), ("outcome", "done")],
            1,
        ),
        (
            "tilld_hook_runs_total",
            &[("hook", "fails"), ("outcome", "failed")],
            1,
        ),
        ("tilld_outbox_depth", &[], 0),
        ("tilld_dead_letters", &[], 1),
        ("tilld_token_ok", &[], 1),
    ] {
        assert_eq!(of(name, labels), wanted, "{name} {labels:?}");
    }
    let all = samples
        .iter()
        .filter(|((name, _), _)| name == "tilld_invoices");
    assert_eq!(all.map(|(_, count)| count).sum::<u64>(), 4);
    they_moved(&samples);
    assert!(
        !answer.body.contains(&paid.token) && !answer.body.contains("queued"),
        "{}",
        answer.body
    );
    counts_nothing_twice(&world, &samples);
}

/// Figures that are at least so high.
#[track_caller]
fn they_moved(samples: &Samples) {
    for (name, labels, least) in [
        (
            "tilld_transitions_total",
            [("found_by", "notification")].as_slice(),
            3,
        ),
        (
            "tilld_notifications_total",
            &[("result", "stored"), ("reason", "")],
            3,
        ),
        ("tilld_detect_lag_seconds_count", &[], 3),
        ("tilld_detect_lag_seconds_bucket", &[("le", "+Inf")], 3),
        (
            "tilld_last_notification_timestamp_seconds",
            &[],
            1_600_000_000,
        ),
    ] {
        assert!(sample(samples, name, labels) >= least, "{name} {labels:?}");
    }
}

/// A second look finds the same.
#[track_caller]
fn counts_nothing_twice(world: &World, samples: &Samples) {
    let (_, again) = read(&get(world, "/metrics").body).expect("the library is there");
    for (name, label) in [
        (
            "tilld_invoices",
            [("status", "paid"), ("outcome", "paid")].as_slice(),
        ),
        ("tilld_transitions_total", &[("found_by", "notification")]),
        ("tilld_detect_lag_seconds_count", &[]),
    ] {
        assert_eq!(
            sample(&again, name, label),
            sample(samples, name, label),
            "{name}"
        );
    }
}

#[test]
fn a_revoked_token_is_seen_and_so_is_what_the_service_said() {
    if read("").is_none() {
        skip!("prometheus-client is not in target/prometheus; .ci/run installs it");
    }
    let world = setup().start();
    world.control("POST", "/faults", &json!({ "lose": true }));
    world.create("A-1");
    world.control("POST", "/tokens/revoke", &Value::Null);
    wait_until(PATIENCE, "the 401", || {
        let (_, samples) = read(&get(&world, "/metrics").body).expect("the library is there");
        sample(&samples, "tilld_token_ok", &[]) == 0
    });
    let (_, samples) = read(&get(&world, "/metrics").body).expect("the library is there");
    assert!(sample(&samples, "tilld_poll_requests_total", &[("code", "401")]) >= 1);
    assert_eq!(get(&world, "/readyz").status, 503);
    assert!(
        get(&world, "/readyz")
            .body
            .contains("login: the service refuses it\n")
    );
    assert_eq!(get(&world, "/healthz").status, 200);
}

/// Only the first question reads the ledger. Not the time of one answer but of many, so that a busy machine does not decide.
/// `TILLD_INVOICES` says how many there are, and prints how long it took.
#[test]
fn asking_again_costs_no_more_on_a_big_ledger() {
    let count = dice::count("TILLD_INVOICES", 20_000);
    let mut world = setup().quiet().not_served().start();
    world.start_serve();
    world.create("A-1");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    world.neighbour().tamper(&many(count));
    world.start_serve();
    let wanted = format!("tilld_invoices{{status=\"paid\",outcome=\"paid\"}} {count}\n");
    let began = Instant::now();
    wait_until(PATIENCE, "all to be counted", || {
        get(&world, "/metrics").body.contains(&wanted)
    });
    let first = began.elapsed();
    let time = |path: &str| {
        let began = Instant::now();
        for _ in 0..10 {
            assert_eq!(get(&world, path).status, 200);
        }
        began.elapsed() / 10
    };
    let [figures, page] = ["/metrics", "/"].map(time);
    let told = format!(
        "{count} invoices: {first:?} until counted, then {figures:?} for the figures, {page:?} for the page"
    );
    // Its reader may be gone.
    drop(writeln!(std::io::stdout(), "{told}"));
    assert!(figures < Duration::from_millis(250), "{told}");
    assert_eq!(
        world.value("SELECT count(*) FROM invoices WHERE outcome = 'paid'"),
        count.to_string()
    );
}

/// What is at stake: an outbox that grows and looks as if it did not, and a delivery nobody sees behind those that were seen to.
#[test]
fn what_is_not_done_is_counted_to_the_last_and_what_was_seen_to_hides_nothing() {
    const MANY: usize = 10_100;
    const SEEN: usize = 50;
    let mut world = setup().quiet().not_served().start();
    world.start_serve();
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let neighbour = world.neighbour();
    neighbour.tamper(&many(MANY));
    // Another program wrote here, so the next start checks all of it.
    neighbour.tamper("INSERT INTO secret SELECT id, x'00' FROM invoice WHERE id >= 1000");
    // Of hooks that are not configured, so that they stay as they are.
    neighbour.tamper(&format!(
        "BEGIN; INSERT INTO delivery (event, invoice, hook, state, next_ms) SELECT seq, invoice, 'gone', 'waiting', 0 FROM event; \
         INSERT INTO delivery (event, invoice, hook, state) SELECT seq, invoice, 'left', 'abandoned' FROM event; \
         UPDATE delivery SET acknowledged = 1 WHERE id IN \
           (SELECT id FROM delivery WHERE state = 'abandoned' ORDER BY id DESC LIMIT {SEEN}); COMMIT"
    ));
    world.start_serve();
    let figures = get(&world, "/metrics").body;
    for line in [
        format!("\ntilld_outbox_depth {MANY}\n"),
        format!("\ntilld_dead_letters {}\n", MANY - SEEN),
    ] {
        assert!(figures.contains(&line), "{line}: {figures}");
    }
    let newest_unseen = format!("o{}", 999 + MANY - SEEN);
    let page = get(&world, "/").body;
    assert!(page.contains(&newest_unseen), "{newest_unseen}: {page}");
    neighbour.tamper("DELETE FROM delivery");
}

/// So many paid invoices with an event each, none of them owed to a hook.
fn many(count: usize) -> String {
    let numbers = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < {})",
        999 + count
    );
    format!(
        "BEGIN; {numbers} INSERT INTO invoice (id, ref, order_id, invoice_id, mode, method, opening, creator_deadline_ms, \
           amount_asked, currency_asked, amount_agreed, currency_agreed, status, outcome, outcome_ms, created_ms, updated_ms) \
         SELECT i, printf('%021dA', i), 'o' || i, 'id' || i, 'h2h', 'SBP', 'answered', 0, '1', 'RUB', '1', 'RUB', 'paid', 'paid', 0, 0, 0 FROM n; \
         {numbers} INSERT INTO event (seq, event_id, invoice, kind, rewound, status, previous_status, outcome, previous_outcome, \
           at_ms, source) \
         SELECT (SELECT coalesce(max(seq), 0) FROM event) + i - 999, 'e' || i, i, 'paid', 0, 'paid', 'new', 'paid', 'open', \
           (SELECT coalesce(max(at_ms), 0) FROM event), 'poll' FROM n; COMMIT"
    )
}
