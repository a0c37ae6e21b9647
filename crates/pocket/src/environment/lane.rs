//! Two lanes for tasks: one for those who ask for little, one for those who ask for much.
//!
//! Tasks on one set of threads run in the order in which they become ready. A thousand clients who
//! take large lists keep them busy with encrypting and sending, a slice for each, and who asks for
//! one object waits behind all of these. So a task that is about to do much moves to threads that
//! let the others go first (see [`Spawn::spawn_patient`]), and comes back when it does little again.
//!
//! A task is carried by [`travel`]. What runs inside asks for its lane by [`patient`],
//! [`poll_patient`] and [`hurry`], which say nothing and do nothing for whoever is not carried.

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

/// The lane that a task is polled on, and the one that it wants.
#[derive(Debug, Clone, Copy)]
struct Now {
    here: Lane,
    wanted: Lane,
}

thread_local! {
    /// Of the task that this thread polls, if it is carried.
    static NOW: Cell<Option<Now>> = const { Cell::new(None) };
}

/// Resolves on the patient lane.
pub(crate) async fn patient() {
    poll_fn(poll_patient).await;
}

/// Ready on the patient lane; elsewhere the task moves there, and asks again.
pub(crate) fn poll_patient(context: &mut Context<'_>) -> Poll<()> {
    match NOW.get() {
        Some(now) if now.here == Lane::Quick => {
            NOW.set(Some(Now {
                wanted: Lane::Patient,
                ..now
            }));
            // Whoever is between here and the task may look only at what has asked for it.
            context.waker().wake_by_ref();
            Poll::Pending
        }
        Some(now) => {
            // Whatever it thought of going back is put off.
            NOW.set(Some(Now {
                wanted: Lane::Patient,
                ..now
            }));
            Poll::Ready(())
        }
        None => Poll::Ready(()),
    }
}

/// The task does little from now on.
pub(crate) fn hurry() {
    if let Some(now) = NOW.get()
        && now.here == Lane::Patient
    {
        NOW.set(Some(Now {
            wanted: Lane::Quick,
            ..now
        }));
    }
}

/// Carries a task to its end, each time on the lane that it wants.
pub(crate) async fn travel(spawner: Arc<dyn Spawn>, name: &'static str, task: BoxFuture<()>) {
    let mut carried = Carried::new(task);
    while !carried.go(Lane::Quick).await {
        let (back, home) = oneshot::channel();
        let away = async move {
            let ended = carried.go(Lane::Patient).await;
            // Nobody waits for it only if everything is coming to its end.
            let _ = back.send((carried, ended));
        };
        spawner.spawn_patient(name, Box::pin(away));
        match home.await {
            Ok((returned, false)) => carried = returned,
            Ok((_, true)) | Err(_) => return,
        }
    }
}

/// A task and its bell. What the task waits for rings the bell, which is the same on both lanes: a
/// part of the task that is not looked at on arrival is heard there nevertheless.
struct Carried {
    task: BoxFuture<()>,
    bell: Arc<Bell>,
    waker: Waker,
}

#[derive(Default)]
struct Bell(AtomicWaker);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.wake();
    }
}

impl Carried {
    fn new(task: BoxFuture<()>) -> Self {
        let bell = Arc::new(Bell::default());
        Self {
            task,
            waker: bell.clone().into(),
            bell,
        }
    }

    /// True at the end of the task, false when it wants to be on the other lane.
    async fn go(&mut self, here: Lane) -> bool {
        poll_fn(|context| {
            self.bell.0.register(context.waker());
            let post = Post::take(here);
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

/// This thread polls a carried task. Whatever it polled before, it goes on with, even after a panic.
struct Post {
    before: Option<Now>,
    here: Lane,
}

impl Post {
    fn take(here: Lane) -> Self {
        let before = NOW.replace(Some(Now { here, wanted: here }));
        Self { before, here }
    }

    fn wanted(&self) -> Lane {
        NOW.get().map_or(self.here, |now| now.wanted)
    }
}

impl Drop for Post {
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

    /// Runs a task on lanes; fails if it does not come to its end.
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
            // Looked at once, before the task moves, and then only after it has asked for it.
            let heard = super::super::Seldom::new({
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
