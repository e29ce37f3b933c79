//! One transaction for many commands. When one fails, the batch is rolled back and replayed with a savepoint for each,
//! so that the good ones pay for savepoints only then.

use std::borrow::Cow;

use super::apply::{self, ApplyError, Rules, apply};
use super::command::{Command, Reply};
use super::store::{Store, StoreError};

/// Runs the commands in one transaction. `Ok` holds an answer for each, in order, and everything answered with `Ok` is
/// durable. `Err`: nothing was stored, and nothing may be answered as if it were.
pub(super) fn run<S: Store>(
    store: &mut S,
    rules: &Rules,
    commands: &[&Command],
) -> Result<Vec<Result<Reply, ApplyError>>, StoreError> {
    let in_force = begin(store, rules)?;
    let mut replies = Vec::with_capacity(commands.len());
    for command in commands {
        match apply(store, &in_force, command) {
            Ok(reply) => replies.push(Ok(reply)),
            Err(_to_be_seen_again) => {
                store.rollback();
                return replay(store, rules, commands);
            }
        }
    }
    finish(store, replies)
}

/// Has the daemon's rules remembered, in a transaction of their own; what was remembered before is left alone where it is the
/// same.
pub(super) fn settle<S: Store>(store: &mut S, rules: &mut Rules) -> Result<(), StoreError> {
    if let Some(number) = apply::remembered(store, rules)? {
        rules.sorted_by = Some(number);
        return Ok(());
    }
    store.begin()?;
    let settled = apply::remember(store, rules).and_then(|number| {
        store.commit()?;
        Ok(number)
    });
    if settled.is_err() {
        store.rollback();
    }
    rules.sorted_by = Some(settled?);
    Ok(())
}

/// Begins a transaction, and gives the rules that hold in it.
fn begin<'r, S: Store>(store: &mut S, rules: &'r Rules) -> Result<Cow<'r, Rules>, StoreError> {
    store.begin()?;
    let in_force = rules.in_force(store);
    if in_force.is_err() {
        store.rollback();
    }
    in_force
}

fn replay<S: Store>(
    store: &mut S,
    rules: &Rules,
    commands: &[&Command],
) -> Result<Vec<Result<Reply, ApplyError>>, StoreError> {
    let in_force = begin(store, rules)?;
    let mut replies = Vec::with_capacity(commands.len());
    for command in commands {
        let tried = one(store, &in_force, command);
        match tried {
            Ok(reply) => replies.push(reply),
            Err(fatal) => {
                store.rollback();
                return Err(fatal);
            }
        }
    }
    finish(store, replies)
}

/// The outer error ends the batch: the disk is full or failed, and no savepoint helps.
fn one<S: Store>(
    store: &mut S,
    rules: &Rules,
    command: &Command,
) -> Result<Result<Reply, ApplyError>, StoreError> {
    store.savepoint()?;
    match apply(store, rules, command) {
        Ok(reply) => {
            store.release()?;
            Ok(Ok(reply))
        }
        Err(ApplyError::Store(fatal)) if !matches!(fatal, StoreError::Refused(_)) => Err(fatal),
        Err(own) => {
            store.rollback_to_savepoint()?;
            Ok(Err(own))
        }
    }
}

fn finish<S: Store>(
    store: &mut S,
    replies: Vec<Result<Reply, ApplyError>>,
) -> Result<Vec<Result<Reply, ApplyError>>, StoreError> {
    match store.commit() {
        Ok(()) => Ok(replies),
        Err(failed) => {
            store.rollback();
            Err(failed)
        }
    }
}
