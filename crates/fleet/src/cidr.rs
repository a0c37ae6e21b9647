//! Networks of clusters.

use std::net::Ipv4Addr;

/// An IPv4 network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    /// The address as it was written.
    pub address: Ipv4Addr,
    /// The length of the prefix.
    pub length: u8,
}

/// Why a text is no IPv4 network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CidrError {
    /// It cannot be read.
    Malformed,
    /// It is a network of IPv6.
    Ipv6,
}

impl Cidr {
    /// The network in `text`.
    pub fn parse(text: &str) -> Result<Self, CidrError> {
        let (address, length) = text.split_once('/').ok_or(CidrError::Malformed)?;
        let is_number = !length.is_empty() && length.bytes().all(|it| it.is_ascii_digit());
        let length: u8 = length.parse().map_err(|_| CidrError::Malformed)?;
        if !is_number {
            return Err(CidrError::Malformed);
        }
        if address.parse::<std::net::Ipv6Addr>().is_ok() && length <= 128 {
            return Err(CidrError::Ipv6);
        }
        let address = address.parse().map_err(|_| CidrError::Malformed)?;
        if length > 32 {
            return Err(CidrError::Malformed);
        }
        Ok(Self { address, length })
    }

    fn mask(self) -> u32 {
        u32::MAX
            .checked_shl(32 - u32::from(self.length))
            .unwrap_or(0)
    }

    /// The first address of the network.
    pub fn network(self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.address) & self.mask())
    }

    /// Whether the two have an address in common.
    pub fn overlaps(self, other: Self) -> bool {
        let mask = self.mask() & other.mask();
        u32::from(self.address) & mask == u32::from(other.address) & mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_overlap_whichever_is_larger() {
        let cidr = |text| Cidr::parse(text).unwrap();
        assert!(cidr("10.0.0.0/8").overlaps(cidr("10.128.0.0/14")));
        assert!(cidr("10.128.0.0/14").overlaps(cidr("10.0.0.0/8")));
        assert!(!cidr("10.128.0.0/14").overlaps(cidr("10.132.0.0/14")));
        assert!(cidr("0.0.0.0/0").overlaps(cidr("100.64.0.0/16")));
        assert_eq!(cidr("10.1.2.3/8").network().to_string(), "10.0.0.0");
        for bad in [
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0/8",
            "x/8",
            "",
        ] {
            assert_eq!(Cidr::parse(bad), Err(CidrError::Malformed), "{bad}");
        }
        assert_eq!(Cidr::parse("fd00::/8"), Err(CidrError::Ipv6));
    }
}
