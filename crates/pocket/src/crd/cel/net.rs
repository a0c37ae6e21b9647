//! Addresses and networks in rules: `ip(…)`, `cidr(…)`.

use std::{fmt, net::IpAddr};

/// A network: an address and its prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Net {
    pub(super) address: IpAddr,
    pub(super) length: u8,
}

/// Parses an address as the API server does: no zone, and no IPv4-mapped IPv6.
pub(super) fn parse_ip(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    match address {
        IpAddr::V6(six) if six.to_ipv4_mapped().is_some() => None,
        address => Some(address),
    }
}

impl Net {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let address = parse_ip(address)?;
        let plain = length == "0" || !length.starts_with(['0', '+']);
        let length: u8 = plain.then(|| length.parse().ok()).flatten()?;
        (length <= bits(address)).then_some(Self { address, length })
    }

    pub(super) fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(four) => {
                let mask = u32::MAX
                    .checked_shl(32 - u32::from(self.length))
                    .unwrap_or(0);
                IpAddr::V4((u32::from(four) & mask).into())
            }
            IpAddr::V6(six) => {
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(self.length))
                    .unwrap_or(0);
                IpAddr::V6((u128::from(six) & mask).into())
            }
        };
        Self {
            address,
            length: self.length,
        }
    }

    pub(super) fn contains(self, address: IpAddr) -> bool {
        let other = Self {
            address,
            length: self.length,
        };
        address.is_ipv4() == self.address.is_ipv4()
            && other.masked().address == self.masked().address
    }

    pub(super) fn contains_net(self, other: Self) -> bool {
        other.length >= self.length && self.contains(other.address)
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_what_they_cover() {
        let net = Net::parse("10.1.0.0/16").unwrap();
        for (other, expected) in [("10.1.2.3", true), ("10.2.0.1", false), ("::1", false)] {
            assert_eq!(net.contains(parse_ip(other).unwrap()), expected, "{other}");
        }
        assert!(net.contains_net(Net::parse("10.1.2.0/24").unwrap()));
        assert!(!net.contains_net(Net::parse("10.0.0.0/8").unwrap()));
        let all = Net::parse("0.0.0.0/0").unwrap();
        assert!(all.contains(parse_ip("192.0.2.1").unwrap()));
        assert_eq!(Net::parse("10.1.2.3/16").unwrap().masked(), net);
    }

    #[test]
    fn odd_spellings_are_refused() {
        for text in [
            "10.0.0.0/33",
            "10.0.0.0/08",
            "10.0.0.0",
            "::ffff:10.0.0.1/8",
            "a/8",
        ] {
            assert_eq!(Net::parse(text), None, "{text}");
        }
    }
}
