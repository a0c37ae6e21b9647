//! Where everybody lives.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where pods listen.
const POD_PORT: u16 = 8080;
/// Where resolvers answer operators.
pub(crate) const INTERNAL: u16 = 8013;
/// Where resolvers answer for all services.
pub(crate) const SHARED: u16 = 8012;

pub(crate) fn pod(number: u32) -> SocketAddr {
    let [_, high, middle, low] = number.to_be_bytes();
    let address = Ipv4Addr::new(10, 128 + high % 128, middle, low);
    SocketAddr::new(address.into(), POD_PORT)
}

pub(crate) fn resolver(number: usize) -> IpAddr {
    Ipv4Addr::new(10, 1, 0, 1 + number as u8).into()
}

/// Somewhere on a node: many addresses, so that no port is used again too soon.
pub(crate) fn client(node: usize, dice: &mut fastrand::Rng) -> SocketAddr {
    let address = Ipv4Addr::new(10, 2, node as u8, dice.u8(1..255));
    SocketAddr::new(address.into(), 0)
}

/// Whether a pod is there, and no resolver.
pub(crate) fn is_pod(address: SocketAddr) -> bool {
    address.port() == POD_PORT
}
