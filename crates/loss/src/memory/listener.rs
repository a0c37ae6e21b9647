//! Somebody who takes connections.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use neap_idle::resolver::net::{Carries, Hears};
use parking_lot::Mutex;

use super::{Memory, pipe::End};

/// So many connections wait until they are accepted.
pub(super) const WAITING: usize = 4096;

/// Connections that stand and were not accepted yet.
#[derive(Debug, Default)]
pub(super) struct Queue(Mutex<Line>);

#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<(End, SocketAddr)>,
    waker: Option<Waker>,
}

/// Takes connections at an address until it is dropped.
#[derive(Debug)]
pub(super) struct Ear {
    memory: Memory,
    at: SocketAddr,
    queue: Arc<Queue>,
}

impl Queue {
    pub(super) fn push(&self, end: End, source: SocketAddr) -> io::Result<()> {
        let mut line = self.0.lock();
        if line.waiting.len() >= WAITING {
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

impl Ear {
    pub(super) fn new(memory: Memory, at: SocketAddr, queue: Arc<Queue>) -> Self {
        Self { memory, at, queue }
    }
}

impl Hears for Ear {
    fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(Box<dyn Carries>, SocketAddr)>> {
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

impl Drop for Ear {
    fn drop(&mut self) {
        self.memory.leave(self.at);
        // Whoever was never accepted is told so, as a system does.
        let waiting = std::mem::take(&mut self.queue.0.lock().waiting);
        for (end, _) in waiting {
            end.reset_at_end();
        }
    }
}
