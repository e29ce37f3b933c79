//! The road of a notification from its head and body to its durable commit, in one thread and without a socket, so that the
//! instructions it takes can be counted.

use hyper::body::Bytes;
use hyper::header::HeaderMap;

use crate::clock;
use crate::config::Settings;
use crate::invoice::ids::InvoiceRef;
use crate::invoice::transition::Decision;
use crate::ledger::direct::Direct;
use crate::listener::notification::Notification;
use crate::listener::presentation::{Carried, Presentations, Verdict};
use crate::parts;
use crate::secret::Secret;

/// A notification as it arrives.
#[derive(Clone, Debug)]
pub struct Arrived {
    /// The last segment of its path.
    pub reference: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// The road, on a ledger that nobody else serves.
pub struct Road {
    ledger: Direct,
    presentations: Presentations,
    /// A daemon that is logged in has an access token to hide.
    hidden: [Secret; 1],
}

impl Road {
    /// Opens the ledger that the settings name.
    pub fn open(settings: &Settings) -> Self {
        let directory = settings.state_dir.clone().expect("a state directory");
        let options = parts::ledger_options(settings, directory).expect("readable");
        Self {
            ledger: Direct::open(options).expect("a ledger"),
            presentations: Presentations::auto(),
            hidden: [Secret::new("shop:access-token-of-the-bench-0123456789")],
        }
    }

    /// What SQLite says of how durable the commits of this ledger's writer are: 2 is FULL.
    pub fn synchronous(&self) -> i64 {
        self.ledger.synchronous().expect("it is open")
    }

    /// Takes these notifications through one commit. Each must be authentic and advance its invoice. What is counted is
    /// told by this name, so it stays a call.
    #[inline(never)]
    pub fn take(&mut self, arrived: &[Arrived]) {
        let now_ms = clock::wall_ms();
        let batch = arrived.iter().map(|arrived| {
            let reference = InvoiceRef::parse(&arrived.reference).expect("a ref");
            let notification = Notification::read(&arrived.body).expect("a notification");
            let watched = self.ledger.watched(&reference).expect("read");
            let watched = watched.expect("a known ref");
            let token = watched.token.expect("its own key");
            let carried = Carried {
                headers: &arrived.headers,
                query: None,
                body: notification.object(),
                raw: &arrived.body,
            };
            let verdict = self.presentations.judge(&token, carried);
            assert!(matches!(verdict, Verdict::Right(_)), "{verdict:?}");
            (
                watched.key,
                notification.into_observation(&token, &self.hidden, now_ms),
            )
        });
        let decided = self.ledger.record(batch.collect()).expect("stored");
        let all = decided
            .iter()
            .all(|decision| *decision == Decision::Advance);
        assert!(all, "{decided:?}");
    }
}
