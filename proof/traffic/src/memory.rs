//! A network in memory, with addresses: data arrives as soon as it is written, so that time may
//! advance whenever no task has anything to do.
//!
//! It behaves like sockets. A connection is established before it is accepted, and is reset if it
//! never is. A write to a closed peer fails only with the next write, and its data is lost. A
//! limited number of bytes is buffered until they are read.

mod listener;
mod pipe;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, OnceLock},
};

use futures::{FutureExt, future, future::BoxFuture};
use neap_idle::resolver::net::{Net, Network, NetworkListener, NetworkStream};
use parking_lot::Mutex;

use self::{
    listener::{MemoryListener, Queue},
    pipe::ConnectionEnd,
};

/// The lowest port of an outgoing connection.
const FIRST_PORT: u16 = 10_000;

/// Decides where a connection to an address goes.
pub(crate) trait Route: fmt::Debug + Send + Sync {
    /// The address of a listener; none if the connection is refused.
    fn destination(&self, from: IpAddr, to: SocketAddr) -> Option<SocketAddr>;
}

/// The whole network. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    listening: Mutex<HashMap<SocketAddr, Arc<Queue>>>,
    /// The next source port of an address. Each is reused only after all others.
    next: Mutex<HashMap<IpAddr, u16>>,
    route: OnceLock<Arc<dyn Route>>,
}

/// The network as seen from one address.
#[derive(Debug)]
struct Host {
    memory: Memory,
    address: IpAddr,
}

impl Memory {
    /// Sets the route of all connections. Only the first one set is used.
    pub(crate) fn set_route(&self, route: Arc<dyn Route>) {
        let _ = self.0.route.set(route);
    }

    /// The network of a host at this address.
    pub(crate) fn at(&self, address: IpAddr) -> Net {
        let memory = self.clone();
        Net::Other(Arc::new(Host { memory, address }))
    }

    fn listen(&self, at: SocketAddr) -> io::Result<MemoryListener> {
        let queue = Arc::new(Queue::default());
        let mut listening = self.0.listening.lock();
        if listening.contains_key(&at) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        listening.insert(at, queue.clone());
        drop(listening);
        Ok(MemoryListener::new(self.clone(), at, queue))
    }

    fn leave(&self, at: SocketAddr) {
        self.0.listening.lock().remove(&at);
    }

    fn connect(&self, from: IpAddr, to: SocketAddr) -> io::Result<ConnectionEnd> {
        let destination = match self.0.route.get() {
            Some(route) => route.destination(from, to),
            None => Some(to),
        };
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let destination = destination.ok_or_else(refused)?;
        let queue = self.0.listening.lock().get(&destination).cloned();
        let queue = queue.ok_or_else(refused)?;
        let source = SocketAddr::new(from, self.port(from));
        let (here, there) = ConnectionEnd::pair(source, destination);
        queue.push(there, source)?;
        Ok(here)
    }

    fn port(&self, from: IpAddr) -> u16 {
        let mut next = self.0.next.lock();
        let next = next.entry(from).or_insert(FIRST_PORT);
        let port = *next;
        *next = port.checked_add(1).unwrap_or(FIRST_PORT);
        port
    }
}

impl Network for Host {
    fn listen(&self, host: Option<IpAddr>, port: u16) -> io::Result<Box<dyn NetworkListener>> {
        let at = SocketAddr::new(host.unwrap_or(self.address), port);
        Ok(Box::new(self.memory.listen(at)?))
    }

    fn connect(
        &self,
        host: Option<IpAddr>,
        to: SocketAddr,
    ) -> BoxFuture<'_, io::Result<Box<dyn NetworkStream>>> {
        let end = self.memory.connect(host.unwrap_or(self.address), to);
        future::ready(end.map(|end| Box::new(end) as Box<dyn NetworkStream>)).boxed()
    }
}
