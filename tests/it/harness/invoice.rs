//! An invoice as a sender of notifications knows it: where to, with which token, and the object itself.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use jiff::{Span, Timestamp};
use serde_json::{Value, json};

use super::{Answer, World};

/// Commands that open invoices at once; more gain nothing on two cores.
const OPENERS: usize = 4;

/// An invoice that exists on both sides.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    /// The merchant's order id.
    pub(crate) order: String,
    /// The service's id.
    pub(crate) id: String,
    /// The last segment of its notificationUrl.
    pub(crate) reference: String,
    /// Its notify token.
    pub(crate) token: String,
    /// The invoice object as the service has it.
    pub(crate) object: Value,
}

/// Any text as a segment of a path.
pub(crate) fn segment(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(encode).collect()
}

impl Issued {
    /// Reads what the sandbox's control listener shows of one invoice.
    pub(super) fn from_control(shown: &Value) -> Option<Self> {
        let text = |pointer: &str| Some(shown.pointer(pointer)?.as_str()?.to_owned());
        let url = text("/for_tests/notificationUrl")?;
        Some(Self {
            order: text("/invoice/internalId")?,
            id: text("/invoice/id")?,
            reference: url.rsplit('/').next()?.to_owned(),
            token: text("/for_tests/notificationToken")?,
            object: shown.get("invoice")?.clone(),
        })
    }

    /// The service's id as a segment of a path.
    pub(crate) fn segment(&self) -> String {
        segment(&self.id)
    }

    /// The service's id as a person types it in a shell.
    pub(crate) fn typed(&self) -> String {
        if self.id.contains([' ', '?', '&']) {
            format!("'{}'", self.id)
        } else {
            self.id.clone()
        }
    }

    /// The object with these fields put over its own; `null` stays `null`.
    pub(crate) fn with(&self, fields: &Value) -> Value {
        let mut object = self.object.clone();
        let fields = fields.as_object().expect("fields");
        if let Some(own) = object.as_object_mut() {
            own.extend(fields.clone());
        }
        object
    }

    /// Its `updatedAt`.
    pub(crate) fn updated_at(&self) -> Timestamp {
        let at = self.object.get("updatedAt").and_then(Value::as_str);
        at.and_then(|at| at.parse().ok()).expect("an instant")
    }

    /// So many milliseconds after its `updatedAt`, as the service writes it. More than five seconds ahead of now are doubted.
    pub(crate) fn at(&self, ms: i64) -> String {
        format!("{:.3}", self.updated_at() + Span::new().milliseconds(ms))
    }

    /// So many microseconds after its `updatedAt`: for more instants than the next seconds have milliseconds.
    pub(crate) fn at_us(&self, us: usize) -> String {
        let us = i64::try_from(us).expect("small");
        format!("{:.6}", self.updated_at() + Span::new().microseconds(us))
    }

    /// The same invoice as a notification has it that says `status`, of which the service knows nothing.
    pub(crate) fn as_if(&self, status: &str) -> Self {
        let object = self.with(&json!({ "status": status, "updatedAt": self.at(1) }));
        Self {
            object,
            ..self.clone()
        }
    }

    /// The body of a notification that says `status` as of `updated_at`.
    pub(crate) fn saying(&self, status: &str, updated_at: &str) -> String {
        self.with(&json!({ "status": status, "updatedAt": updated_at }))
            .to_string()
    }
}

impl World {
    /// Opens an invoice of 599.80 RUB by `tilld invoice create` and gives it as the service has it.
    #[track_caller]
    pub(crate) fn create(&self, order: &str) -> Issued {
        let ran = self.try_create(order);
        assert_eq!(ran.code, 0, "{ran:?}");
        self.issued(order).expect("the service has it")
    }

    /// Opens an invoice of 599.80 RUB past tilld, as the shop's own code does, with this notify token and these further
    /// fields; its notificationUrl is the bare address.
    #[track_caller]
    pub(crate) fn create_past_tilld(&self, order: &str, token: &str, more: &Value) -> Issued {
        let credentials = self.state_dir().join("secret/credentials");
        let credentials = std::fs::read_to_string(credentials).expect("a login");
        let access = crate::harness::access_token(&credentials);
        // With its digits: no float stands near money.
        let amount: Value = serde_json::from_str("599.80").expect("a number");
        let mut body = json!({
            "internalId": order, "direction": "in", "amount": amount, "currency": "RUB", "startDeal": true,
            "paymentMethod": "SBP", "notificationToken": token,
            "notificationUrl": format!("http://{}/n", self.listen()),
        });
        let fields = body.as_object_mut().expect("fields");
        fields.extend(more.as_object().expect("fields").clone());
        self.service("/api/v1/invoices", &access, &body);
        self.issued(order).expect("the service has it")
    }

    /// An invoice that was paid, and the daemon told of it.
    #[track_caller]
    pub(crate) fn pay(&self, order: &str) -> Issued {
        let issued = self.create(order);
        let paid = self.dictate(&issued, "paid");
        assert_eq!(self.tell(&paid, &paid.object.to_string()).status, 200);
        paid
    }

    /// `tilld invoice create` of 599.80 RUB for `order`, however it ends.
    #[track_caller]
    pub(crate) fn try_create(&self, order: &str) -> super::Ran {
        self.open(order, "599.80", &[])
    }

    /// [`World::try_create`] for each of `orders`, some at once; all as the service has them, the oldest first.
    pub(crate) fn create_all(&self, orders: &[String]) -> Vec<Issued> {
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..OPENERS {
                scope.spawn(|| {
                    while let Some(order) = orders.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let ran = self.try_create(order);
                        assert_eq!(ran.code, 0, "{ran:?}");
                    }
                });
            }
        });
        let issued = self.all_issued();
        assert_eq!(issued.len(), orders.len());
        issued
    }

    /// The newest invoice of `order` as the service has it.
    pub(crate) fn issued(&self, order: &str) -> Option<Issued> {
        let all = self.all_issued().into_iter().rev();
        all.into_iter().find(|issued| issued.order == order)
    }

    /// Every invoice as the service has it, the oldest first.
    pub(crate) fn all_issued(&self) -> Vec<Issued> {
        let state = self.control("GET", "/state", &Value::Null);
        let all = state.get("invoices").and_then(Value::as_array);
        let all = all.into_iter().flatten();
        all.filter_map(Issued::from_control).collect()
    }

    /// Changes what the service says about an invoice without a notification; gives the invoice as it is then.
    #[track_caller]
    pub(crate) fn dictate(&self, issued: &Issued, status: &str) -> Issued {
        self.dictate_fields(issued, &json!({ "status": status }))
    }

    /// [`World::dictate`] with any of `status`, `amount`, `currency` and `updatedAt`.
    #[track_caller]
    pub(crate) fn dictate_fields(&self, issued: &Issued, fields: &Value) -> Issued {
        let mut asked = fields.clone();
        asked
            .as_object_mut()
            .expect("fields")
            .insert("notify".to_owned(), false.into());
        let path = format!("/invoices/{}/status", issued.segment());
        let shown = self.control("POST", &path, &asked);
        Issued::from_control(&shown).unwrap_or_else(|| panic!("{shown}"))
    }

    /// Tells what the service now says about an invoice.
    #[track_caller]
    pub(crate) fn tell_as_it_is(&self, issued: &Issued) -> Answer {
        self.tell(issued, &issued.object.to_string())
    }

    /// An authentic notification with this body, as the sandbox presents it by default.
    #[track_caller]
    pub(crate) fn tell(&self, issued: &Issued, body: &str) -> Answer {
        self.notify(
            &issued.reference,
            &[("X-Notification-Token", &issued.token)],
            body,
        )
    }
}
