//! Who is told that a delivery was given up: owed in the commit of the last attempt's end, once for each giving up, and
//! never for giving up on telling. In both stores.

use super::conformance::{Pair, intent_of, mark, pair};
use super::*;
use crate::ledger::command::Reply;

/// A paid invoice whose only owed deliveries are those of the hook `fulfil` and of `log`.
struct Scene {
    pair: Pair,
    now_ms: i64,
    _directory: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut scene = Self {
            pair: pair(&directory),
            now_ms: NOW + 100,
            _directory: directory,
        };
        scene.pair.adopt();
        let answer = said(Source::Create, "id-1", "new", 1);
        let paid = said(Source::Notification, "id-1", "paid", 9);
        let key = InvoiceKey(1);
        scene.run(&[
            Command::Begin(Box::new(intent_of(1, 1, false, NOW))),
            Command::Settle(key, Settled::Answered(Box::new(answer))),
            Command::Record(key, Box::new(paid)),
        ]);
        scene
    }

    /// The same in both stores, a second later, and all is the same afterwards.
    fn run(&mut self, commands: &[Command]) -> Vec<Reply> {
        self.now_ms += 1_000;
        let replies = self.pair.run(commands, commands);
        self.pair.compare(self.now_ms);
        let replies = replies.into_iter().map(|reply| reply.expect("applied"));
        replies.collect()
    }

    fn claim(&mut self, hook: &str) -> Option<Claimed> {
        let claim = Command::Claim {
            claimant: mark(2),
            now_ms: self.now_ms,
            lanes: vec![Lane {
                names: vec![hook.to_owned()],
                want: 1,
                children: Vec::new(),
            }],
        };
        let Some(Reply::Claimed(claimed)) = self.run(&[claim]).pop() else {
            panic!("no answer to a claim");
        };
        claimed.into_iter().next()
    }

    fn end(&mut self, claimed: &Claimed, result: &str, after: After) {
        let record = AttemptRecord {
            started_ms: self.now_ms - 5,
            ended_ms: self.now_ms,
            result: result.to_owned(),
            stdout: Vec::new(),
            stderr: format!("{result} {}\n", claimed.attempt).into_bytes(),
        };
        self.run(&[Command::Finish(claimed.key, Box::new(record), after)]);
    }

    /// A person wants it tried once more.
    fn retry(&mut self, hook: &str) {
        self.now_ms += 1_000;
        let rows = self.pair.memory.deliveries().into_iter();
        let meant = rows.filter(|row| row.hook == hook).map(|row| row.key);
        self.run(&[Command::Act(Acting {
            act: Act::Retry,
            keys: meant.collect(),
            now_ms: self.now_ms,
        })]);
    }

    /// Every delivery that tells, with its state and attempts.
    fn tellers(&self) -> Vec<(String, DeliveryState, u32)> {
        let rows = self.pair.memory.deliveries().into_iter();
        let rows = rows.filter(|row| row.hook.starts_with("on_abandoned"));
        rows.map(|row| (row.hook, row.state, row.attempts))
            .collect()
    }
}

const TELLER: &str = "on_abandoned:fulfil";

fn teller(state: DeliveryState, attempts: u32) -> Vec<(String, DeliveryState, u32)> {
    vec![(TELLER.to_owned(), state, attempts)]
}

#[test]
fn each_giving_up_is_told_once_and_giving_up_on_that_is_not() {
    let mut scene = Scene::new();
    let log = scene.claim("log").expect("it is owed");
    scene.end(&log, "exit 0", After::Done);
    assert_eq!((log.hook.as_str(), log.given_up), ("log", None));
    let given_up = scene.claim("fulfil").expect("it is owed");
    let after = After::Retry {
        at_ms: scene.now_ms,
    };
    scene.end(&given_up, "exit 1", after);
    assert_eq!(scene.tellers(), [], "a failure is no giving up");
    let given_up = scene.claim("fulfil").expect("it is owed");
    scene.end(&given_up, "exit 65", After::Abandoned);
    assert_eq!(scene.tellers(), teller(DeliveryState::Waiting, 0));
    // The same end once more, since its answer was lost.
    scene.end(&given_up, "exit 65", After::Abandoned);

    let told = scene.claim(TELLER).expect("it is owed");
    let first = told.given_up.clone().expect("what it tells");
    assert_eq!((told.attempt, told.round_attempt), (1, 1));
    assert_eq!(
        (first.hook.as_str(), first.attempts),
        ("fulfil", given_up.attempt)
    );
    assert_eq!(first.event_id, told.event.event_id);
    assert_eq!(first.result, "exit 65");
    assert_eq!(first.stderr, format!("exit 65 {}\n", given_up.attempt));
    scene.end(&told, "exit 0", After::Done);
    assert_eq!(scene.tellers(), teller(DeliveryState::Done, 1));

    // Retried and given up again, it is told again, with a fresh round.
    scene.retry("fulfil");
    let again = scene.claim("fulfil").expect("it is owed");
    scene.end(&again, "exit 1", After::Abandoned);
    assert_eq!(scene.tellers(), teller(DeliveryState::Waiting, 1));
    let told = scene.claim(TELLER).expect("it is owed");
    let second = told.given_up.clone().expect("what it tells");
    assert_eq!((told.attempt, told.round_attempt), (2, 1));
    assert_eq!(second.attempts, again.attempt);
    assert_ne!(first.id(), second.id());

    // Nobody is told that nobody could be told.
    scene.end(&told, "exit 1", After::Abandoned);
    assert_eq!(scene.tellers(), teller(DeliveryState::Abandoned, 2));
}

#[test]
fn who_was_not_told_yet_is_told_of_the_last_time_when_he_would_have_been() {
    let mut scene = Scene::new();
    let given_up = scene.claim("fulfil").expect("it is owed");
    scene.end(&given_up, "exit 1", After::Abandoned);
    let told = scene.claim(TELLER).expect("it is owed");
    let at_ms = scene.now_ms + 20_000;
    scene.end(&told, "exit 1", After::Retry { at_ms });
    scene.retry("fulfil");
    let again = scene.claim("fulfil").expect("it is owed");
    scene.end(&again, "exit 78", After::Abandoned);
    let rows = scene.pair.memory.deliveries();
    let row = rows.iter().find(|row| row.hook == TELLER);
    let row = row.expect("it waits");
    assert_eq!(
        (row.state, row.next_ms),
        (DeliveryState::Waiting, Some(at_ms))
    );
    scene.now_ms = at_ms;
    let told = scene.claim(TELLER).expect("it is owed");
    let what = told.given_up.expect("what it tells");
    assert_eq!((told.round_attempt, what.result.as_str()), (2, "exit 78"));
}
