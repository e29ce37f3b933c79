//! Names mean one thing: a service that numbers its invoices gives one of them the number of another order. What is at
//! stake: a page says paid for an order that does not exist, or a command that was copied changes another order.

use serde_json::{Value, json};

use crate::control::client::{problem, text};
use crate::harness::{Issued, PATIENCE, Setup, World, segment, wait_until};

/// An order is called as the invoice of another order is: order `500`, whose invoice id is `X`, and order `X`.
struct Crossed {
    world: World,
    /// The invoice of order `500`.
    first: Issued,
    /// The invoice of the order that is called as the first invoice.
    second: Issued,
}

impl Crossed {
    fn start() -> Self {
        let world = Setup::new().quiet().start();
        let first = world.create("500");
        let second = world.create(&first.id);
        assert_eq!(second.order, first.id);
        Self {
            world,
            first,
            second,
        }
    }

    /// The text with two meanings.
    fn text(&self) -> &str {
        &self.first.id
    }
}

/// Pays an order's invoice and waits until the ledger has it.
fn pay(world: &World, issued: &Issued) {
    let paid = world.dictate(issued, "paid");
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    wait_until(PATIENCE, "it to be paid", || {
        world.invoice(&issued.order, "outcome") == "paid"
    });
}

/// The path of this call about an order, an invoice id or a ref.
fn paths(name: &str, reference: &str, call: &str) -> [String; 3] {
    let name = segment(name);
    [
        format!("/v1/orders/{name}{call}"),
        format!("/v1/invoices/by-id/{name}{call}"),
        format!("/v1/invoices/by-ref/{reference}{call}"),
    ]
}

/// Runs a command so that it finds no daemon.
const DIRECTLY: [&str; 2] = ["env", "TILLD_CONTROL__SOCKET=/nonexistent/control.sock"];

/// The calls about one invoice.
const CALLS: [(&str, &str); 3] = [("GET", ""), ("GET", "/wait?timeout=0"), ("POST", "/poll")];

/// The case that was seen: order `500` has the invoice id `501` and is paid; there is no order `501`.
#[test]
fn an_invoice_id_is_no_order_id_on_the_socket() {
    let world = Setup::new().quiet().start();
    let issued = world.create("500");
    pay(&world, &issued);
    for (method, call) in CALLS {
        let [as_order, as_id, as_ref] = paths(&issued.id, &issued.reference, call);
        let absent = world.call(method, &as_order, "");
        problem(&absent, 404, "not_found");
        let id = &issued.id;
        assert_eq!(
            text(&absent, "/detail"),
            format!("no order `{id}` in the ledger; the invoice id `{id}` belongs to order `500`")
        );
        let hint = text(&absent, "/hint");
        assert!(
            hint.contains(&format!("`--id {}`", issued.typed())),
            "{hint}"
        );
        let quoted = hint.split('`').find(|part| part.starts_with("/v1/"));
        let named = format!("{}{call}", quoted.expect("a path"));
        for path in [named, as_id, as_ref] {
            let found = world.call(method, &path, "");
            assert_eq!(found.status, 200, "{path} {found:?}");
            assert_eq!(text(&found, "/order_id"), "500", "{path}");
        }
        // Neither is a ref an id, nor an order id one of these.
        for path in [
            format!("/v1/invoices/by-id/{}{call}", issued.reference),
            format!("/v1/invoices/by-id/500{call}"),
            format!("/v1/invoices/by-ref/500{call}"),
            format!("/v1/orders/{}{call}", issued.reference),
        ] {
            problem(&world.call(method, &path, ""), 404, "not_found");
        }
    }
    let wrong = world.call("GET", "/v1/invoices/by-id/500", "");
    let detail = "no invoice id `500` in the ledger; there is an order `500`";
    assert_eq!(text(&wrong, "/detail"), detail);
    assert!(
        text(&wrong, "/hint").contains("`/v1/orders/500`"),
        "{wrong:?}"
    );
    let none = world.call("GET", "/v1/orders/none", "");
    assert_eq!(text(&none, "/detail"), "no order `none` in the ledger");
}

#[test]
fn a_path_that_does_not_say_what_its_name_is_leads_nowhere() {
    let world = Setup::new().quiet().start();
    let issued = world.create("500");
    for name in ["500", &issued.segment(), &issued.reference] {
        for (method, call) in CALLS {
            let answer = world.call(method, &format!("/v1/invoices/{name}{call}"), "");
            problem(&answer, 404, "not_found");
            assert_eq!(text(&answer, "/detail"), "there is no such call");
        }
    }
    let wish = json!({ "order_id": "501", "amount": "5.00", "currency": "RUB", "method": "SBP" });
    let opened = world.call("POST", "/v1/invoices", &wish.to_string());
    let at = opened.header("location").expect("its path").to_owned();
    assert!(at.starts_with("/v1/invoices/by-ref/"), "{at}");
    assert_eq!(world.call("GET", &at, "").body, opened.body);
}

#[test]
fn each_kind_of_name_finds_its_own_on_the_socket() {
    let crossed = Crossed::start();
    let Crossed {
        world,
        first,
        second,
    } = &crossed;
    pay(world, first);
    for (method, call) in CALLS {
        let [as_order, as_id, as_ref] = paths(crossed.text(), &second.reference, call);
        let of = |path: &str| -> (u16, String) {
            let answer = world.call(method, path, "");
            (answer.status, text(&answer, "/order_id"))
        };
        let still_open = if call.starts_with("/wait") { 202 } else { 200 };
        assert_eq!(of(&as_order), (still_open, second.order.clone()));
        assert_eq!(of(&as_id), (200, "500".to_owned()));
        assert_eq!(of(&as_ref), (still_open, second.order.clone()));
    }
}

/// With a daemon that answers, and without one.
#[test]
fn a_command_takes_a_name_for_what_it_was_typed_as() {
    let world = Setup::new().quiet().start();
    let issued = world.create("500");
    pay(&world, &issued);
    let (id, by_id) = (issued.id.as_str(), format!("--id={}", issued.id));
    let by_ref = format!("--ref={}", issued.reference);
    for under in [[].as_slice(), &DIRECTLY] {
        for command in [
            ["invoice", "wait", "--timeout=0"].as_slice(),
            &["invoice", "poll"],
            &["invoice", "accept-amount", "--amount=599.80"],
        ] {
            let run = |name: &str| world.tilld_under(under, &[command, &["--", name]].concat());
            let absent = run(id).ends_with(3).stderr;
            let wanted = format!(
                "no order `{id}` in the ledger; the invoice id `{id}` belongs to order `500`"
            );
            assert!(absent.contains(&wanted), "{absent}");
            let hint = format!("`--id {}`", issued.typed());
            assert!(absent.contains(&hint), "{absent}");
            for name in ["500", &by_id, &by_ref] {
                let found = world.tilld_under(under, &[command, &["--json", name]].concat());
                assert_eq!(found.ends_with(0).text("order_id"), "500");
            }
            let wrong = world.tilld_under(under, &[command, &["--id=500"]].concat());
            let wrong = wrong.ends_with(3).stderr;
            assert!(
                wrong.contains("no invoice id `500` in the ledger"),
                "{wrong}"
            );
            assert!(wrong.contains("use `500` without a flag"), "{wrong}");
            let two = world.tilld_under(under, &[command, &["500", by_id.as_str()]].concat());
            two.ends_with(2);
            world.tilld_under(under, command).ends_with(2);
        }
    }
}

#[test]
fn commands_that_take_an_order_name_the_order_of_an_invoice_id() {
    let world = Setup::new().quiet().start();
    let issued = world.create("500");
    let id = issued.id.as_str();
    for args in [
        ["ack", "--", id].as_slice(),
        &["delivery", "retry", &format!("--order={id}")],
        &["delivery", "abandon", &format!("--order={id}")],
        &["invoice", "adopt", "--id=x", "--", id],
    ] {
        let ran = world.tilld(args).ends_with(3).stderr;
        assert!(
            ran.contains(&format!("no order `{id}` in the ledger")),
            "{ran}"
        );
        assert!(
            ran.contains("this command takes an order id: `500`"),
            "{ran}"
        );
    }
}

/// What is at stake: the hint is copied, and the sum of another order is agreed.
#[test]
fn a_hint_changes_the_invoice_it_was_printed_for() {
    let crossed = Crossed::start();
    let Crossed {
        world,
        first,
        second,
    } = &crossed;
    for (issued, amount) in [(first, "590.00"), (second, "580.00")] {
        let fields = json!({ "status": "paid", "amount": amount });
        let paid = world.dictate_fields(issued, &fields);
        assert_eq!(world.tell_as_it_is(&paid).status, 200);
        wait_until(PATIENCE, "the poll", || {
            world.invoice(&issued.order, "outcome") == "mismatch"
        });
    }
    let shown = world.tilld(&["invoice", "show", "500"]).ends_with(0).stdout;
    let command = shown
        .split('`')
        .find_map(|part| part.strip_prefix("tilld "))
        .expect("a hint with a command")
        .to_owned();
    assert_eq!(
        command,
        format!(
            "invoice accept-amount --id {} --amount 590.00",
            first.typed()
        )
    );
    let words = [
        "invoice",
        "accept-amount",
        "--amount=590",
        "--id",
        &first.id,
    ];
    let accepted = world
        .tilld(&[&words[..], &["--json"]].concat())
        .ends_with(0);
    assert_eq!(accepted.text("order_id"), "500");
    assert_eq!(world.invoice("500", "outcome"), "paid");
    assert_eq!(world.invoice(&second.order, "outcome"), "mismatch");
}

#[test]
fn show_and_explain_refuse_a_name_with_two_meanings() {
    let crossed = Crossed::start();
    let (name, typed) = (crossed.text(), crossed.first.typed());
    for under in [[].as_slice(), &DIRECTLY] {
        for command in [
            ["invoice", "show", "--json"].as_slice(),
            &["explain", "--json"],
        ] {
            let run = |args: &[&str]| {
                let all = [command, args].concat();
                crossed.world.tilld_under(under, &all)
            };
            let refused = run(&["--", name]).ends_with(2);
            let error: Value = serde_json::from_str(&refused.stdout).expect("JSON");
            let said = |field: &str| error.get(field).and_then(Value::as_str).unwrap_or_default();
            assert_eq!(
                said("error"),
                format!(
                    "`{name}` has more than one meaning: there is an order `{name}`; the invoice id `{name}` belongs \
                     to order `500`"
                )
            );
            assert_eq!(
                said("hint"),
                format!("say which: `--order {typed}` or `--id {typed}`")
            );
            let first_line = |args: &[&str]| -> Value {
                let ran = run(args).ends_with(0).stdout;
                serde_json::from_str(ran.lines().next().expect("a line")).expect("JSON")
            };
            let order_of = |args: &[&str]| first_line(args).get("order_id").cloned();
            let by_order = format!("--order={name}");
            let by_id = format!("--id={name}");
            let by_ref = format!("--ref={}", crossed.second.reference);
            assert_eq!(order_of(&[&by_order]), Some(json!(name)));
            assert_eq!(order_of(&[&by_id]), Some(json!("500")));
            assert_eq!(order_of(&[&by_ref]), Some(json!(name)));
            // One meaning needs no flag, whatever kind it is.
            assert_eq!(order_of(&["500"]), Some(json!("500")));
            let second = crossed.second.id.as_str();
            assert_eq!(order_of(&["--", second]), Some(json!(name)));
            assert_eq!(
                order_of(&["--", &crossed.first.reference]),
                Some(json!("500"))
            );
            run(&["500", &by_id]).ends_with(2);
            run(&["none"]).ends_with(3);
        }
    }
    // What changes something takes it for an order id.
    let amount = "--amount=599.80";
    let change = ["invoice", "accept-amount", "--json", amount, "--", name];
    let changed = crossed.world.tilld(&change).ends_with(0);
    assert_eq!(changed.text("order_id"), name);
}
