//! `tilld invoice accept-amount`: the amount is typed, on the command line or on a terminal.
//! Relies on `till`, and on a terminal of the test's own.
//! Promises that a script without `--amount` changes nothing, and that a printed command works when it is copied.

use std::fs::File;
use std::io::Write as _;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::till::{Till, status};
use crate::harness::{PATIENCE, Process, Ran, wait_until};

/// Runs `tilld` with these words on a terminal, and types this line when it is asked.
#[track_caller]
fn on_a_terminal(till: &Till, args: &[&str], typed: &str) -> Ran {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&master).expect("ours");
    unlockpt(&master).expect("ours");
    let path = ptsname(&master, Vec::new()).expect("its name");
    let path = path.to_str().expect("a path").to_owned();
    let slave = File::options().read(true).write(true).open(path);
    let mut program: Process = till
        .world
        .start_tilld_reading(Stdio::from(slave.expect("its other end")), args);
    let mut master = File::from(master);
    wait_until(PATIENCE, "the question", || {
        program.stderr().contains("amount to accept: ") || program.ended().is_some()
    });
    master.write_all(typed.as_bytes()).expect("it is typed");
    let code = program.wait(PATIENCE);
    Ran {
        code,
        stdout: program.stdout(),
        stderr: program.stderr(),
    }
}

/// An order paid with 590.00 where 599.80 was agreed.
fn mismatched(till: &Till, order: &str) {
    till.open(order, "599.80");
    till.says_and_tells(order, &status("paid", 5), "\"590.00\"");
    till.becomes(order, &["outcome"], "mismatch");
}

#[test]
fn without_an_amount_it_asks_on_a_terminal_and_refuses_elsewhere() {
    let till = Till::start();
    mismatched(&till, "A-1");
    let accept = ["invoice", "accept-amount", "A-1"];
    let refused = till.world.tilld(&accept).ends_with(2);
    let command = "tilld invoice accept-amount --id inv-A-1 --amount 590.00";
    assert!(refused.stderr.contains(command), "{refused:?}");
    for (typed, code, why) in [
        ("\n", 2, "nothing was changed"),
        ("much\n", 2, "nothing was changed"),
        ("599.80\n", 1, "reported 590.00 RUB"),
        ("590.001\n", 2, "more than 2 digits"),
    ] {
        let ran = on_a_terminal(&till, &accept, typed).ends_with(code);
        assert!(ran.stderr.contains("599.80 RUB is agreed"), "{ran:?}");
        assert!(
            ran.stderr.contains("the service reported 590.00 RUB"),
            "{ran:?}"
        );
        assert!(ran.stderr.contains(why), "{ran:?}");
        assert_eq!(till.world.invoice("A-1", "outcome"), "mismatch");
    }
    let ran = on_a_terminal(&till, &accept, "590\n").ends_with(0);
    assert!(
        ran.stderr
            .contains("590.00 RUB is agreed for order A-1 now"),
        "{ran:?}"
    );
    till.becomes("A-1", &["outcome", "amount_agreed"], "paid 590.00");
}

/// The command that stands in a text between backquotes, without the program's name.
fn printed(text: &str) -> Vec<&str> {
    let from = text
        .find("`tilld invoice accept-amount")
        .expect("it is printed");
    let command = text.get(from..).unwrap_or_default();
    let command = command.split('`').nth(1).expect("it ends");
    command.split(' ').skip(1).collect()
}

#[test]
fn the_command_that_is_printed_works_when_it_is_copied() {
    let till = Till::start();
    for order in ["A-1", "A-2"] {
        mismatched(&till, order);
        let shown = till.world.tilld(&["invoice", "show", order]).ends_with(0);
        let refused = ["invoice", "accept-amount", order];
        let refused = till.world.tilld(&refused).ends_with(2);
        let command = printed(&refused.stderr);
        assert!(shown.stdout.contains(&command.join(" ")), "{shown:?}");
        till.world.tilld(&command).ends_with(0);
        till.becomes(order, &["outcome"], "paid");
    }
    // Another guess is answered with the command that works.
    mismatched(&till, "A-3");
    let guess = ["invoice", "accept-amount", "A-3", "--amount", "1"];
    let guess = till.world.tilld(&guess).ends_with(1);
    till.world.tilld(&printed(&guess.stderr)).ends_with(0);
    // So is a create that the service answered with another amount.
    let again = till.world.open("A-3", "599.80", &[]).ends_with(1);
    assert!(again.stderr.contains("is paid already"), "{again:?}");
}

#[test]
fn too_many_digits_are_a_wrong_word_and_not_a_wrong_state() {
    let till = Till::start();
    mismatched(&till, "A-1");
    let long = "9".repeat(35);
    for amount in ["590.001", "1e3", "nothing", "0", &long] {
        let accept = ["invoice", "accept-amount", "A-1", "--amount", amount];
        till.world.tilld(&accept).ends_with(2);
    }
    till.world
        .tilld(&["invoice", "accept-amount", "A-1", "--amount", "590.01"])
        .ends_with(1);
}

#[test]
fn a_person_names_the_amount_of_a_payment_without_one() {
    let till = Till::start();
    for (order, form, amount, agreed) in [
        ("A-1", "null", "599.80", "599.80"),
        ("A-2", "[599.80]", "590", "590"),
    ] {
        till.open(order, "599.80");
        till.says_and_tells(order, &status("paid", 5), form);
        till.becomes(order, &["outcome", "attention"], "open amount_missing");
        let typo = ["invoice", "accept-amount", order, "--amount", "599.801"];
        till.world.tilld(&typo).ends_with(2);
        let accept = ["invoice", "accept-amount", order, "--amount", amount];
        till.world.tilld(&accept).ends_with(0);
        let columns = [
            "outcome",
            "doubt",
            "status",
            "attention",
            "amount_reported",
            "amount_agreed",
        ];
        till.becomes(order, &columns, &format!("paid 0 paid  null {agreed}"));
        // Later words without an amount take nothing back.
        till.poll(order);
        till.becomes(order, &["outcome", "doubt"], "paid 0");
    }
    till.world.settle();
    let noted = till.world.hook_log("note");
    assert!(noted.contains(&"A-1 paid []".to_owned()), "{noted:?}");
}
