//! Addresses: each pod and each Service has its own on the loopback interface.

use std::{fmt, net::Ipv4Addr};

/// The addresses of one node: all of `127.N.0.0/16`.
///
/// Linux answers on the whole of 127.0.0.0/8 without configuration, so nothing has to be set up,
/// and two nodes with different blocks do not conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block(u8);

impl Block {
    /// The block with this number. Zero is excluded: other programs use it.
    pub fn new(number: u8) -> Option<Self> {
        (1..=254).contains(&number).then_some(Self(number))
    }

    /// The node's own address.
    pub fn node(self) -> Ipv4Addr {
        Ipv4Addr::new(127, self.0, 0, 1)
    }

    pub fn number(self) -> u8 {
        self.0
    }

    /// The range of Service addresses: the first one, and the prefix length.
    pub fn services(self) -> (Ipv4Addr, u8) {
        (Ipv4Addr::new(127, self.0, 128, 0), 17)
    }

    /// Whether the address is in the range for pods.
    pub fn has_pod(self, address: Ipv4Addr) -> bool {
        let [first, block, third, last] = address.octets();
        first == 127 && block == self.0 && (1..128).contains(&third) && (1..255).contains(&last)
    }

    /// The first free address for a pod.
    pub fn free(self, is_taken: impl Fn(Ipv4Addr) -> bool) -> Option<Ipv4Addr> {
        let all = (1..128).flat_map(|third| (1..255).map(move |last| (third, last)));
        let mut addresses = all.map(|(third, last)| Ipv4Addr::new(127, self.0, third, last));
        addresses.find(|&address| !is_taken(address))
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "127.{}.0.0/16", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_get_the_first_free_address_of_their_block() {
        let block = Block::new(7).unwrap();
        let address = |third, last| Ipv4Addr::new(127, 7, third, last);
        assert_eq!(block.free(|_| false), Some(address(1, 1)));
        assert_eq!(block.free(|one| one.octets()[2] == 1), Some(address(2, 1)));
        assert_eq!(block.free(|_| true), None);
        assert!(block.has_pod(address(1, 1)) && !block.has_pod(address(128, 1)));
        assert!(!block.has_pod(block.node()));
        assert_eq!(Block::new(0), None);
    }
}
