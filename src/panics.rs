//! What a panic ends: within one request that request, anywhere else the process, at once and with a code of its own.
//!
//! A daemon that lives on with a part of it dead looks well and does nothing. What was answered is stored, and a hook that runs
//! is found by the next start, so the process needs no goodbye: it ends where the panic is, before anything is unwound, and
//! whoever supervises it starts it anew. What is told of the panic says nothing of the data it fell over: see [`harmless`].

use std::any::Any;
use std::cell::Cell;
use std::panic::PanicHookInfo;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

/// The process ends in this time after a panic, whether anybody takes its last line or not.
const ENDS_WITHIN: Duration = Duration::from_millis(900);
/// Characters of a panic's message that are told.
const TOLD: usize = 200;

thread_local! {
    /// What runs on this thread now is of one request.
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// From now on a panic outside of [`contained`] ends the process with this code, and each is told in one line of the log, which
/// `flush` has written. After the log was started.
pub(crate) fn end_with(code: u8, flush: fn()) {
    std::panic::set_hook(Box::new(move |panic| {
        let (place, said) = (place(panic), harmless(panic.payload()));
        if CONTAINED.get() {
            tracing::error!(place = %place, "a request panicked at {place}: {said}");
            return;
        }
        // Somebody may not read the log, or the panic be within it. Without a thread the line is waited for.
        let late = thread::Builder::new().spawn(move || {
            thread::sleep(ENDS_WITHIN);
            end(code);
        });
        drop(late);
        let thread = thread::current();
        let name = thread.name().unwrap_or("a thread without a name");
        tracing::error!(
            place = %place,
            thread = name,
            "tilld has a bug and ends, to be started anew: `{name}` panicked at {place}: {said}"
        );
        flush();
        end(code);
    }));
}

#[expect(
    clippy::exit,
    reason = "nothing may go on after a panic, and its code says why"
)]
fn end(code: u8) {
    std::process::exit(code.into());
}

fn place(panic: &PanicHookInfo<'_>) -> String {
    panic.location().map_or_else(
        || "a place unknown".to_owned(),
        |at| format!("{}:{}:{}", at.file(), at.line(), at.column()),
    )
}

/// As much of the message as tells nothing of the data at hand. Text that stands in the program is told as it is; of one that was
/// put together, what comes before the first quoted value: the library quotes a text that it could not cut, and an error that
/// nobody expected, to the letter.
fn harmless(payload: &(dyn Any + Send)) -> String {
    let cut = |text: &str| text.chars().take(TOLD).collect::<String>();
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        return cut(text);
    }
    let Some(text) = payload.downcast_ref::<String>() else {
        return "something that is no text".to_owned();
    };
    match text.split_once(['`', '"', '\'']) {
        Some((before, _quoted)) => cut(&format!("{before}…")),
        None => cut(text),
    }
}

/// A future of one request: its panic is that request's.
pub(crate) const fn contained<F: Future>(request: F) -> Contained<F> {
    Contained(request)
}

/// See [`contained`].
#[derive(Debug)]
pub(crate) struct Contained<F>(F);

impl<F: Future + Unpin> Future for Contained<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _within = Within(CONTAINED.replace(true));
        Pin::new(&mut self.0).poll(cx)
    }
}

/// Work for another thread. Its panic is of the request that it is made in, if it is made in one; whoever waits for it there
/// passes it on.
pub(crate) fn carried<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let of_a_request = CONTAINED.get();
    move || {
        let _within = Within(CONTAINED.replace(of_a_request));
        work()
    }
}

/// Says what was before when it is dropped, by a panic too.
struct Within(bool);

impl Drop for Within {
    fn drop(&mut self) {
        CONTAINED.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn the_data_at_hand_is_not_told() {
        let told = |panics: &dyn Fn()| {
            let panic = catch_unwind(AssertUnwindSafe(panics)).expect_err("it panics");
            harmless(panic.as_ref())
        };
        let secret = String::from("s3crét");
        let broken: Result<(), String> = Err(secret.clone());
        let cut = |text: &str| {
            assert!(!text.contains("s3cr"), "{text}");
            text.to_owned()
        };
        assert_eq!(
            told(&|| panic!("the writer `ledger` ended")),
            "the writer `ledger` ended"
        );
        assert_eq!(
            cut(&told(&|| broken.clone().expect("it is stored"))),
            "it is stored: …"
        );
        let within = told(&|| {
            std::hint::black_box(secret.split_at(5));
        });
        cut(&within);
        assert_eq!(
            told(&|| {
                std::hint::black_box([1, 2].to_vec().remove(secret.len()));
            }),
            "removal index (is 7) should be < len (is 2)"
        );
        assert_eq!(
            told(&|| std::panic::panic_any(7)),
            "something that is no text"
        );
        let long = told(&|| panic!("{}", "x".repeat(5_000)));
        assert_eq!(long.chars().count(), TOLD);
    }

    #[tokio::test]
    async fn what_follows_a_request_is_not_contained() {
        let seen = || CONTAINED.get();
        assert!(!seen());
        assert!(contained(Box::pin(async { seen() })).await);
        let panics = async { contained(Box::pin(async { panic!("a bug") })).await };
        let ended = tokio::spawn(panics).await;
        assert!(ended.is_err_and(|error| error.is_panic()));
        assert!(!seen());
    }

    #[tokio::test]
    async fn what_a_request_has_done_elsewhere_is_of_that_request() {
        let elsewhere = || thread::spawn(carried(|| CONTAINED.get())).join();
        let of_a_request = contained(Box::pin(async { elsewhere() })).await;
        assert!(of_a_request.expect("no panic"));
        assert!(!elsewhere().expect("no panic"));
        // And no word of it stays on the thread, which others use next.
        let work = contained(Box::pin(async { carried(|| panic!("a bug")) })).await;
        let ended = thread::spawn(move || {
            let panicked = catch_unwind(AssertUnwindSafe(work)).is_err();
            (panicked, CONTAINED.get())
        });
        assert_eq!(ended.join().expect("caught"), (true, false));
    }
}
