//! Digests of content: the same on every machine and in every release, and different when the
//! content is.
//!
//! They identify versions of documents for caches (ETags, `?hash=`). They are not cryptographic: do
//! not use them for security.

use std::{fmt, io};

/// FNV-1a with 128 bits, fed piece by piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(u128);

const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

impl Default for Digest {
    fn default() -> Self {
        Self(BASIS)
    }
}

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self::default().with(bytes)
    }

    /// Appends `bytes` to the digested content.
    pub fn with(mut self, bytes: impl AsRef<[u8]>) -> Self {
        for byte in bytes.as_ref() {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
        self
    }

    /// The ETag header: the digest in quotes.
    pub fn etag(self) -> String {
        format!("\"{self}\"")
    }

    /// The first eight bytes.
    pub fn short(self) -> [u8; 8] {
        ((self.0 >> 64) as u64).to_be_bytes()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032X}", self.0)
    }
}

/// Lets a serializer write into the digest without building the text.
impl io::Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        *self = self.with(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vectors_hold() {
        assert_eq!(
            Digest::of("").to_string(),
            "6C62272E07BB014262B821756295C58D"
        );
        assert_eq!(
            Digest::of("a").to_string(),
            "D228CB696F1A8CAF78912B704E4A8964"
        );
    }

    #[test]
    fn pieces_and_the_whole_agree() {
        assert_eq!(Digest::of("ab").with("c"), Digest::of("abc"));
        assert_ne!(Digest::of("abc"), Digest::of("acb"));
    }
}
