//! A network in memory, with addresses: what is said there is heard as soon as it is said, so that
//! time may go on whenever nobody has anything to do.
//!
//! It is as unkind as one of sockets. A connection stands before anybody has accepted it, and is reset
//! if nobody ever does. Whoever writes to somebody who has left learns of it with the next word only,
//! and what it has written is gone. There is room for so many bytes until somebody reads them.

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
use neap_idle::resolver::net::{Carries, Hears, Net, Network};
use parking_lot::Mutex;

use self::{
    listener::{Ear, Queue},
    pipe::End,
};

/// The lowest port that a connection comes from if nobody chose one.
const LOWEST: u16 = 10_000;

/// Where a connection to an address ends up.
pub(crate) trait Route: fmt::Debug + Send + Sync {
    /// The place of one who listens there, or nothing if it goes nowhere.
    fn leads(&self, from: IpAddr, to: SocketAddr) -> Option<SocketAddr>;
}

/// All of the network. Cheap to copy.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    listening: Mutex<HashMap<SocketAddr, Arc<Queue>>>,
    /// The port that the next connection of an address comes from. Each is used again only after all
    /// others were.
    next: Mutex<HashMap<IpAddr, u16>>,
    route: OnceLock<Arc<dyn Route>>,
}

/// The network as it is from one address.
#[derive(Debug)]
struct Home {
    memory: Memory,
    address: IpAddr,
}

impl Memory {
    /// Leads connections from now on. Only the first who is named does.
    pub(crate) fn led_by(&self, route: Arc<dyn Route>) {
        let _ = self.0.route.set(route);
    }

    /// The network of somebody at this address.
    pub(crate) fn at(&self, address: IpAddr) -> Net {
        let memory = self.clone();
        Net::Other(Arc::new(Home { memory, address }))
    }

    fn listen(&self, at: SocketAddr) -> io::Result<Ear> {
        let queue = Arc::new(Queue::default());
        let mut listening = self.0.listening.lock();
        if listening.contains_key(&at) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        listening.insert(at, queue.clone());
        drop(listening);
        Ok(Ear::new(self.clone(), at, queue))
    }

    fn leave(&self, at: SocketAddr) {
        self.0.listening.lock().remove(&at);
    }

    fn connect(&self, from: IpAddr, to: SocketAddr) -> io::Result<End> {
        let led = match self.0.route.get() {
            Some(route) => route.leads(from, to),
            None => Some(to),
        };
        let nobody = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let led = led.ok_or_else(nobody)?;
        let queue = self.0.listening.lock().get(&led).cloned();
        let queue = queue.ok_or_else(nobody)?;
        let source = SocketAddr::new(from, self.port(from));
        let (here, there) = End::pair(source, led);
        queue.push(there, source)?;
        Ok(here)
    }

    fn port(&self, from: IpAddr) -> u16 {
        let mut next = self.0.next.lock();
        let next = next.entry(from).or_insert(LOWEST);
        let port = *next;
        *next = port.checked_add(1).unwrap_or(LOWEST);
        port
    }
}

impl Network for Home {
    fn listen(&self, host: Option<IpAddr>, port: u16) -> io::Result<Box<dyn Hears>> {
        let at = SocketAddr::new(host.unwrap_or(self.address), port);
        Ok(Box::new(self.memory.listen(at)?))
    }

    fn connect(
        &self,
        host: Option<IpAddr>,
        to: SocketAddr,
    ) -> BoxFuture<'_, io::Result<Box<dyn Carries>>> {
        let end = self.memory.connect(host.unwrap_or(self.address), to);
        future::ready(end.map(|end| Box::new(end) as Box<dyn Carries>)).boxed()
    }
}
