//! Threads that carry connections, one for each core.
//!
//! A connection stays on the thread that it was given to, and so does the connection to its pod:
//! nothing of a request waits for another thread, and no core is woken to look for work that is done
//! already. Without such threads connections are carried where they were accepted.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Resolver;

/// Where connections are carried. Cheap to copy; the threads end with the last copy.
#[derive(Debug, Clone)]
pub struct Lanes {
    /// For whoever accepts.
    pub resolver: Resolver,
    threads: Arc<Threads>,
}

#[derive(Debug)]
struct Threads {
    lanes: Vec<Lane>,
    next: AtomicUsize,
    _end: DropGuard,
}

/// One thread.
#[derive(Debug)]
struct Lane {
    /// With connections to pods that are of this thread alone.
    resolver: Resolver,
    runtime: Handle,
}

impl Lanes {
    /// So many threads for the connections of a resolver; with none, they are carried where they were
    /// accepted.
    pub fn open(resolver: Resolver, threads: usize) -> io::Result<Self> {
        let end = CancellationToken::new();
        let lanes = (0..threads).map(|number| lane(&resolver, number, end.clone()));
        let threads = Threads {
            lanes: lanes.collect::<io::Result<_>>()?,
            next: AtomicUsize::new(0),
            _end: end.drop_guard(),
        };
        Ok(Self {
            resolver,
            threads: Arc::new(threads),
        })
    }

    /// Gives a connection to the next thread in turn, as one of the tasks of the resolver.
    pub(super) fn carry<F>(&self, serve: impl FnOnce(Resolver) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let lanes = &self.threads.lanes;
        let turn = self.threads.next.fetch_add(1, Ordering::Relaxed);
        match turn.checked_rem(lanes.len()) {
            Some(number) => {
                let Lane { resolver, runtime } = &lanes[number];
                resolver.tasks.spawn_on(serve(resolver.clone()), runtime);
            }
            None => {
                self.resolver.tasks.spawn(serve(self.resolver.clone()));
            }
        }
    }

    /// Whether connections go to another thread than the one that accepts them.
    pub(super) fn is_elsewhere(&self) -> bool {
        !self.threads.lanes.is_empty()
    }
}

fn lane(resolver: &Resolver, number: usize, end: CancellationToken) -> io::Result<Lane> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let run = move || runtime.block_on(end.cancelled());
    thread::Builder::new()
        .name(format!("lane-{number}"))
        .spawn(run)?;
    let client = resolver.client.sibling();
    Ok(Lane {
        resolver: Resolver {
            client,
            ..resolver.clone()
        },
        runtime: handle,
    })
}
