//! A deadline is judged after the news that waits. A process that was stopped for a while finds both at once: what came
//! meanwhile, still unread, and deadlines that passed. Relies on tokio's clock. Promises that what came in time is never called
//! late, and that a pause of the process does not count as the other's delay.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// How long reading what waits takes at most: it passes a task or two on its way.
const READ_WITHIN: Duration = Duration::from_millis(100);

/// A deadline that is noticed so late was passed while this process did not run: no machine is that slow for a timer alone.
const PAUSED_AFTER: Duration = Duration::from_millis(250);

/// The news, if it comes before the deadline or waits to be read then; `None` otherwise. After a pause it has as long again as
/// the pause went beyond the deadline: what it comes from may have been paused as well.
pub(crate) async fn before<T>(deadline: Instant, news: impl Future<Output = T>) -> Option<T> {
    let (mut news, mut until, mut is_read) = (pin!(news), deadline, false);
    loop {
        if let Ok(news) = timeout_at(until, news.as_mut()).await {
            return Some(news);
        }
        let now = Instant::now();
        let late = now.saturating_duration_since(until);
        if is_read && late < PAUSED_AFTER {
            return None;
        }
        is_read = true;
        let more = if late < PAUSED_AFTER {
            READ_WITHIN
        } else {
            late
        };
        until = now + more.max(READ_WITHIN);
    }
}

/// [`before`] a time from now on.
pub(crate) async fn within<T>(longest: Duration, news: impl Future<Output = T>) -> Option<T> {
    before(Instant::now() + longest, news).await
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tokio::sync::oneshot;
    use tokio::time::sleep;

    use super::*;

    /// The runtime stands still while the deadline passes; the news then takes the way through a task of its own.
    #[tokio::test]
    async fn what_came_while_the_process_stood_still_is_not_late() {
        for longest in [20, 400] {
            let (told, news) = oneshot::channel();
            let teller = tokio::spawn(async move {
                sleep(Duration::from_millis(10)).await;
                tokio::task::yield_now().await;
                told.send(()).unwrap_or_default();
            });
            let waits = within(Duration::from_millis(longest), news);
            let (came, ()) = tokio::join!(waits, async {
                tokio::task::yield_now().await;
                thread::sleep(Duration::from_millis(500));
            });
            assert!(came.is_some(), "{longest} ms");
            teller.await.expect("told");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_come_is_late_soon_after_the_deadline() {
        let began = Instant::now();
        let never = std::future::pending::<()>();
        assert!(within(Duration::from_secs(5), never).await.is_none());
        assert!(began.elapsed() <= Duration::from_secs(5) + READ_WITHIN * 2);
    }
}
