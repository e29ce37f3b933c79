//! Work that a request waits for and that does not end with it: hyper drops the request when its connection dies, and a
//! notification that was read must not depend on the sender's patience (A17).
//!
//! Nearly always the sender waits, and then the work is done in the request's own task: one of its own would cost a wake-up
//! and a trip through the runtime's queues each time. Only when the request is dropped the work becomes a task. Promises
//! that work which was begun is gone on with, unless the runtime itself ends.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::panics::contained;

/// The work. Done by whoever waits for it, or, when that is dropped, by the tasks.
pub(super) struct Outliving<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    /// `None` when it is done or has panicked.
    work: Option<Pin<Box<F>>>,
    tasks: TaskTracker,
}

impl<F> Outliving<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    pub(super) fn new(work: F, tasks: &TaskTracker) -> Self {
        Self {
            work: Some(Box::pin(work)),
            tasks: tasks.clone(),
        }
    }
}

impl<F> Future for Outliving<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // Taken out meanwhile: after a panic there is nothing to go on with.
        let mut work = self.work.take().expect("not polled after it was done");
        let polled = work.as_mut().poll(cx);
        if polled.is_pending() {
            self.work = Some(work);
        }
        polled
    }
}

impl<F> Drop for Outliving<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn drop(&mut self) {
        // Without a runtime it is the end of everything: what was handed to the writer is stored all the same.
        if let Some(work) = self.work.take()
            && let Ok(runtime) = Handle::try_current()
        {
            drop(self.tasks.spawn_on(contained(work), &runtime));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Notify;

    use super::*;

    /// Work in two steps, with what it has done and what lets it go on.
    fn work() -> (
        Arc<AtomicU32>,
        Arc<Notify>,
        impl Future<Output = u32> + Send,
    ) {
        let (done, go_on) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
        let (steps, wait) = (Arc::clone(&done), Arc::clone(&go_on));
        let work = async move {
            steps.fetch_add(1, Ordering::SeqCst);
            wait.notified().await;
            steps.fetch_add(1, Ordering::SeqCst);
            7
        };
        (done, go_on, work)
    }

    #[tokio::test]
    async fn who_waits_does_it_and_no_task_is_made() {
        let tasks = TaskTracker::new();
        let (done, go_on, work) = work();
        go_on.notify_one();
        assert_eq!(Outliving::new(work, &tasks).await, 7);
        assert_eq!((done.load(Ordering::SeqCst), tasks.len()), (2, 0));
    }

    #[tokio::test]
    async fn what_is_dropped_goes_on_from_where_it_was() {
        for begun in [false, true] {
            let tasks = TaskTracker::new();
            let (done, go_on, work) = work();
            let mut waiting = Box::pin(Outliving::new(work, &tasks));
            if begun {
                let polled = std::future::poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx)));
                assert!(polled.await.is_pending());
            }
            drop(waiting);
            assert_eq!(tasks.len(), 1);
            go_on.notify_one();
            tasks.close();
            tasks.wait().await;
            assert_eq!(done.load(Ordering::SeqCst), 2, "begun: {begun}");
        }
    }
}
