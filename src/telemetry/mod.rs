//! Log lines on stderr, or events in the journal. What strangers wrote is escaped, and no library but tilld itself is heard below `info`, for at
//! `debug` and `trace` HTTP and TLS libraries write headers and bodies, and with them tokens.

mod journal;
mod log_rate;
mod queue;
mod stamp;

pub(crate) use self::log_rate::LogRate;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::reload;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

use self::journal::Journal;
use self::queue::{Line, Queue, Stderr};
use self::stamp::Stamp;

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Someone must act.
    Error,
    /// Something recovered.
    Warn,
    /// One line per event, delivery, start and stop.
    #[default]
    Info,
    /// Every step.
    Debug,
    /// Everything.
    Trace,
}

/// How a log line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Level {
    const fn filter(self) -> LevelFilter {
        match self {
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
            Self::Trace => LevelFilter::TRACE,
        }
    }
}

/// What decides how much is logged, once logging was started.
static FILTER: OnceLock<reload::Handle<Targets, Registry>> = OnceLock::new();

/// What is logged goes through here, once a daemon logs.
static QUEUE: OnceLock<Arc<Queue>> = OnceLock::new();

/// Starts logging to stderr, at once and in the thread that has something to say. Once per process. `now` tells the time in
/// microseconds since 1970.
///
/// # Errors
/// When logging was started before.
pub(crate) fn init(level: Level, format: Format, now: fn() -> u64) -> Result<(), TryInitError> {
    begin(layer(format, now, || Escaping(io::stderr().lock())), level)
}

/// Starts logging as a daemon does: whoever has something to say never waits for who reads it. Under systemd, and unless JSON
/// is wanted, events go to the journal with their fields; else lines go to stderr. See [`flush`].
///
/// # Errors
/// When logging was started before, or its thread cannot be.
pub(crate) fn init_daemon(
    level: Level,
    format: Format,
    now: fn() -> u64,
) -> Result<(), CannotStart> {
    let journal = match format {
        Format::Text => Journal::of_stderr(),
        Format::Json => None,
    };
    let queue = Arc::new(Queue::default());
    let own = Arc::clone(&queue);
    let layer = if journal.is_some() {
        journal::layer(own)
    } else {
        layer(format, now, move || Escaping(Line(Arc::clone(&own))))
    };
    match journal {
        Some(journal) => queue::start(&queue, journal),
        None => queue::start(&queue, Stderr::default()),
    }
    .map_err(CannotStart::Thread)?;
    begin(layer, level)?;
    // Only the first start of logging comes so far.
    QUEUE.get_or_init(|| queue);
    Ok(())
}

/// Why a daemon's log was not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CannotStart {
    /// Its thread cannot be.
    #[error("could not start the thread of the log")]
    Thread(#[source] io::Error),
    /// It was started before.
    #[error("logging was started before")]
    Twice(#[from] TryInitError),
}

/// Waits until all that was logged is out, but no longer than this: at the end of a process, whoever does not read its log
/// must not keep it.
pub(crate) fn flush(within: Duration) {
    if let Some(queue) = QUEUE.get() {
        queue.flush(within);
    }
}

fn begin(layer: Box<dyn Layer<Registry> + Send + Sync>, level: Level) -> Result<(), TryInitError> {
    let (filter, handle) = reload::Layer::new(targets(level));
    tracing_subscriber::registry()
        .with(layer.with_filter(filter))
        .try_init()?;
    // Only the first start of logging succeeds.
    FILTER.get_or_init(|| handle);
    Ok(())
}

/// Logs so much from now on.
///
/// # Errors
/// When logging was not started.
pub(crate) fn set_level(level: Level) -> Result<(), NotStarted> {
    let filter = FILTER.get().ok_or(NotStarted)?;
    filter.reload(targets(level)).map_err(|_gone| NotStarted)
}

/// Nothing is logged.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("logging was not started")]
pub(crate) struct NotStarted;

/// Writes events in this format to what `writer` makes.
fn layer<W>(format: Format, now: fn() -> u64, writer: W) -> Box<dyn Layer<Registry> + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_timer(Stamp(now));
    match format {
        Format::Text => layer.with_ansi(false).boxed(),
        Format::Json => layer.json().boxed(),
    }
}

/// tilld at the level asked for; every library at `info` at most, the scheduler at `warn` (it logs each tick).
fn targets(level: Level) -> Targets {
    let level = level.filter();
    Targets::new()
        .with_default(level.min(LevelFilter::INFO))
        .with_target("tilld", level)
        .with_target("tokio_cron_scheduler", level.min(LevelFilter::WARN))
}

/// Escapes whole lines. Relies on the fmt layer writing each line, its newline included, in one call.
struct Escaping<W>(W);

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let (text, end) = match line.strip_suffix(b"\n") {
            Some(text) => (text, "\n"),
            None => (line, ""),
        };
        if is_plain(text) {
            self.0.write_all(line)?;
            return Ok(line.len());
        }
        let text = String::from_utf8_lossy(text);
        // Written at once, so that it costs one call of the system and no other line comes in between.
        match (&text, escape(&text)) {
            (Cow::Borrowed(_), Cow::Borrowed(_)) => self.0.write_all(line)?,
            (_, escaped) => self.0.write_all([&escaped, end].concat().as_bytes())?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Text from elsewhere made harmless for a terminal, a page and a log file: every control character, C1 included, every mark
/// that turns text, every character that is not seen and every line separator is spelled out as JSON spells it (`\n`,
/// `\u00ad`), so that the result may also stand inside a JSON string. Case A39.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if is_plain(text.as_bytes()) || !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_harmful(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing into a String cannot fail.
                    write!(out, "\\u{unit:04x}").unwrap_or_default();
                }
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A word from elsewhere where people read it. One with blanks at an end stands in quotes: else `paid ` would look like `paid`.
pub(crate) fn word(text: &str) -> Cow<'_, str> {
    if text.trim() == text {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("\"{text}\""))
}

/// A value as JSON in which all is seen that is there: `pa\u00adid` and not `paid`. Whoever parses it has the exact text.
pub(crate) fn visible_json(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("answers are plain data");
    match escape(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => escaped,
    }
}

/// True when there is nothing but printable ASCII, as in nearly every line. All of it is looked at, many bytes at once, which
/// takes a hundredth of a look at each character.
fn is_plain(text: &[u8]) -> bool {
    let is_other = |byte: &u8| !matches!(byte, b' '..=b'~');
    !text
        .iter()
        .fold(false, |found, byte| found | is_other(byte))
}

/// Controls, bidirectional marks and overrides, line separators, blanks that are none, and all that Unicode shows nothing for
/// (`Default_Ignorable_Code_Point`): soft hyphens, joiners, fillers, variation selectors, tags.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{205f}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// An error and its causes in one line, for a log line or a stored note. `Display` never repeats the cause.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::Level as Of;

    use super::*;

    #[test]
    fn libraries_are_never_heard_below_info() {
        let targets = targets(Level::Trace);
        assert!(targets.would_enable("tilld::listener", &Of::TRACE));
        for library in ["hyper", "hyper_util", "reqwest", "rustls", "h2", "mio"] {
            assert!(targets.would_enable(library, &Of::INFO), "{library}");
            assert!(!targets.would_enable(library, &Of::DEBUG), "{library}");
        }
        assert!(!targets.would_enable("tokio_cron_scheduler::job", &Of::INFO));
    }

    /// A line is one write: whoever reads the log beside it never sees half of one, and nothing comes between.
    #[test]
    fn a_line_is_written_at_once() {
        struct Counted(Vec<usize>);
        impl Write for Counted {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.push(bytes.len());
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for (line, written) in [("plain\n", 6), ("a\tb\n", 5), ("no end", 6), ("\n", 1)] {
            let mut escaping = Escaping(Counted(Vec::new()));
            let told = escaping.write(line.as_bytes()).expect("counted");
            assert_eq!(told, line.len(), "{line:?}");
            assert_eq!(escaping.0.0, [written], "{line:?}");
        }
    }

    /// What one event with this order id looks like.
    fn logged(format: Format, order: &str) -> String {
        let sink = Arc::new(Mutex::new(Vec::new()));
        let writer = {
            let sink = Arc::clone(&sink);
            move || Escaping(Sink(Arc::clone(&sink)))
        };
        let subscriber = tracing_subscriber::registry().with(layer(format, || 0, writer));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(order.id = %order, order.debug = ?order, "order {order} is paid");
        });
        let bytes = sink.lock().expect("no panic inside").clone();
        String::from_utf8(bytes).expect("text")
    }

    /// A writer that can be looked at afterwards. The test owns the lock's content.
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic inside").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nothing_that_is_not_seen_is_left_and_a_parser_has_it_all() {
        for hidden in [
            "\u{ad}",
            "\u{200d}",
            "\u{fe0f}",
            "\u{3164}",
            "\u{e0061}",
            "\u{7f}",
        ] {
            let status = format!("pa{hidden}id");
            let json = visible_json(&status);
            assert!(!json.contains(hidden), "{json}");
            assert_ne!(json, "\"paid\"");
            let read: String = serde_json::from_str(&json).expect("JSON");
            assert_eq!(read, status);
        }
        // What people write is left alone.
        for plain in ["Магазин «Ромашка»", "5\u{a0}000\u{202f}₽", "日本\u{3000}語"]
        {
            assert_eq!(escape(plain), plain);
        }
    }

    #[test]
    fn blanks_at_an_end_are_seen() {
        for plain in ["paid", "in work", "\"paid\"", ""] {
            assert_eq!(word(plain), plain);
        }
        for hidden in ["paid ", " paid", "paid\u{a0}", "paid\u{3000}", " "] {
            assert_eq!(word(hidden), format!("\"{hidden}\""));
        }
    }

    // Case A39: what a stranger wrote must not forge a line or reach the terminal's controls.
    #[test]
    fn a_forged_line_stays_one_line() {
        let order = "a\n2025-01-01 ERROR forged\r\t\u{1b}[31m\u{7f}\u{9b}\u{202e}\u{2028}";
        for format in [Format::Text, Format::Json] {
            let line = logged(format, order);
            let line = line.strip_suffix('\n').expect("one line");
            assert!(!line.chars().any(is_harmful), "{format:?}: {line}");
            assert!(line.contains("forged"), "{format:?}: {line}");
            assert!(
                line.contains("1970-01-01T00:00:00.000000Z"),
                "{format:?}: {line}"
            );
        }
    }

    #[test]
    fn a_json_line_is_json() {
        let line = logged(Format::Json, "a\n\u{9b}b");
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let fields = line.get("fields").expect("fields");
        assert_eq!(fields.get("order.id"), Some(&"a\n\u{9b}b".into()));
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        assert!(matches!(escape("заявка №7 — ok\\n 👍"), Cow::Borrowed(_)));
    }
}
