//! An authenticated claim about an invoice, whoever made it. `wire` makes the report out of the service's JSON; the
//! listener, the poller, the opening and the operator wrap it with where it came from.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};

use super::amount::Amount;
use super::ids::InvoiceId;
use super::moment::Moment;
use super::silence::CLOCK_IS_SET_MS;
use super::status::Status;
use crate::secret::{Cutter, Secret};

/// Who says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The service pushed it, with the right notify token.
    Notification,
    /// It answered a `GET` of ours.
    Poll,
    /// It answered our `POST` that opened the invoice.
    Create,
    /// A person at the command line.
    Operator,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Notification, Self::Poll, Self::Create, Self::Operator];

    /// The word used in the ledger and in the hook document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Notification => "notification",
            Self::Poll => "poll",
            Self::Create => "create",
            Self::Operator => "operator",
        }
    }

    /// Reads the word back.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }
}

/// Longest currency, method or unreadable time kept as it came, bytes. Real ones are a tenth of it.
const LONGEST_TEXT: usize = 64;

/// A field that is compared, as the service reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reported<T> {
    /// Missing, null or empty: says nothing.
    Missing,
    /// What it says.
    Value(T),
    /// Something else is there: it agrees with nothing.
    Unreadable,
}

impl<T> Reported<T> {
    /// What it says, if it says something that can be read.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Missing | Self::Unreadable => None,
        }
    }
}

/// A contract field that came in another form than the contract's. Nothing but the field itself is lost by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Odd {
    /// The field, by its name on the wire.
    pub field: &'static str,
    /// What is odd about it.
    pub how: How,
}

/// What is odd about a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// No string: numbers were read as their digits. All else agrees with nothing where it is compared, and is passed over
    /// elsewhere.
    Retyped,
    /// A value the contract does not show, which changes nothing here.
    Unknown(String),
    /// No absolute address of `http` or `https`: a browser could take it for something else, so it is kept in the document alone.
    NoAddress,
    /// A time without a zone, taken as UTC.
    NoZone,
    /// A time that is none.
    NoTime,
    /// A time that is still to come.
    Ahead,
    /// No JSON object in however many layers: hooks are told the raw text alone.
    NoObject,
    /// Longer than anything of its kind.
    TooLong,
}

impl Odd {
    /// One name for what is to be told once: the field, and the new value or what is odd about it.
    pub fn key(&self) -> String {
        let field = self.field;
        match &self.how {
            How::Retyped => format!("{field}:retyped"),
            How::Unknown(value) => format!("{field}={value}"),
            How::NoZone => format!("{field}:no_zone"),
            How::NoTime => format!("{field}:no_time"),
            How::Ahead => format!("{field}:ahead"),
            How::NoObject => format!("{field}:no_object"),
            How::TooLong => format!("{field}:too_long"),
            How::NoAddress => format!("{field}:no_address"),
        }
    }
}

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field;
        match &self.how {
            How::Retyped => write!(f, "`{field}` is no string; all else was kept"),
            How::Unknown(value) => {
                let value = value.escape_debug();
                write!(f, "`{field}` is `{value}`, which changes nothing here")
            }
            How::NoZone => write!(f, "`{field}` has no time zone and was taken as UTC"),
            How::NoTime => write!(f, "`{field}` is no time; all else was kept"),
            How::Ahead => write!(
                f,
                "`{field}` is ahead of the service's own clock, so a poll must confirm it"
            ),
            How::NoObject => write!(f, "`{field}` holds no JSON object; all else was kept"),
            How::TooLong => write!(f, "`{field}` is too long to be one; all else was kept"),
            How::NoAddress => write!(
                f,
                "`{field}` is no http or https address, so no browser is sent to it; all else was kept"
            ),
        }
    }
}

/// What the service says about one invoice (contract 2.3). Only `id` and `status` are needed; `null`, `""` and a missing
/// field are the same. Times are kept as text beside the instant, since an unreadable one must not be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The service's id of the invoice.
    pub id: InvoiceId,
    /// The service's word, to the letter.
    pub status: Status,
    /// `internalId`. Kept as text: whatever is not ours is simply unequal.
    pub order_id: Reported<String>,
    /// The reported amount.
    pub amount: Reported<Amount>,
    /// The reported currency, to the letter; as JSON text when it is no text, which no currency is.
    pub currency: Option<String>,
    /// `updatedAt` as an instant, when it is readable. Claims are ordered by it.
    pub updated_at: Option<Moment>,
    /// `updatedAt` as it was written, when it is there and is not readable (A10).
    pub updated_at_text: Option<String>,
    /// The service's own clock when it answered (`Date`, RFC 9110 6.6.1), milliseconds since 1970; `None` for what it
    /// pushed and for an answer that bears none.
    pub service_ms: Option<i64>,
    /// `expireAt` as an instant, when it is readable.
    pub expire_at: Option<Moment>,
    /// `paymentMethod`, to the letter.
    pub method: Option<String>,
    /// `paymentUrl`: the hosted payment page (Redirect), an absolute address of `http` or `https`.
    pub payment_url: Option<String>,
    /// `dealRequisites` after decoding, as JSON text; `None` when missing or when it does not parse.
    pub requisites: Option<String>,
    /// Contract fields whose form was not the contract's (A08).
    pub odd: Vec<Odd>,
    /// The whole document as it came, compact JSON.
    pub raw: String,
}

impl Report {
    /// The same report as it may be kept and shown: with every occurrence of these secrets cut out of all its texts but the
    /// invoice's id, and what may be long only then shortened. What came is passed through this once, with all that is secret.
    #[must_use]
    pub fn without(mut self, hidden: &[&Secret]) -> Self {
        let cutter = Cutter::new(hidden);
        let whole = [&mut self.payment_url, &mut self.requisites];
        for text in whole.into_iter().flatten() {
            cutter.cut(text);
        }
        cutter.cut(&mut self.raw);
        let texts = [
            &mut self.updated_at_text,
            &mut self.currency,
            &mut self.method,
        ];
        let odd = self.odd.iter_mut().filter_map(|odd| match &mut odd.how {
            How::Unknown(value) => Some(value),
            How::Retyped
            | How::NoZone
            | How::NoTime
            | How::Ahead
            | How::NoObject
            | How::TooLong
            | How::NoAddress => None,
        });
        for text in texts.into_iter().flatten().chain(odd) {
            cutter.cut(text);
            shorten(text);
        }
        if let Reported::Value(order_id) = &mut self.order_id {
            cutter.cut(order_id);
        }
        if cutter.may_be_in(self.status.as_str()) {
            let mut status = self.status.as_str().to_owned();
            cutter.cut(&mut status);
            self.status = Status::new(status).unwrap_or(self.status);
        }
        self
    }

    /// The reported amount as a plain decimal, if it can be read, and the reported currency.
    pub fn reported(&self) -> (Option<&str>, Option<&str>) {
        let amount = self.amount.value().map(Amount::as_str);
        (amount, self.currency.as_deref())
    }

    /// True when the report names another order than `order_id`. A missing one does not differ.
    pub fn names_other_order(&self, order_id: &str) -> bool {
        match &self.order_id {
            Reported::Missing => false,
            Reported::Value(reported) => reported != order_id,
            Reported::Unreadable => true,
        }
    }
}

/// A question as it was when it was sent. A slow answer must not overwrite a newer state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The invoice's revision then.
    pub revision: i64,
    /// When, by our clock, milliseconds since 1970.
    pub at_ms: i64,
}

/// One observation: a report and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Who says it.
    pub source: Source,
    /// What is said.
    pub report: Report,
    /// The question it answers; `None` for what nobody asked for.
    pub asked: Option<Asked>,
    /// When it reached us, by our clock, in milliseconds since 1970. Dates rows; orders nothing.
    pub received_ms: i64,
}

impl Observation {
    /// The answer to a question of ours about an invoice that stood at this revision when it was asked. Times are
    /// milliseconds since 1970.
    pub fn polled(report: Report, revision: i64, asked_ms: i64, received_ms: i64) -> Self {
        Self {
            source: Source::Poll,
            report,
            asked: Some(Asked {
                revision,
                at_ms: asked_ms,
            }),
            received_ms,
        }
    }

    /// Whether its instant is ahead of the service's clock. Such an instant orders nothing: whatever is said later would be taken
    /// for older. `ahead_ms`: how far the service's clock was ahead of ours when it was last seen.
    pub fn is_ahead(&self, ahead_ms: i64) -> bool {
        let ours_ms = self.received_ms.saturating_add(ahead_ms);
        // A clock that was never set says nothing.
        let ours_ms = (self.received_ms >= CLOCK_IS_SET_MS).then_some(ours_ms);
        let Some(service_ms) = self.report.service_ms.or(ours_ms) else {
            return false;
        };
        let latest_ms = service_ms.saturating_add(DATE_STEP_MS + AHEAD_MOST_MS);
        self.report
            .updated_at
            .is_some_and(|at| at.as_ms() > latest_ms)
    }

    /// The same without its instant, which is kept as text.
    #[must_use]
    pub fn undated(&self) -> Self {
        let mut undated = self.clone();
        let at = undated.report.updated_at.take();
        undated.report.updated_at_text = at.map(|at| at.to_string());
        undated
    }
}

/// An instant may be so far ahead of the service's clock, milliseconds: answers take time.
const AHEAD_MOST_MS: i64 = 5_000;
/// A `Date` leaves out what is less than a second (RFC 9110, 5.6.7), milliseconds.
const DATE_STEP_MS: i64 = 1_000;

/// Short texts stay; of a long one the beginning and a digest, so that unequal texts stay unequal and none fills the
/// history.
fn shorten(text: &mut String) {
    if text.len() <= LONGEST_TEXT {
        return;
    }
    let mark = URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()));
    let head: String = text.chars().take(LONGEST_TEXT / 4).collect();
    *text = format!("{head}… sha256 {mark}");
}
