//! Client certificates: the common name is the user, each organization is a group. They must be
//! X.509 version 3, as the verifying library requires.

use std::{collections::HashMap, fmt::Write, sync::Arc, time::Duration};

use aws_lc_rs::digest::{SHA256, digest};
use parking_lot::Mutex;
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, UnixTime},
    server::{VerifierBuilderError, WebPkiClientVerifier, danger::ClientCertVerifier},
};
use x509_parser::{
    asn1_rs::{Oid, oid},
    oid_registry,
    prelude::X509Certificate,
    x509::X509Name,
};

use super::{CREDENTIAL_ID, User, Verdict};
use crate::environment::Clock;

/// Certificates that are cached. More clients than this cost an occasional signature check, not
/// memory.
const MAX_CACHED_CERTIFICATES: usize = 1024;

/// The attribute of a subject that is the user's uid.
const UID: Oid<'_> = oid!(1.3.6.1.4.1.57683.2);

/// Verifies certificates that given authorities signed.
pub struct Certificates {
    verifier: Arc<dyn ClientCertVerifier>,
    clock: Arc<dyn Clock>,
    /// Verified certificates: a connection presents the same certificate with every request, and a
    /// signature check costs more than most requests.
    passed: Mutex<HashMap<Vec<u8>, VerifiedCertificate>>,
}

/// The content of a verified certificate.
#[derive(Clone)]
struct VerifiedCertificate {
    /// The second at which the first certificate of its chain expires.
    ends: i64,
    /// `None` if it has no common name.
    user: Option<User>,
}

impl Certificates {
    /// Trusts client certificates that these authorities signed.
    pub fn signed_by(
        authorities: RootCertStore,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, VerifierBuilderError> {
        let verifier = WebPkiClientVerifier::builder(Arc::new(authorities))
            .allow_unauthenticated()
            .build()?;
        Ok(Self {
            verifier,
            clock,
            passed: Mutex::default(),
        })
    }

    /// The user of a certificate, the first of the chain that a client presented.
    pub fn holder(&self, chain: &[CertificateDer<'_>]) -> Verdict {
        let Some((certificate, intermediates)) = chain.split_first() else {
            return Verdict::Silent;
        };
        let now = self.clock.now().as_second();
        let known = self.passed.lock().get(certificate.as_ref()).cloned();
        let passed = match known {
            Some(passed) if passed.ends >= now => Some(passed),
            // Another chain may still be valid.
            _ => self.check(certificate, intermediates, now),
        };
        match passed {
            None => Verdict::Wrong,
            Some(VerifiedCertificate { user: None, .. }) => Verdict::Silent,
            Some(VerifiedCertificate {
                user: Some(user), ..
            }) => Verdict::Known(user),
        }
    }

    fn check(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: i64,
    ) -> Option<VerifiedCertificate> {
        let since_epoch = Duration::from_secs(u64::try_from(now).ok()?);
        let now = UnixTime::since_unix_epoch(since_epoch);
        self.verifier
            .verify_client_cert(certificate, intermediates, now)
            .ok()?;
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
        let passed = VerifiedCertificate {
            ends: intermediates
                .iter()
                .filter_map(|shown| ends(shown))
                .fold(parsed.validity().not_after.timestamp(), i64::min),
            user: user(&parsed, certificate),
        };
        let mut remembered = self.passed.lock();
        if remembered.len() >= MAX_CACHED_CERTIFICATES {
            remembered.clear();
        }
        remembered.insert(certificate.to_vec(), passed.clone());
        Some(passed)
    }
}

/// The second at which a certificate expires.
fn ends(certificate: &CertificateDer<'_>) -> Option<i64> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    Some(parsed.validity().not_after.timestamp())
}

fn user(parsed: &X509Certificate<'_>, certificate: &CertificateDer<'_>) -> Option<User> {
    let subject = parsed.subject();
    let name = texts(subject, &oid_registry::OID_X509_COMMON_NAME).pop()?;
    if name.is_empty() {
        return None;
    }
    let mut credential = "X509SHA256=".to_owned();
    for byte in digest(&SHA256, certificate).as_ref() {
        // Writing to a string cannot fail.
        let _ = write!(credential, "{byte:02x}");
    }
    let extra = (CREDENTIAL_ID.into(), vec![credential]);
    let user = User {
        name,
        uid: texts(subject, &UID).pop().unwrap_or_default(),
        groups: texts(subject, &oid_registry::OID_X509_ORGANIZATION_NAME),
        extra: [extra].into(),
    };
    Some(user.authenticated())
}

/// The values of an attribute, in order.
fn texts(subject: &X509Name<'_>, attribute: &Oid<'_>) -> Vec<String> {
    let values = subject.iter_by_oid(attribute);
    values
        .filter_map(|value| value.as_str().ok().map(str::to_owned))
        .collect()
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}
