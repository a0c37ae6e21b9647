//! Which callers are accepted: ARM and administrators by certificate, or every caller where that was chosen.

use std::{fmt, sync::Arc};

use axum::extract::Request;
use jiff::Timestamp;
use neap_kit::{clock::Clock, http::Peer};
use parking_lot::RwLock;
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, UnixTime, pem::PemObject},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Which callers are accepted. Cheap to clone.
#[derive(Debug, Clone)]
pub enum Authorizer {
    /// Every caller that reaches the socket: for development.
    Development,
    /// A caller that presents one of these certificates.
    Certificates(SharedCertificates),
}

/// The certificates of callers, which may be replaced while requests are served. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SharedCertificates(Arc<RwLock<CertificateAuth>>);

impl SharedCertificates {
    /// These certificates.
    pub fn new(auth: CertificateAuth) -> Self {
        Self(Arc::new(RwLock::new(auth)))
    }

    /// Requests from now on are held to these.
    pub fn replace(&self, auth: CertificateAuth) {
        *self.0.write() = auth;
    }
}

/// The certificates of callers.
pub struct CertificateAuth {
    /// The certificates of ARM: the presented one must be equal to one of them.
    arm: Vec<CertificateDer<'static>>,
    /// Verifies the certificates of administrators.
    admin: Option<Arc<dyn ClientCertVerifier>>,
    /// The common name of administrators.
    admin_name: String,
}

/// Why the certificates of callers cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// There is none.
    #[error("{0} contains no certificate in PEM")]
    None(&'static str),
    /// An authority is unusable.
    #[error("the authorities of administrators cannot be used: {0}")]
    Authorities(String),
}

impl fmt::Debug for CertificateAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateAuth")
            .field("arm", &self.arm.len())
            .field("admin_name", &self.admin_name)
            .finish_non_exhaustive()
    }
}

impl CertificateAuth {
    /// ARM presents one of the certificates in `arm`; administrators one with `admin_name` that leads
    /// to `admin_authorities`. All are PEM.
    pub fn new(
        arm: &str,
        admin_authorities: Option<&str>,
        admin_name: &str,
    ) -> Result<Self, CertificateError> {
        let arm = certificates(arm, "the file of ARM's certificates")?;
        let admin = admin_authorities.map(verifier).transpose()?;
        Ok(Self {
            arm,
            admin,
            admin_name: admin_name.to_owned(),
        })
    }

    fn allows_arm(&self, presented: &CertificateDer<'_>, now: Timestamp) -> bool {
        self.arm.iter().any(|known| known == presented) && is_valid_at(presented, now)
    }

    fn allows_admin(&self, chain: &[CertificateDer<'static>], now: Timestamp) -> bool {
        let (Some(verifier), Some((own, intermediates))) = (&self.admin, chain.split_first())
        else {
            return false;
        };
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        let verified = verifier.verify_client_cert(own, intermediates, now);
        verified.is_ok() && common_name(own).as_deref() == Some(&*self.admin_name)
    }
}

fn certificates(
    text: &str,
    what: &'static str,
) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let found = found.unwrap_or_default();
    if found.is_empty() {
        return Err(CertificateError::None(what));
    }
    Ok(found)
}

fn verifier(text: &str) -> Result<Arc<dyn ClientCertVerifier>, CertificateError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(text, "the file of authorities")? {
        let added = roots.add(certificate);
        added.map_err(|error| CertificateError::Authorities(error.to_string()))?;
    }
    WebPkiClientVerifier::builder(roots.into())
        .build()
        .map(|it| it as Arc<dyn ClientCertVerifier>)
        .map_err(|error| CertificateError::Authorities(error.to_string()))
}

fn is_valid_at(certificate: &CertificateDer<'_>, now: Timestamp) -> bool {
    X509Certificate::from_der(certificate).is_ok_and(|(_, parsed)| {
        let validity = parsed.validity();
        let now = now.as_second();
        validity.not_before.timestamp() <= now && now <= validity.not_after.timestamp()
    })
}

fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let mut names = parsed.subject().iter_common_name();
    let name = names.next()?.as_str().ok()?.to_owned();
    // Two common names could be read differently by two programs.
    names.next().is_none().then_some(name)
}

impl Authorizer {
    pub(super) fn allows(&self, request: &Request, is_admin: bool, clock: Clock) -> bool {
        let auth = match self {
            Self::Development => return true,
            Self::Certificates(shared) => shared.0.read(),
        };
        let Some(peer) = request.extensions().get::<Peer>() else {
            return false;
        };
        let now = clock.now();
        if is_admin {
            return auth.allows_admin(&peer.certificates, now);
        }
        let presented = peer.certificates.first();
        presented.is_some_and(|presented| auth.allows_arm(presented, now))
    }
}
