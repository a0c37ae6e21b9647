//! Who asks: decided by the embedder.

use http::HeaderMap;
use rustls::pki_types::CertificateDer;

use crate::rest::User;

/// Turns what a client shows into who it is.
pub trait Authenticate: Send + Sync + 'static {
    /// The user, or `None` for credentials that are absent or wrong. `certificates` are those the
    /// client presented and the TLS layer verified, leaf first.
    fn authenticate(
        &self,
        headers: &HeaderMap,
        certificates: &[CertificateDer<'_>],
    ) -> Option<User>;
}
