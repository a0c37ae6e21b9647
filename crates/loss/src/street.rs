//! Where everybody lives: loopback addresses of this machine, others for each play, so that plays
//! at the same time do not meet.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where pods listen.
const POD_PORT: u16 = 8080;

/// The addresses of one play.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Street(u8);

impl Street {
    /// One of a hundred, those of one process next to each other.
    pub(crate) fn new(number: usize) -> Self {
        let houses = std::process::id() as usize * 7 + number;
        Self(16 + (houses % 200) as u8)
    }

    pub(crate) fn pod(self, number: u32) -> SocketAddr {
        let [_, _, high, low] = (number % 60_000 + 1).to_be_bytes();
        // Above those of everybody else, which end at 15.
        let address = Ipv4Addr::new(127, self.0, 16 + high % 200, low);
        SocketAddr::new(address.into(), POD_PORT)
    }

    pub(crate) fn resolver(self, number: usize) -> IpAddr {
        Ipv4Addr::new(127, self.0, 1, 1 + number as u8).into()
    }

    /// Somewhere on a node: many addresses, so that no port is used again too soon.
    pub(crate) fn client(self, node: usize, dice: &mut fastrand::Rng) -> SocketAddr {
        let address = Ipv4Addr::new(127, self.0, 2 + node as u8, dice.u8(1..255));
        SocketAddr::new(address.into(), 0)
    }
}

/// Whether a pod is there, and no resolver.
pub(crate) fn is_pod(address: SocketAddr) -> bool {
    address.port() == POD_PORT
}
