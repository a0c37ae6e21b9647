//! A hash whose value never changes, for names and annotations that are stored.
//!
//! The hashers of the standard library may differ between versions of the compiler, and a value that was
//! stored by one program is read by the next.

/// The 64-bit FNV-1a hash of the parts. The length of each part is hashed with it, so that `["ab", "c"]`
/// and `["a", "bc"]` differ.
pub fn stable_hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let mut hash = OFFSET;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    };
    for part in parts {
        add(&(part.len() as u64).to_le_bytes());
        add(part);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_never_change() {
        assert_eq!(stable_hash([]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(stable_hash([&b"web"[..]]), WEB);
        assert_eq!(stable_hash([&b"web"[..], b"shop"]), WEB_SHOP);
    }

    const WEB: u64 = 0x17bd_67d2_82af_6cf0;
    const WEB_SHOP: u64 = 0xc98e_6d8b_cbee_6ac8;

    #[test]
    fn the_borders_of_parts_count() {
        assert_ne!(
            stable_hash([&b"ab"[..], b"c"]),
            stable_hash([&b"a"[..], b"bc"])
        );
    }
}
