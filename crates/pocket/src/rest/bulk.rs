//! Turns for work that grows with the number of objects: lists, and what a watch begins with.
//!
//! Tasks run in the order in which they become ready. A thousand lists that are all ready would
//! make everybody else wait for a slice of each of them. Here only a few are ready at a time, each
//! for a slice, and the others wait in line; so who asks for one object waits for a few slices at
//! most, however many ask for everything.
//!
//! A turn is for computing alone. Nobody keeps one while a client is slow to take what was computed.
//! Where there is a lane for who asks for much, it is taken there.

use std::{sync::Arc, thread};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::environment::lane;

/// What is smaller than this many objects is done at once.
pub(crate) const MANY: usize = 200;

/// The turns of one server.
#[derive(Debug, Clone)]
pub(crate) struct Bulk(Arc<Semaphore>);

impl Bulk {
    /// Leaves half of the machine to others.
    pub(crate) fn new() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self(Arc::new(Semaphore::new((cores / 2).max(1))))
    }

    /// Waits for a turn, if work on so many objects needs one.
    pub(crate) async fn turn(&self, objects: usize) -> Option<SemaphorePermit<'_>> {
        if objects < MANY {
            return None;
        }
        lane::patient().await;
        // Never closed, so there is always a turn.
        self.0.acquire().await.ok()
    }
}
