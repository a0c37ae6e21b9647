//! Signatures of payloads: OpenPGP messages in stores beside the registry, checked with keys that a ConfigMap
//! names.
//!
//! Only verification is here, for version 4 keys and the algorithms of release keys: RSA and Ed25519 with
//! SHA-2. The mathematics are those of `aws-lc-rs`, which the program has already; a whole OpenPGP library would
//! bring some sixty crates, most of them in second versions, to check one number. What is not understood is
//! never a valid signature.
//!
//! Invariant: a digest is verified when every key ring of the configuration has a valid signature of it.

pub mod packets;

pub mod keys;

pub mod message;

pub mod trust;

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use neap_kit::why;

use self::{
    message::{Claims, Refusal},
    trust::{StoredSignature, TrustConfig},
};
use crate::oci::digest::Digest;

/// What a key ring says about a digest.
#[derive(Debug)]
pub struct RingResult {
    /// The name of the ring.
    pub ring: String,
    /// Where the first valid signature is and what it claims, or why there is none.
    pub result: Result<(String, Claims), String>,
}

/// Whether a digest is signed.
#[derive(Debug, Default)]
pub struct Verification {
    /// The results, by ring.
    pub rings: Vec<RingResult>,
}

impl Verification {
    /// Whether every ring has a valid signature.
    pub fn is_verified(&self) -> bool {
        !self.rings.is_empty() && self.rings.iter().all(|ring| ring.result.is_ok())
    }

    /// Why the digest is not verified.
    pub fn problems(&self) -> Vec<String> {
        let failed = self.rings.iter().filter_map(|ring| {
            let why = ring.result.as_ref().err()?;
            Some(format!("{}: {why}", ring.ring))
        });
        failed.collect()
    }
}

/// Judges the signatures that were found; `problems` are those of the stores. Pure.
pub fn judge(
    trust: &TrustConfig,
    signatures: &[StoredSignature],
    problems: &[String],
    digest: &Digest,
    now: Timestamp,
) -> Verification {
    let rings = trust.rings.iter().map(|(name, ring)| {
        let mut reasons: Vec<String> = Vec::new();
        for signature in signatures {
            match message::verify(ring, &signature.content, digest, now) {
                Ok(claims) => {
                    return RingResult {
                        ring: name.clone(),
                        result: Ok((signature.place.clone(), claims)),
                    };
                }
                Err(Refusal::OtherKey) => {}
                Err(refusal) => {
                    reasons.push(format!("{}: {}", signature.place, why::chain(&refusal)));
                }
            }
        }
        if signatures.is_empty() {
            reasons.push("the stores have no signature of it".to_owned());
        } else if reasons.is_empty() {
            reasons.push("no signature is by one of its keys".to_owned());
        }
        reasons.extend_from_slice(problems);
        RingResult {
            ring: name.clone(),
            result: Err(reasons.join("; ")),
        }
    });
    Verification {
        rings: rings.collect(),
    }
}
