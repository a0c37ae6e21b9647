//! The addresses of the simulation.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The port of pods.
const POD_PORT: u16 = 8080;
/// The internal port of resolvers.
pub(crate) const INTERNAL: u16 = 8013;
/// The shared proxy port of resolvers.
pub(crate) const SHARED: u16 = 8012;

pub(crate) fn pod(number: u32) -> SocketAddr {
    let [_, high, middle, low] = number.to_be_bytes();
    let address = Ipv4Addr::new(10, 128 + high % 128, middle, low);
    SocketAddr::new(address.into(), POD_PORT)
}

pub(crate) fn resolver(number: usize) -> IpAddr {
    Ipv4Addr::new(10, 1, 0, 1 + number as u8).into()
}

/// A client address on a node: one of many, so that no port is reused too soon.
pub(crate) fn client(node: usize, rng: &mut fastrand::Rng) -> SocketAddr {
    let address = Ipv4Addr::new(10, 2, node as u8, rng.u8(1..255));
    SocketAddr::new(address.into(), 0)
}

/// Whether it is the address of a pod rather than a resolver.
pub(crate) fn is_pod(address: SocketAddr) -> bool {
    address.port() == POD_PORT
}
