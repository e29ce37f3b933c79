//! A payment service that answers with any JSON, and a daemon that works with it.
//! Relies on the harness.
//! Promises that what is said about one order is said about no other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::harness::{Answer, Heard, PATIENCE, Ran, Service, Setup, World, request, wait_until};

/// An invoice as the service has it.
#[derive(Clone, Default)]
struct Issued {
    token: String,
    /// The object, as JSON text.
    object: String,
}

/// The invoices, by their orders.
type Issueds = Arc<Mutex<BTreeMap<String, Issued>>>;

/// Service and daemon.
pub(super) struct Till {
    pub(super) world: World,
    issued: Issueds,
    _service: Service,
}

/// Stands in an object for a value that is written to the letter.
const PLACE: &str = "@";

impl Till {
    /// Starts both, with a hook `note` that writes down each event and the variables about money.
    pub(super) fn start() -> Self {
        let issued = Issueds::default();
        let shared = Arc::clone(&issued);
        let service = Service::start(move |heard| answer(heard, &shared));
        let note = "echo \"$TILLD_ORDER_ID $TILLD_EVENT [$TILLD_AMOUNT]\" >> \"$1\"";
        let world = Setup::new()
            .quiet()
            .service(&service.url())
            .hook("note", &["*"], note)
            .start();
        world.tilld(&["login"]).ends_with(0);
        Self {
            world,
            issued,
            _service: service,
        }
    }

    /// Opens an invoice of this many RUB.
    #[track_caller]
    pub(super) fn open(&self, order: &str, amount: &str) {
        self.world.open(order, amount, &[]).ends_with(0);
    }

    /// From now on the service says this about an order: fields over its own, with `amount` to the letter as JSON.
    pub(super) fn says(&self, order: &str, fields: &Value, amount: &str) -> String {
        let mut issued = self.issued.lock().expect("no panic there");
        let own = issued.get_mut(order).expect("it was opened");
        let mut object: Value = serde_json::from_str(&own.object).expect("an object");
        let all = object.as_object_mut().expect("an object");
        all.extend(fields.as_object().expect("fields").clone());
        all.insert("amount".to_owned(), PLACE.into());
        own.object = object.to_string().replace(&format!("\"{PLACE}\""), amount);
        own.object.clone()
    }

    fn token(&self, order: &str) -> String {
        let issued = self.issued.lock().expect("no panic there");
        issued.get(order).expect("it was opened").token.clone()
    }

    /// An authentic notification with this body.
    #[track_caller]
    pub(super) fn tell(&self, order: &str, body: &str) -> Answer {
        let token = self.token(order);
        let reference = self.world.invoice(order, "ref");
        self.world
            .notify(&reference, &[("X-Notification-Token", &token)], body)
    }

    /// The same on the bare address, where the body alone names the invoice.
    #[track_caller]
    pub(super) fn tell_bare(&self, order: &str, body: &str) -> Answer {
        let token = self.token(order);
        let headers = [("X-Notification-Token", token.as_str())];
        let target = World::target("");
        request(self.world.listen(), "POST", &target, &headers, body)
    }

    /// [`Till::says`], and notifies of it.
    #[track_caller]
    pub(super) fn says_and_tells(&self, order: &str, fields: &Value, amount: &str) {
        let body = self.says(order, fields, amount);
        assert_eq!(self.tell(order, &body).status, 200, "{body}");
    }

    /// A poll that a person wishes for.
    #[track_caller]
    pub(super) fn poll(&self, order: &str) -> Ran {
        self.world.tilld(&["invoice", "poll", order])
    }

    /// Waits until these columns of the invoice are so, joined by blanks.
    #[track_caller]
    pub(super) fn becomes(&self, order: &str, columns: &[&str], wanted: &str) {
        let columns: Vec<String> = columns
            .iter()
            .map(|column| format!("coalesce({column}, 'null')"))
            .collect();
        let columns = columns.join(" || ' ' || ");
        let mut seen = String::new();
        wait_until(PATIENCE, &format!("{order}: {wanted}"), || {
            seen = self.world.invoice(order, &columns);
            seen == wanted
        });
    }
}

fn answer(heard: &Heard, issued: &Issueds) -> (u16, String) {
    let mut issued = issued.lock().expect("no panic there");
    if let Some(id) = heard.path().rsplit('/').next()
        && let Some(known) = id.strip_prefix("inv-").and_then(|order| issued.get(order))
    {
        return (200, known.object.clone());
    }
    let Ok(asked) = serde_json::from_str::<Value>(&heard.body) else {
        return (404, "{}".to_owned());
    };
    let text = |name: &str| asked.get(name).and_then(Value::as_str).unwrap_or_default();
    let order = text("internalId").to_owned();
    let object = json!({
        "id": format!("inv-{order}"), "direction": "in", "status": "new", "currency": asked.get("currency"),
        "amount": asked.get("amount").map(Value::to_string), "internalId": order,
        "createdAt": "2026-01-01T10:00:00.000Z", "updatedAt": "2026-01-01T10:00:00.000Z",
    });
    let own = Issued {
        token: text("notificationToken").to_owned(),
        object: object.to_string(),
    };
    issued.insert(order, own.clone());
    (201, own.object)
}

/// A status as of this second of 10 o'clock.
pub(super) fn status(word: &str, second: u32) -> Value {
    json!({ "status": word, "updatedAt": format!("2026-01-01T10:00:{second:02}.000Z") })
}
