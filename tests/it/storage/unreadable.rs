//! A row that another program has spoilt: it is told, not with every look, and holds up no other.

use crate::harness::{PATIENCE, Setup, wait_until};

const TOLD: &str = "an invoice of the ledger cannot be read and is not asked about: ";

#[test]
fn an_invoice_that_cannot_be_read_is_told_once_and_holds_up_no_other() {
    let world = Setup::new().start();
    let _both = (world.create("A-1"), world.create("A-2"));
    let amount = world.invoice("A-1", "amount_agreed");
    let spoil = |amount: &str| {
        world.neighbour().tamper(&format!(
            "UPDATE invoice SET amount_agreed = '{amount}' WHERE order_id = 'A-1'; \
             UPDATE poll SET due_ms = 0 WHERE invoice = (SELECT id FROM invoice WHERE order_id = 'A-1')"
        ));
    };
    // Of the daemon, which looks.
    let needs_a_person = || {
        let status = world.call("GET", "/v1/status", "");
        status.body.contains("\"unreadable\"")
    };
    spoil("much");
    wait_until(PATIENCE, "it to be told", || {
        world.serve_log().contains(TOLD)
    });
    // Each of these is a look at what is due.
    let asked = world.requests("fetch");
    wait_until(PATIENCE, "the other to be asked about", || {
        world.requests("fetch") >= asked + 2
    });
    assert_eq!(world.serve_log().matches(TOLD).count(), 1);
    assert!(needs_a_person(), "it is not listed");
    spoil(&amount);
    wait_until(PATIENCE, "it to be over", || {
        let log = world.serve_log();
        log.contains("every invoice that is due can be read again")
    });
    assert!(!needs_a_person(), "it is listed still");
}
