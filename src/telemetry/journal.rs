//! Events in systemd's journal, by its own protocol: a datagram for each, with fields that can be asked for.
//!
//! `journalctl TILLD_ORDER_ID=1042` finds an order, `-p warning` what went wrong. The crate for it sends in the thread that has
//! something to say, which waits when the journal is behind, and does not escape; here a datagram is made and queued like any
//! line. Values are escaped, so each is one line and needs none of the protocol's binary forms.

use std::env;
use std::fmt::{self, Write as _};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::fstat;
use rustix::stdio::stderr;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context, Layer};

use super::escape;
use super::queue::{Batch, Queue, Sink};

/// Where the journal hears.
const SOCKET: &str = "/run/systemd/journal/socket";
/// What systemd names the stream by that it made stderr, `DEVICE:INODE`.
const STREAM: &str = "JOURNAL_STREAM";
/// Bytes of one value. What tilld says itself is far shorter.
const LONGEST_VALUE: usize = 8 * 1024;
/// Bytes of one event: a datagram the kernel takes by itself.
const LONGEST_EVENT: usize = 64 * 1024;
/// Fields that are the reason for a line or the way out: said in the text too, since that is all `journalctl` shows by itself.
const SAID: [&str; 3] = ["error", "reason", "hint"];

/// The journal.
pub(super) struct Journal {
    socket: UnixDatagram,
    at: PathBuf,
}

impl Journal {
    /// The journal, when stderr is its stream and it can be reached.
    pub(super) fn of_stderr() -> Option<Self> {
        let stream = env::var(STREAM).ok()?;
        let found = fstat(stderr()).ok()?;
        if stream != format!("{}:{}", found.st_dev, found.st_ino) {
            return None;
        }
        let at = address();
        let socket = UnixDatagram::unbound().ok()?;
        // Only to see whether anybody hears there; later datagrams name the place, which outlives a journal started anew.
        UnixDatagram::unbound().ok()?.connect(&at).ok()?;
        Some(Self { socket, at })
    }
}

/// The journal's address; a test's stand-in where assertions are looked at.
fn address() -> PathBuf {
    if cfg!(debug_assertions)
        && let Some(other) = env::var_os("TILLD_JOURNAL")
    {
        return other.into();
    }
    SOCKET.into()
}

impl Sink for Journal {
    fn put(&mut self, batch: &Batch) -> usize {
        batch
            .pieces()
            .filter(|event| self.socket.send_to(event, &self.at).is_err())
            .count()
    }
}

/// Puts each event as a datagram into the queue.
pub(super) fn layer(queue: Arc<Queue>) -> Box<dyn Layer<Registry> + Send + Sync> {
    ToJournal(queue).boxed()
}

struct ToJournal(Arc<Queue>);

impl<S: Subscriber> Layer<S> for ToJournal {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut datagram = Datagram {
            text: format!(
                "PRIORITY={}\nSYSLOG_IDENTIFIER=tilld\nTILLD_MODULE={}\n",
                priority(*metadata.level()),
                metadata.target()
            ),
            message: String::new(),
            said: Vec::new(),
        };
        event.record(&mut datagram);
        self.0.push(datagram.whole().as_bytes());
    }
}

/// As syslog numbers them.
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

struct Datagram {
    text: String,
    message: String,
    /// What may have to be said in the text too.
    said: Vec<(&'static str, String)>,
}

impl Datagram {
    fn take(&mut self, field: &Field, value: &str) {
        let value = cut(&escape(value)).to_owned();
        let name = field.name();
        if name == "message" {
            self.message = value;
            return;
        }
        if self.text.len() + name.len() + value.len() < LONGEST_EVENT {
            self.text.push_str("TILLD_");
            self.text.extend(name.chars().map(letter));
            self.text.extend(["=", &value, "\n"]);
        }
        if SAID.contains(&name) {
            self.said.push((name, value));
        }
    }

    fn whole(mut self) -> String {
        for (name, value) in self.said {
            if self.message.contains(&value) {
                continue;
            }
            let said = match name {
                "hint" => write!(self.message, " (hint: {value})"),
                _ => write!(self.message, ": {value}"),
            };
            // Writing into a String cannot fail.
            said.unwrap_or_default();
        }
        self.text.extend(["MESSAGE=", &self.message, "\n"]);
        self.text
    }
}

/// A field's name has capitals, digits and underscores.
fn letter(c: char) -> char {
    if c.is_ascii_alphanumeric() {
        c.to_ascii_uppercase()
    } else {
        '_'
    }
}

fn cut(value: &str) -> &str {
    let mut end = value.len().min(LONGEST_VALUE);
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    value.get(..end).unwrap_or_default()
}

impl Visit for Datagram {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.take(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::telemetry::queue;

    /// What the events of `logs` look like to the journal.
    fn logged(logs: impl FnOnce()) -> Vec<String> {
        let dir = tempfile::tempdir().expect("a directory");
        let at = dir.path().join("socket");
        let hears = UnixDatagram::bind(&at).expect("a socket");
        let socket = UnixDatagram::unbound().expect("a socket");
        let queue = Arc::new(Queue::default());
        queue::start(&queue, Journal { socket, at }).expect("a thread");
        let subscriber = tracing_subscriber::registry().with(layer(Arc::clone(&queue)));
        tracing::subscriber::with_default(subscriber, logs);
        queue.flush(std::time::Duration::from_secs(10));
        hears.set_nonblocking(true).expect("an option");
        let mut space = vec![0; LONGEST_EVENT * 2];
        let mut events = Vec::new();
        while let Ok(read) = hears.recv(&mut space) {
            let event = space.get(..read).expect("read");
            events.push(String::from_utf8(event.to_vec()).expect("text"));
        }
        events
    }

    #[test]
    fn an_event_has_its_fields_and_cannot_forge_another() {
        let order = "a\nPRIORITY=0\u{1b}[31m\u{202e}";
        let events = logged(|| {
            tracing::warn!(order.id = %order, event.seq = 7, "order {order} is paid");
            tracing::error!(reason = "gone", hint = "look", "the disk failed");
            tracing::info!(reason = "gone", "it is gone");
            tracing::debug!(long = "ж".repeat(100_000), "long");
        });
        let [paid, failed, gone, long] = events.as_slice() else {
            panic!("{events:?}");
        };
        let escaped = "a\\nPRIORITY=0\\u001b[31m\\u202e";
        let wanted = format!(
            "PRIORITY=4\nSYSLOG_IDENTIFIER=tilld\nTILLD_MODULE={}\nTILLD_ORDER_ID={escaped}\nTILLD_EVENT_SEQ=7\n\
             MESSAGE=order {escaped} is paid\n",
            module_path!()
        );
        assert_eq!(*paid, wanted);
        assert!(
            failed.ends_with("MESSAGE=the disk failed: gone (hint: look)\n"),
            "{failed}"
        );
        assert!(failed.starts_with("PRIORITY=3\n"), "{failed}");
        assert!(gone.ends_with("MESSAGE=it is gone\n"), "{gone}");
        assert!(long.ends_with("MESSAGE=long\n") && long.len() < LONGEST_VALUE + 200);
    }
}
