//! What clients may show, and what it is worth.

use rustls::pki_types::CertificateDer;

use super::{Certificates, Tokens, User};

/// What a certificate is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is this user's.
    Known(User),
    /// It is nobody's that we know.
    Wrong,
    /// It says nothing about who shows it.
    Silent,
}

/// Turns what a client shows into who it is. Tokens of service accounts are not asked about here:
/// the server made them itself.
pub trait Authenticate: Send + Sync + 'static {
    /// Whose certificate this is, leaf first. The client has proved that it holds the key; nothing
    /// else was checked.
    fn certificate(&self, chain: &[CertificateDer<'_>]) -> Verdict;

    /// Whose bearer token this is.
    fn token(&self, token: &str) -> Option<User>;
}

/// Certificates of known authorities, and a table of tokens.
#[derive(Debug, Default)]
pub struct Credentials {
    /// None if certificates say nothing here.
    pub certificates: Option<Certificates>,
    /// Tokens that were handed out beforehand.
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
