//! Worker threads that serve connections, one for each core.
//!
//! A connection and its connection to a pod stay on one thread: no request waits for another thread, and
//! no core wakes up to steal work that is already done. Without worker threads, connections are served on
//! the runtime that accepted them.

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
    net::{AcceptedStream, Stream},
};

/// Started worker threads. Cheap to clone; the threads end with the last clone.
#[derive(Debug, Clone, Default)]
pub struct WorkerThreads(Option<Arc<RunningThreads>>);

#[derive(Debug)]
struct RunningThreads {
    runtimes: Vec<Handle>,
    _end: DropGuard,
}

/// Distributes the connections of a resolver over its worker threads. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ConnectionWorkers {
    /// The resolver, for the tasks that accept connections.
    pub resolver: Resolver,
    each: Arc<[Worker]>,
    next: Arc<AtomicUsize>,
    _threads: WorkerThreads,
}

/// A worker thread.
#[derive(Debug)]
struct Worker {
    /// The resolver with a connection pool that only this thread uses.
    resolver: Arc<Resolver>,
    runtime: Handle,
}

impl WorkerThreads {
    /// Starts a thread for each core that this process may use.
    pub fn for_all_cores() -> io::Result<Self> {
        Self::start(thread::available_parallelism()?.get())
    }

    /// Starts `count` threads.
    pub fn start(count: usize) -> io::Result<Self> {
        let end = CancellationToken::new();
        // If one thread cannot start, the guard ends those that have.
        let guard = end.clone().drop_guard();
        let runtimes = (0..count).map(|number| start(number, end.clone()));
        Ok(Self(Some(Arc::new(RunningThreads {
            runtimes: runtimes.collect::<io::Result<_>>()?,
            _end: guard,
        }))))
    }
}

fn start(number: usize, end: CancellationToken) -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name(format!("worker-{number}"))
        .spawn(move || runtime.block_on(end.cancelled()))?;
    Ok(handle)
}

impl ConnectionWorkers {
    /// Serves the connections of `resolver` on `threads`.
    pub fn new(resolver: Resolver, threads: WorkerThreads) -> Self {
        let runtimes = threads.0.iter().flat_map(|running| &running.runtimes);
        let workers = runtimes.map(|runtime| Worker {
            resolver: Arc::new(Resolver {
                pool: resolver.pool.for_another_thread(),
                ..resolver.clone()
            }),
            runtime: runtime.clone(),
        });
        Self {
            each: workers.collect(),
            resolver,
            next: Arc::default(),
            _threads: threads,
        }
    }

    /// Serves a connection on the next thread in turn, as one of the tasks of the resolver.
    pub(super) fn dispatch<F>(
        &self,
        client: AcceptedStream,
        serve: impl FnOnce(&Resolver, Stream) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(number) = turn.checked_rem(self.each.len()) else {
            let resolver = &self.resolver;
            match client.into_stream() {
                Ok(client) => drop(resolver.tasks.spawn(serve(resolver, client))),
                Err(error) => report_lost(&error),
            }
            return;
        };
        let Worker { resolver, runtime } = &self.each[number];
        let own = resolver.clone();
        let served = async move {
            match client.into_stream() {
                Ok(client) => serve(&own, client).await,
                Err(error) => report_lost(&error),
            }
        };
        resolver.tasks.spawn_on(served, runtime);
    }
}

/// Logs a connection that its thread could not register, for example for lack of memory.
fn report_lost(error: &io::Error) {
    tracing::warn!(%error, "an accepted connection could not be moved to its worker thread");
}

impl From<Resolver> for ConnectionWorkers {
    fn from(resolver: Resolver) -> Self {
        Self::new(resolver, WorkerThreads::default())
    }
}
