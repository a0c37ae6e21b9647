//! Proof that a ProwJob was launched by this controller.
//!
//! Every user who may create ProwJobs can give one the labels and the name of a run. So each run has a token: a
//! code over the uid of its payload and its own name, made with a key that only the controllers of
//! releases can read. A ProwJob with a wrong token, or none, does not count.

use aws_lc_rs::hmac;

use crate::names::hex;

/// The key of tokens.
#[derive(Clone)]
pub struct RunKey {
    id: String,
    key: hmac::Key,
}

/// The fewest bytes that a key may have.
pub const MIN_KEY_BYTES: usize = 32;

impl RunKey {
    /// The key with this secret; none if it is too short.
    pub fn new(secret: &[u8]) -> Option<Self> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let id = hmac::sign(&key, b"id");
        (secret.len() >= MIN_KEY_BYTES).then(|| Self {
            id: hex(&id.as_ref()[..8]),
            key,
        })
    }

    /// A name for the key, which says nothing about its secret.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The token of the run `name` of the verification job `job` of a payload.
    pub fn token(&self, payload_uid: &str, job: &str, name: &str) -> String {
        hex(hmac::sign(&self.key, &Self::content(payload_uid, job, name)).as_ref())
    }

    /// Whether this is the token of that run.
    pub fn verify(&self, payload_uid: &str, job: &str, name: &str, token: &str) -> bool {
        let Some(token) = unhex(token) else {
            return false;
        };
        hmac::verify(&self.key, &Self::content(payload_uid, job, name), &token).is_ok()
    }

    fn content(payload_uid: &str, job: &str, name: &str) -> Vec<u8> {
        // None of the three can contain the separator.
        format!("{payload_uid}\n{job}\n{name}").into_bytes()
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

impl std::fmt::Debug for RunKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_one_run_of_one_payload_under_one_key() {
        let key = RunKey::new(&[7; 32]).unwrap();
        let token = key.token("uid", "aws", "tag-aws");
        assert!(key.verify("uid", "aws", "tag-aws", &token));
        for (uid, job, name) in [
            ("other", "aws", "tag-aws"),
            ("uid", "gcp", "tag-aws"),
            ("uid", "aws", "tag-aws-1"),
        ] {
            assert!(!key.verify(uid, job, name, &token));
        }
        assert!(!key.verify("uid", "aws", "tag-aws", ""));
        assert!(!key.verify("uid", "aws", "tag-aws", "zz"));
        let other = RunKey::new(&[8; 32]).unwrap();
        assert!(!other.verify("uid", "aws", "tag-aws", &token));
        assert_ne!(key.id(), other.id());
        assert!(RunKey::new(&[7; 31]).is_none());
    }
}
