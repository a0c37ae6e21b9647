//! Digests of content.

use std::{fmt, str::FromStr};

use aws_lc_rs::digest::{self as algorithms, Context};

/// The digest of a content, such as `sha256:e3b0…`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    hex: String,
}

/// An algorithm that the specification registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

/// Why a text is no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// There is no colon between algorithm and value.
    #[error("a digest has the form ALGORITHM:HEX")]
    Form,
    /// The algorithm is not supported.
    #[error("the algorithm of a digest is sha256 or sha512")]
    Algorithm,
    /// The value has another length, or is not lower-case hexadecimal.
    #[error("the value of the digest is not lower-case hexadecimal of the algorithm's length")]
    Value,
}

impl Algorithm {
    /// Its name in digests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn hex_length(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }

    pub(super) fn hasher(self) -> DigestHasher {
        let context = match self {
            Self::Sha256 => Context::new(&algorithms::SHA256),
            Self::Sha512 => Context::new(&algorithms::SHA512),
        };
        DigestHasher {
            algorithm: self,
            context,
        }
    }
}

impl Digest {
    /// The SHA-256 digest of `content`.
    pub fn of(content: &[u8]) -> Self {
        let mut hasher = Algorithm::Sha256.hasher();
        hasher.update(content);
        hasher.finish()
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The value.
    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// Whether it is the digest of `content`.
    pub fn matches(&self, content: &[u8]) -> bool {
        let mut hasher = self.algorithm.hasher();
        hasher.update(content);
        hasher.finish() == *self
    }
}

/// Computes a digest from parts.
#[derive(Clone)]
pub(super) struct DigestHasher {
    algorithm: Algorithm,
    context: Context,
}

impl DigestHasher {
    pub(super) fn update(&mut self, part: &[u8]) {
        self.context.update(part);
    }

    pub(super) fn finish(self) -> Digest {
        use fmt::Write;
        let digest = self.context.finish();
        let mut hex = String::with_capacity(self.algorithm.hex_length());
        for byte in digest.as_ref() {
            // Writing to a string does not fail.
            let _ = write!(hex, "{byte:02x}");
        }
        Digest {
            algorithm: self.algorithm,
            hex,
        }
    }
}

impl fmt::Debug for DigestHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DigestHasher").finish_non_exhaustive()
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let (algorithm, hex) = text.split_once(':').ok_or(DigestError::Form)?;
        let algorithm = match algorithm {
            "sha256" => Algorithm::Sha256,
            "sha512" => Algorithm::Sha512,
            _ => return Err(DigestError::Algorithm),
        };
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if hex.len() != algorithm.hex_length() || !hex.bytes().all(is_hex) {
            return Err(DigestError::Value);
        }
        Ok(Self {
            algorithm,
            hex: hex.to_owned(),
        })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), self.hex)
    }
}
