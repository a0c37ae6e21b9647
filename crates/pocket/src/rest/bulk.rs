//! Turns for work that grows with the number of objects: lists, and the initial events of a watch.
//!
//! Tasks run in the order in which they become ready. A thousand lists that are all ready would
//! make every other request wait for a slice of each of them. Here only a few are ready at a time,
//! each for a slice, and the others wait in line; so a request for one object waits for a few
//! slices at most, however many clients list everything.
//!
//! A turn is for computing alone. It is released while a slow client receives what was computed. If
//! the environment has a lane for bulk work, the work is done there.

use std::{sync::Arc, thread};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::environment::lane;

/// Objects from which work counts as bulk; less is done at once.
pub(crate) const BULK_THRESHOLD: usize = 200;

/// The turns of one server.
#[derive(Debug, Clone)]
pub(crate) struct Bulk(Arc<Semaphore>);

impl Bulk {
    /// Allows half of the machine's cores.
    pub(crate) fn new() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self(Arc::new(Semaphore::new((cores / 2).max(1))))
    }

    /// Waits for a turn, if work on this many objects needs one.
    pub(crate) async fn turn(&self, objects: usize) -> Option<SemaphorePermit<'_>> {
        if objects < BULK_THRESHOLD {
            return None;
        }
        lane::patient().await;
        // The semaphore is never closed.
        self.0.acquire().await.ok()
    }
}
