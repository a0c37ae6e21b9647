//! Listeners of the network in memory.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use neap_idle::resolver::net::{NetworkListener, NetworkStream};
use parking_lot::Mutex;

use super::{Memory, pipe::ConnectionEnd};

/// Connections that wait to be accepted, at most.
pub(super) const MAX_PENDING: usize = 4096;

/// Established connections that were not accepted yet.
#[derive(Debug, Default)]
pub(super) struct Queue(Mutex<QueueState>);

#[derive(Debug, Default)]
struct QueueState {
    waiting: VecDeque<(ConnectionEnd, SocketAddr)>,
    waker: Option<Waker>,
}

/// Accepts connections at an address until it is dropped.
#[derive(Debug)]
pub(super) struct MemoryListener {
    memory: Memory,
    at: SocketAddr,
    queue: Arc<Queue>,
}

impl Queue {
    pub(super) fn push(&self, end: ConnectionEnd, source: SocketAddr) -> io::Result<()> {
        let mut line = self.0.lock();
        if line.waiting.len() >= MAX_PENDING {
            return Err(io::ErrorKind::TimedOut.into());
        }
        line.waiting.push_back((end, source));
        let waker = line.waker.take();
        drop(line);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }
}

impl MemoryListener {
    pub(super) fn new(memory: Memory, at: SocketAddr, queue: Arc<Queue>) -> Self {
        Self { memory, at, queue }
    }
}

impl NetworkListener for MemoryListener {
    fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(Box<dyn NetworkStream>, SocketAddr)>> {
        let mut line = self.queue.0.lock();
        if let Some((end, source)) = line.waiting.pop_front() {
            return Poll::Ready(Ok((Box::new(end), source)));
        }
        line.waker = Some(context.waker().clone());
        Poll::Pending
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.at)
    }
}

impl Drop for MemoryListener {
    fn drop(&mut self) {
        self.memory.leave(self.at);
        // Connections that were never accepted are reset, as an operating system does.
        let waiting = std::mem::take(&mut self.queue.0.lock().waiting);
        for (end, _) in waiting {
            end.reset_at_end();
        }
    }
}
