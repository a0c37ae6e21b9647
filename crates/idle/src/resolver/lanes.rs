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

use super::{
    Resolver,
    net::{Handed, Stream},
};

/// Threads that wait for connections. Cheap to copy; they end with the last copy.
#[derive(Debug, Clone, Default)]
pub struct Threads(Option<Arc<Running>>);

#[derive(Debug)]
struct Running {
    runtimes: Vec<Handle>,
    _end: DropGuard,
}

/// Where the connections of a resolver are carried. Cheap to copy.
#[derive(Debug, Clone)]
pub struct Lanes {
    /// For whoever accepts.
    pub resolver: Resolver,
    each: Arc<[Lane]>,
    next: Arc<AtomicUsize>,
    _threads: Threads,
}

/// One thread.
#[derive(Debug)]
struct Lane {
    /// With connections to pods that are of this thread alone.
    resolver: Arc<Resolver>,
    runtime: Handle,
}

impl Threads {
    /// One for each core that this process may use.
    pub fn for_all_cores() -> io::Result<Self> {
        Self::start(thread::available_parallelism()?.get())
    }

    /// So many.
    pub fn start(count: usize) -> io::Result<Self> {
        let end = CancellationToken::new();
        // Those that have started also end if another cannot start.
        let guard = end.clone().drop_guard();
        let runtimes = (0..count).map(|number| start(number, end.clone()));
        Ok(Self(Some(Arc::new(Running {
            runtimes: runtimes.collect::<io::Result<_>>()?,
            _end: guard,
        }))))
    }
}

fn start(number: usize, end: CancellationToken) -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name(format!("lane-{number}"))
        .spawn(move || runtime.block_on(end.cancelled()))?;
    Ok(handle)
}

impl Lanes {
    /// The connections of `resolver` are carried by these threads.
    pub fn new(resolver: Resolver, threads: Threads) -> Self {
        let runtimes = threads.0.iter().flat_map(|running| &running.runtimes);
        let lanes = runtimes.map(|runtime| Lane {
            resolver: Arc::new(Resolver {
                client: resolver.client.sibling(),
                ..resolver.clone()
            }),
            runtime: runtime.clone(),
        });
        Self {
            each: lanes.collect(),
            resolver,
            next: Arc::default(),
            _threads: threads,
        }
    }

    /// Gives a connection to the next thread in turn, as one of the tasks of the resolver.
    pub(super) fn carry<F>(
        &self,
        client: Handed,
        serve: impl FnOnce(&Resolver, Stream) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(number) = turn.checked_rem(self.each.len()) else {
            let resolver = &self.resolver;
            match client.take() {
                Ok(client) => drop(resolver.tasks.spawn(serve(resolver, client))),
                Err(error) => lost(&error),
            }
            return;
        };
        let Lane { resolver, runtime } = &self.each[number];
        let taken = resolver.clone();
        let carried = async move {
            match client.take() {
                Ok(client) => serve(&taken, client).await,
                Err(error) => lost(&error),
            }
        };
        resolver.tasks.spawn_on(carried, runtime);
    }
}

/// Only a system that is out of something does that.
fn lost(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be given to its thread");
}

impl From<Resolver> for Lanes {
    fn from(resolver: Resolver) -> Self {
        Self::new(resolver, Threads::default())
    }
}
