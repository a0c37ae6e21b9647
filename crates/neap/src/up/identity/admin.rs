//! Tells the one user from everybody else, by client certificate or by bearer token.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, header::AUTHORIZATION};
use neap_pocket::environment::Clock;
use parking_lot::Mutex;
use rustls::{
    pki_types::{CertificateDer, UnixTime},
    server::danger::ClientCertVerifier,
};
use subtle::ConstantTimeEq;
use x509_parser::prelude::X509Certificate;

use super::{
    super::server::{Authenticate, User},
    authority::{self, ADMIN},
};

/// Knows the admin's token and which certificates are the admin's.
pub(super) struct Admin {
    token: Vec<u8>,
    verifier: Arc<dyn ClientCertVerifier>,
    clock: Arc<dyn Clock>,
    /// The last certificate that passed, and the second it ends: a connection shows the same
    /// certificate with every request, and checking a signature costs more than most requests.
    passed: Mutex<Option<(Vec<u8>, i64)>>,
}

impl Admin {
    pub(super) fn new(
        token: &str,
        verifier: Arc<dyn ClientCertVerifier>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            token: token.as_bytes().to_vec(),
            verifier,
            clock,
            passed: Mutex::new(None),
        }
    }

    fn has_certificate(&self, chain: &[CertificateDer<'_>]) -> bool {
        let Some((certificate, intermediates)) = chain.split_first() else {
            return false;
        };
        let now = self.clock.now().as_second();
        if let Some((known, ends)) = &*self.passed.lock()
            && known.as_slice() == certificate.as_ref()
        {
            return now <= *ends;
        }
        let since_epoch = Duration::from_secs(u64::try_from(now).unwrap_or_default());
        let verified = self.verifier.verify_client_cert(
            certificate,
            intermediates,
            UnixTime::since_unix_epoch(since_epoch),
        );
        let Ok(Some(ends)) = authority::read(certificate, end_if_admin) else {
            return false;
        };
        if verified.is_ok() {
            *self.passed.lock() = Some((certificate.to_vec(), ends));
        }
        verified.is_ok()
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(AUTHORIZATION).and_then(bearer);
        given.is_some_and(|given| given.ct_eq(&self.token).into())
    }
}

/// The token of a `Bearer` header; the scheme's case does not matter.
fn bearer(value: &http::HeaderValue) -> Option<&[u8]> {
    let (scheme, token) = value.as_bytes().split_at_checked(b"bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| token.trim_ascii())
}

/// The second the certificate ends, if its subject is the admin.
fn end_if_admin(certificate: &X509Certificate<'_>) -> Option<i64> {
    let subject = certificate.subject();
    let named = subject
        .iter_common_name()
        .any(|name| name.as_str() == Ok(ADMIN.0));
    let grouped = subject
        .iter_organization()
        .any(|group| group.as_str() == Ok(ADMIN.1));
    (named && grouped).then(|| certificate.validity().not_after.timestamp())
}

impl Authenticate for Admin {
    fn authenticate(
        &self,
        headers: &HeaderMap,
        client_certificates: &[CertificateDer<'_>],
    ) -> Option<User> {
        let admin = self.has_certificate(client_certificates) || self.has_token(headers);
        admin.then(|| User {
            name: ADMIN.0.to_owned(),
            groups: vec![ADMIN.1.to_owned(), "system:authenticated".to_owned()],
            ..User::default()
        })
    }
}
