//! A future that is seldom ready, awaited beside another that often is.
//!
//! A task that awaits several futures polls all of them whenever one was woken. With a thousand
//! watchers of one change, polling timers that are far from due costs more than sending the event.
//! This wrapper polls its future only after it was woken.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures::task::AtomicWaker;

/// Polls a future only after it was woken.
pub(crate) struct PollOnWake<F> {
    future: Pin<Box<F>>,
    bell: Arc<InnerWaker>,
}

/// The waker of the future inside; it wakes the task outside.
struct InnerWaker {
    rung: AtomicBool,
    task: AtomicWaker,
}

impl Wake for InnerWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl<F: Future> PollOnWake<F> {
    pub(crate) fn new(future: F) -> Self {
        Self {
            future: Box::pin(future),
            bell: Arc::new(InnerWaker {
                rung: AtomicBool::new(true),
                task: AtomicWaker::new(),
            }),
        }
    }
}

impl<F: Future> Future for PollOnWake<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // Registered first: a wake-up after the check finds the task.
        self.bell.task.register(context.waker());
        if !self.bell.rung.swap(false, Ordering::Acquire) {
            return Poll::Pending;
        }
        let waker = Waker::from(self.bell.clone());
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::poll_fn};

    use futures::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn the_future_is_polled_once_and_then_only_when_it_asks() {
        let polls = Cell::new(0);
        let (send, receive) = oneshot::channel();
        let mut receive = receive;
        let mut seldom = PollOnWake::new(poll_fn(|context| {
            polls.set(polls.get() + 1);
            receive.poll_unpin(context)
        }));
        for _ in 0..5 {
            assert_eq!((&mut seldom).now_or_never(), None);
        }
        assert_eq!(polls.get(), 1);
        send.send(7).unwrap();
        assert_eq!(seldom.await, Ok(7));
        assert_eq!(polls.get(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_waits_is_woken() {
        let sleep = tokio::time::sleep(std::time::Duration::from_secs(1));
        PollOnWake::new(sleep).await;
    }
}
