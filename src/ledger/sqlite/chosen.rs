//! Deliveries as a person chooses them: listed, looked over before a change, and changed. An order, an event and a state
//! are found by their indexes. Only a choice by hook or time alone reads backwards, from the newest delivery, until it has
//! enough; and what an act takes of everybody's is found by one walk, a page at a time.

use rusqlite::{Connection, ToSql, params};

use super::deliveries::{aside, served_for};
use super::rows;
use crate::ledger::choice::{Act, Acting, Choice, Page, Spared, Whose};
use crate::ledger::row::{DeliveryKey, DeliveryRow, DeliveryState};
use crate::ledger::sqlite::planned::Planned as _;

/// Statements differ by whose deliveries are meant, so that each is planned from the index that answers it.
fn from(whose: &Whose) -> (&'static str, Option<&str>) {
    match whose {
        Whose::All => (
            "delivery d JOIN event e ON e.seq = d.event JOIN invoice i ON i.id = d.invoice WHERE ?1 IS NULL",
            None,
        ),
        Whose::Event(event_id) => (
            "event e JOIN invoice i ON i.id = e.invoice JOIN delivery d ON d.event = e.seq WHERE e.event_id = ?1",
            Some(event_id),
        ),
        Whose::Order(order_id) => (
            "invoice i JOIN event e ON e.invoice = i.id JOIN delivery d ON d.event = e.seq WHERE i.order_id = ?1",
            Some(order_id),
        ),
    }
}

/// The choice as a statement, but for the columns in front and the order behind, with what it is asked with. The states
/// are fixed words and stand in the text: the indexes of single states are of no use to what is not known before.
fn chosen(choice: &Choice, states: &[DeliveryState]) -> (String, Vec<Box<dyn ToSql>>) {
    let (from, name) = from(&choice.whose);
    let words: Vec<String> = states
        .iter()
        .map(|state| format!("'{}'", state.as_str()))
        .collect();
    let states = match states {
        [] => String::new(),
        // The deliveries of an order or an event are few, and are found by that.
        [one] if choice.whose == Whose::All => {
            format!("{} AND d.state = '{}'", filed(*one), one.as_str())
        }
        [one] => format!(" AND d.state = '{}'", one.as_str()),
        _more => format!(" AND d.state IN ({})", words.join(", ")),
    };
    let wish = " AND (?2 IS NULL OR d.hook = ?2) AND (?3 IS NULL OR e.at_ms >= ?3) AND (?4 IS NULL OR e.at_ms < ?4)";
    let values: Vec<Box<dyn ToSql>> = vec![
        Box::new(name.map(str::to_owned)),
        Box::new(choice.hook.clone()),
        Box::new(choice.since_ms),
        Box::new(choice.until_ms),
    ];
    (format!("FROM {from}{wish}{states}"), values)
}

/// What more must be said of a state for the index that files it to be used.
const fn filed(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Running | DeliveryState::Abandoned | DeliveryState::Held => {
            " AND d.state <> 'waiting' AND d.state <> 'done'"
        }
        DeliveryState::Waiting | DeliveryState::Done => "",
    }
}

/// What is listed. What waits has no index in the order of the list: few among many, it is gathered first and then sorted.
fn listed(choice: &Choice, limit: u32) -> (String, Vec<Box<dyn ToSql>>) {
    let (chosen, mut values) = chosen(choice, choice.state.as_slice());
    let waiting = choice.whose == Whose::All && choice.state == Some(DeliveryState::Waiting);
    let gathered = "FROM delivery d INDEXED BY delivery_due ";
    let chosen = if waiting {
        chosen.replacen("FROM delivery d ", gathered, 1)
    } else {
        chosen
    };
    // The plus is for where an index names the few that are meant, as in `changeable`.
    let key = match (&choice.whose, choice.state) {
        (Whose::All, None | Some(DeliveryState::Done)) => "d.id",
        _few => "+d.id",
    };
    let below = choice.below.unwrap_or(DeliveryKey(i64::MAX));
    values.push(Box::new(below.0));
    values.push(Box::new(limit));
    let listed = format!("{chosen} AND {key} < ?5 ORDER BY d.id DESC LIMIT ?6");
    (listed, values)
}

/// What was chosen, newest first.
pub(super) fn list(
    connection: &Connection,
    choice: &Choice,
    limit: u32,
) -> rusqlite::Result<Vec<DeliveryRow>> {
    let (listed, values) = listed(choice, limit);
    let sql = format!("SELECT {} {listed}", rows::DELIVERY);
    let mut statement = connection.planned(&sql)?;
    let values = rusqlite::params_from_iter(values);
    statement.query_map(values, rows::delivery)?.collect()
}

/// What was given up and is not acknowledged, found by the index before anything else is read: what is acknowledged may be
/// newer, and more than is listed.
const GIVEN_UP: &str = concat!(
    "FROM delivery d JOIN event e ON e.seq = d.event JOIN invoice i ON i.id = d.invoice WHERE d.id IN \
     (SELECT id FROM delivery INDEXED BY delivery_aside_why WHERE ",
    aside!("abandoned"),
    " AND acknowledged = 0 ORDER BY id DESC LIMIT ?1) ORDER BY d.id DESC"
);

/// The newest that were given up and are not acknowledged.
pub(super) fn given_up(connection: &Connection, limit: u32) -> rusqlite::Result<Vec<DeliveryRow>> {
    let sql = format!("SELECT {} {GIVEN_UP}", rows::DELIVERY);
    let mut statement = connection.planned(&sql)?;
    statement.query_map([limit], rows::delivery)?.collect()
}

/// What an act would change of what was chosen, as a statement but for the columns in front; `None` when it takes none of
/// the wanted state.
fn changeable(act: Act, choice: &Choice, page: &Page) -> Option<(String, Vec<Box<dyn ToSql>>)> {
    let states: Vec<DeliveryState> = act
        .takes()
        .iter()
        .copied()
        .filter(|state| choice.state.is_none_or(|wanted| wanted == *state))
        .collect();
    if states.is_empty() {
        return None;
    }
    let (chosen, mut values) = chosen(choice, &states);
    let taken = match act.spares(&choice.whose) {
        Spared::None => "1",
        Spared::GivenUpByOperator => "(d.state <> 'abandoned' OR d.abandoned_by IS NULL)",
        Spared::Acknowledged => NOT_ACKNOWLEDGED,
    };
    // The plus keeps the key's range from being walked where an index names the few that are meant.
    let key = match choice.whose {
        Whose::All => "d.id",
        Whose::Event(_) | Whose::Order(_) => "+d.id",
    };
    let bounds: [Box<dyn ToSql>; 3] = [
        Box::new(page.after.0),
        Box::new(page.upto.0),
        Box::new(page.most),
    ];
    values.extend(bounds);
    let sql =
        format!("{chosen} AND {taken} AND {key} > ?5 AND {key} <= ?6 ORDER BY {key} LIMIT ?7");
    Some((sql, values))
}

/// What an act would change of what was chosen, a page of it.
pub(super) fn page(
    connection: &Connection,
    act: Act,
    choice: &Choice,
    page: &Page,
) -> rusqlite::Result<Vec<DeliveryRow>> {
    let Some((changeable, values)) = changeable(act, choice, page) else {
        return Ok(Vec::new());
    };
    let sql = format!("SELECT {} {changeable}", rows::DELIVERY);
    let mut statement = connection.planned(&sql)?;
    let values = rusqlite::params_from_iter(values);
    statement.query_map(values, rows::delivery)?.collect()
}

/// True for all but what is acknowledged already.
const NOT_ACKNOWLEDGED: &str = "d.acknowledged = 0";

macro_rules! waits_anew {
    () => {
        concat!(
            "state = 'waiting', next_ms = ?2, wait_ms = 0, served_ms = ",
            served_for!()
        )
    };
}

/// Changes those of the named that still stand so that the act takes them. Returns how many.
pub(super) fn act(connection: &Connection, acting: &Acting) -> rusqlite::Result<usize> {
    let set = match acting.act {
        Act::Retry => concat!(
            waits_anew!(),
            ", round_start = attempts, abandoned_by = NULL, acknowledged = 0"
        ),
        Act::Replay => concat!(waits_anew!(), ", round_start = attempts, replay = 1"),
        Act::Release => concat!(waits_anew!(), ", held_why = NULL"),
        Act::Abandon => {
            "state = 'abandoned', next_ms = NULL, held_why = NULL, abandoned_by = 'operator', acknowledged = 1"
        }
        Act::Acknowledge => "acknowledged = 1",
    };
    let words: Vec<String> = acting
        .act
        .takes()
        .iter()
        .map(|state| format!("'{}'", state.as_str()))
        .collect();
    let sql = format!(
        "UPDATE delivery AS d SET {set} WHERE d.id IN (SELECT value FROM json_each(?1)) AND d.state IN ({}) AND {}",
        words.join(", "),
        match acting.act {
            Act::Acknowledge => NOT_ACKNOWLEDGED,
            Act::Retry | Act::Replay | Act::Release | Act::Abandon => "1",
        }
    );
    let keys: Vec<i64> = acting.keys.iter().map(|key| key.0).collect();
    let keys = serde_json::to_string(&keys).expect("numbers are JSON");
    let mut statement = connection.planned(&sql)?;
    match acting.act {
        Act::Retry | Act::Replay | Act::Release => statement.execute(params![keys, acting.now_ms]),
        Act::Abandon | Act::Acknowledge => statement.execute([keys]),
    }
}

/// The delivery that was made last; the one before all others when there is none.
pub(super) fn newest(connection: &Connection) -> rusqlite::Result<DeliveryKey> {
    connection
        .planned("SELECT coalesce(max(id), 0) FROM delivery")?
        .query_row([], |row| row.get(0).map(DeliveryKey))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::sqlite::check::as_made;

    /// How SQLite goes about it.
    fn plan(connection: &Connection, asked: (String, Vec<Box<dyn ToSql>>)) -> String {
        let (asked, values) = asked;
        let sql = format!("EXPLAIN QUERY PLAN SELECT d.id {asked}");
        let mut statement = connection.prepare(&sql).expect("it is SQL");
        let lines = statement
            .query_map(rusqlite::params_from_iter(values), |row| {
                row.get::<_, String>("detail")
            })
            .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>);
        lines.expect("a plan").join("; ")
    }

    #[test]
    fn an_order_an_event_and_a_state_are_found_by_their_indexes() {
        let connection = as_made().expect("in memory");
        let of = |whose, state| Choice {
            whose,
            hook: Some("fulfil".to_owned()),
            state,
            ..Choice::default()
        };
        for whose in [Whose::Order("a".to_owned()), Whose::Event("e".to_owned())] {
            let choice = of(whose, None);
            let page = Page {
                after: DeliveryKey(0),
                upto: DeliveryKey(9),
                most: 5,
            };
            let asked = Act::ALL.map(|act| changeable(act, &choice, &page).expect("it takes some"));
            for asked in asked.into_iter().chain([listed(&choice, 5)]) {
                let plan = plan(&connection, asked);
                assert!(!plan.contains("SCAN"), "{choice:?}: {plan}");
                assert!(plan.contains("(event=?"), "{choice:?}: {plan}");
            }
        }
        for (state, index) in [
            (DeliveryState::Held, "delivery_aside (state=?)"),
            (DeliveryState::Abandoned, "delivery_aside (state=?)"),
            (DeliveryState::Running, "delivery_aside (state=?)"),
            (DeliveryState::Waiting, "delivery_due"),
        ] {
            let plan = plan(&connection, listed(&of(Whose::All, Some(state)), 5));
            assert!(plan.contains(index), "{}: {plan}", state.as_str());
        }
        let given_up = plan(&connection, (GIVEN_UP.to_owned(), vec![Box::new(5)]));
        let index = "USING COVERING INDEX delivery_aside_why (state=? AND acknowledged=?)";
        assert!(given_up.contains(index), "{given_up}");
        assert!(!given_up.contains("SCAN"), "{given_up}");
    }
}
