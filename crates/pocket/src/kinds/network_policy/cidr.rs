//! Blocks of addresses, as `10.0.0.0/8`.

use std::net::IpAddr;

/// A block: an address and its prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cidr {
    address: IpAddr,
    prefix: u32,
}

/// Parses a block; the bits after the prefix may be anything.
pub(super) fn read(text: &str) -> Option<Cidr> {
    let (address, digits) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let prefix = digits.parse().ok()?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    (prefix <= longest).then_some(Cidr { address, prefix })
}

impl Cidr {
    /// Whether `other` is a proper part of this block.
    pub(super) fn strictly_contains(&self, other: &Self) -> bool {
        let (mine, theirs, width) = match (self.address, other.address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                (u128::from(a.to_bits()), u128::from(b.to_bits()), 32)
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
            _ => return false,
        };
        let first_bits = |bits: u128| bits.checked_shr(width - self.prefix).unwrap_or(0);
        self.prefix < other.prefix && first_bits(mine) == first_bits(theirs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_or_refused() {
        for (text, fine) in [
            ("10.0.0.0/8", true),
            ("10.1.2.3/0", true),
            ("::/0", true),
            ("2001:db8::/64", true),
            ("10.0.0.0/33", false),
            ("10.0.0.0", false),
            ("10.0.0/8", false),
            ("10.0.0.0/+8", false),
            ("10.0.0.0/", false),
        ] {
            assert_eq!(read(text).is_some(), fine, "{text}");
        }
    }

    #[test]
    fn a_block_contains_smaller_ones_with_its_first_bits() {
        for (whole, part, contains) in [
            ("10.0.0.0/8", "10.1.0.0/16", true),
            ("10.0.0.0/8", "10.0.0.0/8", false),
            ("10.0.0.0/8", "11.0.0.0/16", false),
            ("10.1.0.0/16", "10.0.0.0/8", false),
            ("0.0.0.0/0", "1.2.3.4/32", true),
            ("::/0", "2001:db8::/32", true),
            ("::/0", "1.2.3.4/32", false),
        ] {
            let (whole, part) = (read(whole).unwrap(), read(part).unwrap());
            assert_eq!(
                whole.strictly_contains(&part),
                contains,
                "{whole:?} {part:?}"
            );
        }
    }
}
