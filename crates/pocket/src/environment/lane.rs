//! Two lanes for tasks: one for small requests, one for bulk work.
//!
//! Tasks on one set of threads run in the order in which they become ready. A thousand clients that
//! fetch large lists keep the threads busy with encrypting and sending, a slice for each, and a
//! request for one object waits behind all of these. So a task that is about to do much work moves
//! to low-priority threads (see [`Spawn::spawn_patient`]), and comes back when it does little
//! again.
//!
//! A task is driven by [`travel`]. Code inside it requests its lane by [`patient`],
//! [`poll_patient`] and [`hurry`], which do nothing in a task that `travel` does not drive.

use std::{
    cell::Cell,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use futures::task::AtomicWaker;
use tokio::sync::oneshot;

use super::{BoxFuture, Spawn};

/// Where a task is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    Quick,
    Patient,
}

/// The lane that a task is polled on, and the one that it requested.
#[derive(Debug, Clone, Copy)]
struct CurrentLane {
    here: Lane,
    wanted: Lane,
}

thread_local! {
    /// The lanes of the task that this thread polls, if [`travel`] drives it.
    static NOW: Cell<Option<CurrentLane>> = const { Cell::new(None) };
}

/// Resolves on the patient lane.
pub(crate) async fn patient() {
    poll_fn(poll_patient).await;
}

/// Ready on the patient lane; elsewhere the task moves there and is polled again.
pub(crate) fn poll_patient(context: &mut Context<'_>) -> Poll<()> {
    match NOW.get() {
        Some(now) if now.here == Lane::Quick => {
            NOW.set(Some(CurrentLane {
                wanted: Lane::Patient,
                ..now
            }));
            // A combinator between here and the task may poll only the futures that were woken.
            context.waker().wake_by_ref();
            Poll::Pending
        }
        Some(now) => {
            // Cancels an earlier request to go back.
            NOW.set(Some(CurrentLane {
                wanted: Lane::Patient,
                ..now
            }));
            Poll::Ready(())
        }
        None => Poll::Ready(()),
    }
}

/// Requests the normal lane: the task does little from now on.
pub(crate) fn hurry() {
    if let Some(now) = NOW.get()
        && now.here == Lane::Patient
    {
        NOW.set(Some(CurrentLane {
            wanted: Lane::Quick,
            ..now
        }));
    }
}

/// Drives a task to its end, each time on the lane that it requested.
pub(crate) async fn travel(spawner: Arc<dyn Spawn>, name: &'static str, task: BoxFuture<()>) {
    let mut carried = DrivenTask::new(task);
    while !carried.go(Lane::Quick).await {
        let (back, home) = oneshot::channel();
        let away = async move {
            let ended = carried.go(Lane::Patient).await;
            // The receiver is gone only when the server is shutting down.
            let _ = back.send((carried, ended));
        };
        spawner.spawn_patient(name, Box::pin(away));
        match home.await {
            Ok((returned, false)) => carried = returned,
            Ok((_, true)) | Err(_) => return,
        }
    }
}

/// A task and its waker. The waker is the same on both lanes, so that a wake-up of a part of the
/// task that is not polled on arrival is not lost.
struct DrivenTask {
    task: BoxFuture<()>,
    bell: Arc<LaneWaker>,
    waker: Waker,
}

#[derive(Default)]
struct LaneWaker(AtomicWaker);

impl Wake for LaneWaker {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.wake();
    }
}

impl DrivenTask {
    fn new(task: BoxFuture<()>) -> Self {
        let bell = Arc::new(LaneWaker::default());
        Self {
            task,
            waker: bell.clone().into(),
            bell,
        }
    }

    /// Polls the task on `here`. True at the end of the task, false when it requests the other
    /// lane.
    async fn go(&mut self, here: Lane) -> bool {
        poll_fn(|context| {
            self.bell.0.register(context.waker());
            let post = LaneGuard::take(here);
            let polled = self
                .task
                .as_mut()
                .poll(&mut Context::from_waker(&self.waker));
            match polled {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending if post.wanted() != here => Poll::Ready(false),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}

/// Marks that this thread polls a driven task. The previous mark is restored on drop, even after a
/// panic.
struct LaneGuard {
    before: Option<CurrentLane>,
    here: Lane,
}

impl LaneGuard {
    fn take(here: Lane) -> Self {
        let before = NOW.replace(Some(CurrentLane { here, wanted: here }));
        Self { before, here }
    }

    fn wanted(&self) -> Lane {
        NOW.get().map_or(self.here, |now| now.wanted)
    }
}

impl Drop for LaneGuard {
    fn drop(&mut self) {
        NOW.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use tokio::{
        runtime::{Builder, Handle},
        sync::Notify,
        time::timeout,
    };

    use super::*;

    /// Patient tasks run on a thread of their own, called `patient`.
    struct Lanes {
        quick: Handle,
        patient: Handle,
    }

    impl Spawn for Lanes {
        fn spawn(&self, _: &'static str, task: BoxFuture<()>) {
            self.quick.spawn(task);
        }

        fn spawn_patient(&self, _: &'static str, task: BoxFuture<()>) {
            self.patient.spawn(task);
        }
    }

    fn is_patient() -> bool {
        thread::current().name() == Some("patient")
    }

    /// Drives a task on the lanes; fails if it does not end.
    fn carried(task: impl Future<Output = ()> + Send + 'static) {
        let runtime = |name: &str| {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(1).thread_name(name).enable_time();
            builder.build().unwrap()
        };
        let (quick, patient) = (runtime("quick"), runtime("patient"));
        let lanes = Arc::new(Lanes {
            quick: quick.handle().clone(),
            patient: patient.handle().clone(),
        });
        let travelling = quick.spawn(travel(lanes, "task", Box::pin(task)));
        quick.block_on(async {
            let ended = timeout(Duration::from_secs(10), travelling).await;
            ended.expect("it waits for ever").unwrap();
        });
    }

    #[test]
    fn a_task_moves_to_where_it_wants_to_be_and_back() {
        carried(async {
            for _ in 0..3 {
                assert!(!is_patient());
                patient().await;
                assert!(is_patient());
                hurry();
                patient().await;
                tokio::task::yield_now().await;
                assert!(is_patient(), "it had more to do");
                hurry();
                tokio::task::yield_now().await;
            }
        });
    }

    #[test]
    fn what_the_task_waited_for_on_one_lane_wakes_it_on_the_other() {
        carried(async {
            let bell = Arc::new(Notify::new());
            // Polled once before the task moves, and then only after it was woken.
            let heard = super::super::PollOnWake::new({
                let bell = bell.clone();
                async move { bell.notified().await }
            });
            let mut heard = Box::pin(heard);
            assert!(futures::poll!(&mut heard).is_pending());
            patient().await;
            thread::spawn(move || bell.notify_one());
            heard.await;
            assert!(is_patient());
        });
    }

    #[tokio::test]
    async fn who_is_not_carried_stays() {
        patient().await;
        hurry();
    }
}
