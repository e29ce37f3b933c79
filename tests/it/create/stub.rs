//! A payment service of the test's own, for answers the sandbox would never give: it tells what it was asked, and
//! answers creates and fetches as it is told to.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Service, Setup, wait_until};

/// What the stub shares with its service's thread.
#[derive(Default)]
struct Orders {
    /// Fields put over the answer to a create.
    create: Value,
    /// Fields put over the answer to a fetch.
    fetch: Value,
    /// Held creates wait for this to close.
    held: Option<Receiver<()>>,
    /// The last create's document.
    last: Value,
    /// All that is asked is answered with 500.
    is_away: bool,
}

/// The stub.
pub(crate) struct Stub {
    service: Service,
    orders: Arc<Mutex<Orders>>,
    creates: Receiver<Value>,
    release: Option<Sender<()>>,
}

/// Starts one that answers as it was asked.
pub(crate) fn start() -> Stub {
    let orders = Arc::new(Mutex::new(Orders::default()));
    let (tell, creates) = channel();
    let shared = Arc::clone(&orders);
    let service = Service::start(move |heard| {
        let body: Value = serde_json::from_str(&heard.body).unwrap_or_default();
        answer(heard.path(), &body, &shared, &tell)
    });
    Stub {
        service,
        orders,
        creates,
        release: None,
    }
}

fn answer(path: &str, body: &Value, orders: &Mutex<Orders>, tell: &Sender<Value>) -> (u16, String) {
    let mut orders = orders.lock().expect("no panic there");
    if orders.is_away {
        return (500, String::new());
    }
    if !path.ends_with("/invoices") {
        let mut document = orders.last.clone();
        put(&mut document, &orders.fetch);
        return (200, document.to_string());
    }
    let text = |field: &str| body.get(field).cloned().unwrap_or_default();
    let mut document = json!({
        "id": "inv-1", "direction": "in", "status": "new", "paymentMethod": text("paymentMethod"),
        "amount": text("amount").to_string(), "currency": text("currency"),
        "createdAt": "2026-01-01T00:00:00.000Z", "updatedAt": "2026-01-01T00:00:00.000Z",
        "internalId": text("internalId"), "merchantName": "Shop",
    });
    put(&mut document, &orders.create);
    orders.last = document.clone();
    let held = orders.held.take();
    drop(orders);
    drop(tell.send(body.clone()));
    if let Some(held) = held {
        // Nothing is ever sent: it ends when the other side is dropped.
        held.iter().for_each(drop);
    }
    (201, document.to_string())
}

fn put(document: &mut Value, fields: &Value) {
    if let (Some(document), Some(fields)) = (document.as_object_mut(), fields.as_object()) {
        document.extend(fields.clone());
    }
}

impl Stub {
    /// Its base address.
    pub(crate) fn url(&self) -> String {
        self.service.url()
    }

    /// Answers to creates differ in these fields from what was asked.
    pub(crate) fn creates(&self, fields: Value) {
        self.orders.lock().expect("no panic there").create = fields;
    }

    /// Answers to fetches differ in these fields from the answer to the create.
    pub(crate) fn fetches(&self, fields: Value) {
        self.orders.lock().expect("no panic there").fetch = fields;
    }

    /// The next create's answer waits for [`Stub::lets_go`].
    pub(crate) fn holds_creates(&mut self) {
        let (release, held) = channel();
        self.release = Some(release);
        self.orders.lock().expect("no panic there").held = Some(held);
    }

    /// Held answers go out.
    pub(crate) fn lets_go(&mut self) {
        self.release = None;
    }

    /// From now on nothing is answered but that it cannot be.
    pub(crate) fn goes_away(&self) {
        self.orders.lock().expect("no panic there").is_away = true;
    }

    /// The id of the invoices that are opened next.
    pub(crate) fn renames(&self, id: &str) {
        self.creates(json!({ "id": id }));
    }

    /// How many creates have arrived that nobody looked at.
    pub(crate) fn further_creates(&self) -> usize {
        self.creates.try_iter().count()
    }

    /// The next create that arrives.
    #[track_caller]
    pub(crate) fn next_create(&self) -> Value {
        self.creates.recv_timeout(PATIENCE).expect("a create")
    }
}

#[test]
fn an_invoice_of_another_sum_is_not_handed_on() {
    let shop = start();
    let mut world = Setup::new()
        .quiet()
        .service(&shop.url())
        .noting_hook("fulfil", &["paid"])
        .noting_hook("look", &["mismatch"])
        .not_served()
        .start();
    world.tilld(&["login"]).ends_with(0);
    shop.creates(json!({ "amount": "500.00" }));
    let opened = world.open("A-1", "599.80", &[]).ends_with(1);
    assert!(
        opened.stderr.contains("599.80 RUB was asked for"),
        "{opened:?}"
    );
    assert!(opened.stderr.contains("with 500.00 RUB"), "{opened:?}");
    assert_eq!(
        opened.json().get("attention"),
        Some(&json!(["amount_differs"]))
    );
    assert_eq!(opened.text("outcome"), "open");
    // The second time it is no better.
    let again = world.open("A-1", "599.80", &[]).ends_with(1);
    assert!(again.stderr.contains("with 500.00 RUB"), "{again:?}");
    let way_out = "`tilld invoice accept-amount --id inv-1 --amount 500.00`";
    assert!(again.stderr.contains(way_out), "{again:?}");

    let request = shop.next_create();
    let token = request.get("notificationToken").and_then(Value::as_str);
    world.start_serve();
    let paid = json!({ "status": "paid", "updatedAt": "2026-01-01T00:01:00.000Z" });
    shop.fetches(paid.clone());
    let mut document = json!({ "id": "inv-1", "amount": "500.00", "currency": "RUB" });
    put(&mut document, &paid);
    let answer = world.notify(
        &world.invoice("A-1", "ref"),
        &[("X-Notification-Token", token.expect("a token"))],
        &document.to_string(),
    );
    assert_eq!(answer.status, 200);
    wait_until(PATIENCE, "the hook", || world.hook_log("look").len() == 1);
    assert_eq!(world.invoice("A-1", "outcome"), "mismatch");
    world.settle();
    assert_eq!(world.hook_log("fulfil"), [""; 0], "it is not paid");
    world.wait("A-1", "5s").ends_with(5);

    // The line the hint named, and the payment counts.
    let accept = [
        "invoice",
        "accept-amount",
        "--id",
        "inv-1",
        "--amount",
        "500.00",
        "--json",
    ];
    let accepted = world.tilld(&accept).ends_with(0);
    assert_eq!(accepted.text("outcome"), "paid");
    assert_eq!(accepted.text("amount_asked"), "599.80");
    assert_eq!(accepted.text("amount_agreed"), "500.00");
    assert_eq!(accepted.json().get("attention"), Some(&json!([])));
    wait_until(PATIENCE, "the hook", || world.hook_log("fulfil").len() == 1);
    world.wait("A-1", "5s").ends_with(0);
}

/// A notification names the invoice before the answer to its create does, which names another.
#[test]
fn a_second_id_in_the_answer_to_a_create_is_an_alert_until_it_is_acknowledged() {
    let mut shop = start();
    let mut world = Setup::new()
        .quiet()
        .service(&shop.url())
        .not_served()
        .start();
    world.tilld(&["login"]).ends_with(0);
    world.start_serve();
    shop.holds_creates();
    let mut opening = world.start_tilld(&[
        "invoice",
        "create",
        "--order",
        "A-1",
        "--amount",
        "1",
        "--currency",
        "RUB",
        "--method",
        "SBP",
    ]);
    let request = shop.next_create();
    let text = |field: &str| request.get(field).and_then(Value::as_str).expect("a text");
    let reference = text("notificationUrl").rsplit('/').next().expect("a path");
    let token = [("X-Notification-Token", text("notificationToken"))];
    let told = json!({ "id": "inv-2", "status": "new", "updatedAt": "2026-01-01T00:00:00.000Z" });
    assert_eq!(
        world.notify(reference, &token, &told.to_string()).status,
        200
    );
    shop.lets_go();
    opening.wait(PATIENCE);
    assert_eq!(world.invoice("A-1", "attention"), "other_id");
    assert_eq!(world.invoice("A-1", "invoice_id"), "inv-2");
    world.tilld(&["status"]).ends_with(16);
    world.tilld(&["ack", "A-1"]).ends_with(0);
    world.tilld(&["status"]).ends_with(0);
}
