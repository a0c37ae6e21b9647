//! The credentials that clients present, and their verification.

use rustls::pki_types::CertificateDer;

use super::{Certificates, Tokens, User};

/// The result of verifying a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It belongs to this user.
    Known(User),
    /// It is invalid, or not signed by a known authority.
    Wrong,
    /// Certificates are not used for authentication, or this one has no user.
    Silent,
}

/// Maps a credential to a user. Service account tokens are verified elsewhere: the server issued
/// them itself.
pub trait Authenticate: Send + Sync + 'static {
    /// Verifies a certificate, leaf first. The client has proved that it holds the key; nothing
    /// else was checked.
    fn certificate(&self, chain: &[CertificateDer<'_>]) -> Verdict;

    /// The user of a bearer token.
    fn token(&self, token: &str) -> Option<User>;
}

/// Certificates of known authorities, and a table of static tokens.
#[derive(Debug, Default)]
pub struct Credentials {
    /// `None` if certificates are not used for authentication.
    pub certificates: Option<Certificates>,
    /// Static tokens.
    pub tokens: Tokens,
}

impl Authenticate for Credentials {
    fn certificate(&self, chain: &[CertificateDer<'_>]) -> Verdict {
        let known = self.certificates.as_ref();
        known.map_or(Verdict::Silent, |known| known.holder(chain))
    }

    fn token(&self, token: &str) -> Option<User> {
        self.tokens.holder(token).cloned()
    }
}
