//! Digests of content.

use std::{fmt::Write, str::FromStr};

use aws_lc_rs::digest::{Algorithm, Context, SHA256, SHA384, SHA512};
pub use oci_spec::image::Digest;
use oci_spec::image::DigestAlgorithm;

/// Content that is not what its digest says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The content has another digest.
    #[error("the content has digest {found}, not {wanted}")]
    Mismatch {
        /// The digest by which it was asked for.
        wanted: Box<Digest>,
        /// The digest that it has.
        found: Box<Digest>,
    },
    /// The algorithm is unknown.
    #[error("digest algorithm {0} is not supported: use sha256, sha384 or sha512")]
    Algorithm(String),
    /// The text is no digest.
    #[error("{0:?} is not a digest such as sha256:…")]
    Invalid(String),
}

/// Parses a digest whose algorithm is supported.
pub fn parse(text: &str) -> Result<Digest, Error> {
    let digest = Digest::from_str(text).map_err(|_| Error::Invalid(text.to_owned()))?;
    algorithm(&digest)?;
    Ok(digest)
}

/// The sha256 digest of `content`.
pub fn sha256(content: &[u8]) -> Digest {
    let mut hasher = DigestHasher::sha256();
    hasher.update(content);
    hasher.finish()
}

/// Checks that `content` has the digest `wanted`.
pub fn verify(content: &[u8], wanted: &Digest) -> Result<(), Error> {
    let mut hasher = DigestHasher::like(wanted)?;
    hasher.update(content);
    hasher.finish_as(wanted)
}

/// Computes a digest of content that arrives in parts.
#[derive(Clone)]
pub struct DigestHasher {
    context: Context,
    name: &'static str,
}

impl std::fmt::Debug for DigestHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DigestHasher")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl DigestHasher {
    /// With the algorithm that everyone reads.
    pub fn sha256() -> Self {
        Self {
            context: Context::new(&SHA256),
            name: "sha256",
        }
    }

    /// With the algorithm of `digest`.
    pub fn like(digest: &Digest) -> Result<Self, Error> {
        let (algorithm, name) = algorithm(digest)?;
        let context = Context::new(algorithm);
        Ok(Self { context, name })
    }

    /// Adds the next part.
    pub fn update(&mut self, part: &[u8]) {
        self.context.update(part);
    }

    /// The digest.
    pub fn finish(self) -> Digest {
        let mut text = format!("{}:", self.name);
        for byte in self.context.finish().as_ref() {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Digest::from_str(&text).unwrap_or_else(|_| unreachable!("{text} is a digest"))
    }

    /// Checks that the digest is `wanted`.
    pub fn finish_as(self, wanted: &Digest) -> Result<(), Error> {
        let found = self.finish();
        if found == *wanted {
            return Ok(());
        }
        Err(Error::Mismatch {
            wanted: Box::new(wanted.clone()),
            found: Box::new(found),
        })
    }
}

fn algorithm(digest: &Digest) -> Result<(&'static Algorithm, &'static str), Error> {
    match digest.algorithm() {
        DigestAlgorithm::Sha256 => Ok((&SHA256, "sha256")),
        DigestAlgorithm::Sha384 => Ok((&SHA384, "sha384")),
        DigestAlgorithm::Sha512 => Ok((&SHA512, "sha512")),
        other => Err(Error::Algorithm(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn content_is_compared_with_its_digest() {
        assert_eq!(sha256(b"").to_string(), EMPTY);
        assert_eq!(verify(b"", &parse(EMPTY).unwrap()), Ok(()));
        let wrong = verify(b"x", &parse(EMPTY).unwrap()).unwrap_err();
        assert!(wrong.to_string().contains(EMPTY), "{wrong}");
    }

    #[test]
    fn other_algorithms_and_texts_are_refused() {
        for text in [
            "",
            "sha256",
            "sha256:xyz",
            "md5:d41d8cd98f00b204e9800998ecf8427e",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
