//! The steps keep what stands in a ledger, and the triggers keep what they note.

use super::*;

#[test]
fn the_steps_run_on_an_empty_database() {
    let connection = rusqlite::Connection::open_in_memory().expect("in memory");
    for step in STEPS {
        connection.execute_batch(step).expect("the step runs");
    }
    for view in ["invoices", "events", "deliveries", "attempts", "requisites"] {
        let count = connection.query_row(&format!("SELECT count(*) FROM {view}"), [], |row| {
            row.get::<_, i64>(0)
        });
        assert_eq!(count, Ok(0), "{view}");
    }
}

/// What is owed when tilld is brought up to date is owed afterwards, and filed by what it waits for.
#[test]
fn what_is_owed_outlives_the_fifth_step() {
    let connection = rusqlite::Connection::open_in_memory().expect("in memory");
    for step in STEPS.iter().take(4) {
        connection.execute_batch(step).expect("the step runs");
    }
    connection
        .execute_batch(
            "INSERT INTO invoice (id, ref, order_id, mode, method, opening, creator_deadline_ms, amount_asked, \
               currency_asked, amount_agreed, currency_agreed, outcome_ms, created_ms, updated_ms) \
             VALUES (1, 'r', 'a', 'h2h', 'SBP', 'answered', 0, '1', 'RUB', '1', 'RUB', 0, 0, 0); \
             WITH n(i) AS (VALUES (1), (2), (3), (4), (5)) \
             INSERT INTO event (seq, event_id, invoice, kind, rewound, outcome, previous_outcome, at_ms) \
             SELECT i, 'e' || i, 1, 'status', 0, 'open', 'open', 0 FROM n; \
             INSERT INTO delivery (id, event, invoice, hook, state, attempts, round_start, next_ms, child_pid) VALUES \
               (10, 1, 1, 'log', 'done', 1, 0, NULL, NULL), (20, 2, 1, 'log', 'running', 3, 2, NULL, 77), \
               (30, 3, 1, 'log', 'waiting', 0, 0, 5, NULL), (40, 4, 1, 'log', 'waiting', 0, 0, 6, NULL), \
               (45, 4, 1, 'mail', 'waiting', 9, 1, 7, NULL), (50, 5, 1, 'log', 'held', 0, 0, NULL, NULL)",
        )
        .expect("filled");
    let all = |columns: &str| -> Vec<String> {
        let sql = format!("SELECT concat_ws(' ', {columns}) FROM delivery ORDER BY id");
        let mut statement = connection.prepare(&sql).expect("asked");
        let rows = statement.query_map([], |row| row.get(0));
        rows.and_then(Iterator::collect).expect("read")
    };
    let columns =
        "id, event, invoice, hook, state, attempts, round_start, next_ms, child_pid, held_why";
    let before = all(columns);
    connection
        .execute_batch(STEPS.get(4).expect("the fifth step"))
        .expect("the step runs");
    assert_eq!(all(columns), before);
    let blocked = all("id, blocked_by");
    assert_eq!(blocked, ["10", "20", "30 20", "40 30", "45", "50"]);
}

/// Given up by a clock that may have been ahead, and nobody knows: they must be findable when it is set back.
#[test]
fn who_was_given_up_before_it_was_noted_when_is_dated_by_what_is_known() {
    let connection = rusqlite::Connection::open_in_memory().expect("in memory");
    for step in STEPS.iter().take(3) {
        connection.execute_batch(step).expect("the step runs");
    }
    connection
        .execute_batch(
            "WITH n(i, outcome, unresolved, due) AS (VALUES (1, 'open', 1, NULL), (2, 'failed', 0, NULL), \
               (3, 'paid', 0, NULL), (4, 'open', 0, 900), (5, 'failed', 0, 900)) \
             INSERT INTO invoice (id, ref, order_id, invoice_id, mode, method, opening, creator_deadline_ms, \
               amount_asked, currency_asked, amount_agreed, currency_agreed, outcome, outcome_ms, created_ms, \
               updated_ms, unresolved) \
             SELECT i, printf('%022x', i), 'o' || i, 'id-' || i, 'h2h', 'SBP', 'answered', 0, \
               '1', 'RUB', '1', 'RUB', outcome, 100, 0, 200, unresolved FROM n; \
             INSERT INTO poll (invoice, due_ms, class) SELECT id, CASE WHEN id > 3 THEN 900 END, 2 FROM invoice; \
             UPDATE poll SET asked_ms = 300 WHERE invoice = 2",
        )
        .expect("filled");
    let step = STEPS.get(3).expect("the fourth step");
    connection.execute_batch(step).expect("the step runs");
    let mut statement = connection
        .prepare("SELECT retired_ms FROM poll ORDER BY invoice")
        .expect("asked");
    let retired: Vec<Option<i64>> = statement
        .query_map([], |row| row.get(0))
        .and_then(Iterator::collect)
        .expect("read");
    assert_eq!(retired, [Some(200), Some(300), None, None, None]);
}

/// What was heard before the step stays before what is heard after it, and keeps its order.
#[test]
fn lines_of_history_keep_their_place_among_events() {
    let connection = rusqlite::Connection::open_in_memory().expect("in memory");
    for step in STEPS.iter().take(5) {
        connection.execute_batch(step).expect("the step runs");
    }
    let invoice = "INSERT INTO invoice (id, ref, order_id, mode, method, opening, creator_deadline_ms, amount_asked, \
       currency_asked, amount_agreed, currency_agreed, outcome_ms, created_ms, updated_ms) \
       VALUES (1, 'r', 'a', 'h2h', 'SBP', 'answered', 0, '1', 'RUB', '1', 'RUB', 0, 0, 0); ";
    let event = |seq: i64, status: &str, judged: &str| {
        format!(
            "INSERT INTO event (seq, event_id, invoice, kind, rewound, cause_status, outcome, previous_outcome, source, \
               at_ms, raw{}) VALUES ({seq}, 'e{seq}', 1, 'status', 0, '{status}', 'open', 'open', 'poll', {seq}, '{{}}'{judged}); ",
            if judged.is_empty() {
                ""
            } else {
                ", decision, why"
            }
        )
    };
    let line = |at_ms: i64, status: &str, place: &str| {
        format!(
            "INSERT INTO history (invoice, at_ms, source, status, decision{}) \
             VALUES (1, {at_ms}, 'poll', '{status}', 'confirmed'{place}); ",
            if place.is_empty() {
                ""
            } else {
                ", after_event"
            }
        )
    };
    // The line of the first event was dropped, that of the second stands.
    let before = [
        invoice.to_owned(),
        event(1, "one", ""),
        event(2, "two", ""),
        line(2, "two", ""),
        line(3, "three", ""),
    ];
    connection.execute_batch(&before.concat()).expect("filled");
    let step = STEPS.get(5).expect("the sixth step");
    connection.execute_batch(step).expect("the step runs");
    let unknown = connection.query_row("SELECT newest_ns IS NULL FROM invoice", [], |row| {
        row.get(0)
    });
    assert_eq!(unknown, Ok(true), "what was heard of it is not looked up");
    let after = [
        event(3, "four", ", 'advance', 'newer'"),
        line(9, "five", ", 3"),
        event(4, "six", ", 'advance', 'newer'"),
        line(9, "seven", ", 4"),
    ];
    connection.execute_batch(&after.concat()).expect("filled");
    let heard =
        crate::ledger::sqlite::heard::claims(&connection, crate::ledger::row::InvoiceKey(1));
    let heard = heard.expect("read");
    let words: Vec<&str> = heard
        .iter()
        .map(|heard| heard.claim.status.as_str())
        .collect();
    assert_eq!(
        words,
        ["one", "two", "three", "four", "five", "six", "seven"]
    );
}

/// What is at stake: only the next one behind is looked at when one ends, and a replay puts one between two that know
/// nothing of it. None may be taken to be behind another for good.
#[test]
fn whoever_is_behind_one_that_is_replayed_has_its_turn_after_it() {
    let connection = rusqlite::Connection::open_in_memory().expect("in memory");
    for step in STEPS {
        connection.execute_batch(step).expect("the step runs");
    }
    let do_all = |sql: &str| connection.execute_batch(sql).expect("stored");
    do_all(
        "INSERT INTO invoice (id, ref, order_id, mode, method, opening, creator_deadline_ms, amount_asked, \
           currency_asked, amount_agreed, currency_agreed, outcome_ms, created_ms, updated_ms) \
         VALUES (1, 'r', 'a', 'h2h', 'SBP', 'answered', 0, '1', 'RUB', '1', 'RUB', 0, 0, 0); \
         WITH n(i) AS (VALUES (1), (2), (3), (4)) \
         INSERT INTO event (seq, event_id, invoice, kind, rewound, outcome, previous_outcome, at_ms) \
         SELECT i, 'e' || i, 1, 'status', 0, 'open', 'open', 0 FROM n",
    );
    let insert = |event: i64| {
        let made = connection.execute(
            crate::ledger::sqlite::deliveries::INSERT_WAITING,
            rusqlite::params![event, 1, "log", 5],
        );
        assert_eq!(made, Ok(1));
    };
    let behind = || -> String {
        let ask = "SELECT group_concat(event, ' ') FROM (SELECT event FROM delivery \
                   WHERE state = 'waiting' AND blocked_by IS NOT NULL ORDER BY event)";
        let found: Option<String> = connection
            .query_row(ask, [], |row| row.get(0))
            .expect("read");
        found.unwrap_or_default()
    };
    let set = |event: i64, state: &str| {
        do_all(&format!(
            "UPDATE delivery SET state = '{state}' WHERE event = {event}"
        ));
    };
    insert(1);
    insert(2);
    set(2, "done");
    insert(3);
    insert(4);
    assert_eq!(behind(), "3 4");
    set(2, "waiting");
    assert_eq!(behind(), "2 3 4");
    set(1, "done");
    assert_eq!(behind(), "3 4");
    set(2, "running");
    set(2, "abandoned");
    assert_eq!(behind(), "4");
    do_all("DELETE FROM delivery WHERE event = 3");
    assert_eq!(behind(), "");
}

/// README's question for what was given up is asked again and again by whoever watches, however much was ever delivered.
#[test]
fn what_was_given_up_is_found_without_reading_all() {
    let connection = rusqlite::Connection::open_in_memory().expect("in memory");
    for step in STEPS {
        connection.execute_batch(step).expect("the step runs");
    }
    let asked =
        "EXPLAIN QUERY PLAN SELECT hook, order_id FROM deliveries WHERE state = 'abandoned'";
    let mut plan = connection.prepare(asked).expect("asked");
    let steps: Vec<String> = plan
        .query_map([], |row| row.get("detail"))
        .and_then(Iterator::collect)
        .expect("read");
    assert!(
        steps.iter().any(|step| step.contains("delivery_abandoned")),
        "{steps:?}"
    );
}
