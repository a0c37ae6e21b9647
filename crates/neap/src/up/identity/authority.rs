//! Creates, signs and parses certificates with their keys.
//!
//! Pure except for the randomness of keys: the time is a parameter, and `files` reads and writes files.

use std::{net::IpAddr, time::Duration};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use x509_parser::{extensions::GeneralName, prelude::X509Certificate};

use super::{CA_VALIDITY, SERVING_VALIDITY};

/// The admin's name and group in the client certificate.
pub(super) const ADMIN: (&str, &str) = ("admin", "system:masters");

/// A certificate is valid from this long before its creation, because clocks of machines differ.
const SKEW: Duration = Duration::from_hours(1);
const KEY_BEGINS: &str = "-----BEGIN PRIVATE KEY-----";

/// Why a certificate cannot be created or parsed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("it contains no certificate followed by a private key")]
    NoPair,
    #[error("invalid PEM")]
    Pem(#[from] rustls::pki_types::pem::Error),
    #[error("invalid X.509 certificate: {0}")]
    Unreadable(String),
    #[error("the certificate library rejects it")]
    Library(#[from] rcgen::Error),
}

/// A certificate and its private key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CertificateWithKey {
    certificate: String,
    key: String,
}

/// The subject of a certificate.
pub(super) struct Subject<'a> {
    name: &'a str,
    group: Option<&'a str>,
    usage: ExtendedKeyUsagePurpose,
    hosts: &'a [String],
    validity: Duration,
}

impl<'a> Subject<'a> {
    /// The server under these names and addresses.
    pub(super) fn server(hosts: &'a [String]) -> Self {
        Self {
            // Not the name of the authority: OpenSSL takes a certificate whose subject equals its
            // issuer for a self-signed one.
            name: "neap-server",
            group: None,
            usage: ExtendedKeyUsagePurpose::ServerAuth,
            hosts,
            validity: SERVING_VALIDITY,
        }
    }

    /// The admin, a member of system:masters.
    pub(super) fn admin() -> Self {
        Self {
            name: ADMIN.0,
            group: Some(ADMIN.1),
            usage: ExtendedKeyUsagePurpose::ClientAuth,
            hosts: &[],
            validity: CA_VALIDITY,
        }
    }
}

/// Creates an authority.
pub(super) fn create(now: Timestamp, validity: Duration) -> Result<CertificateWithKey, Error> {
    let mut params = valid(CertificateParams::default(), now, now + validity);
    params.distinguished_name.push(DnType::CommonName, "neap");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(CertificateWithKey::new(&certificate, &key))
}

/// Creates a private key, PEM.
pub(super) fn signing_key() -> Result<String, Error> {
    Ok(KeyPair::generate()?.serialize_pem())
}

fn valid(mut params: CertificateParams, from: Timestamp, to: Timestamp) -> CertificateParams {
    // rcgen uses the date types of the crate time, and re-exports only this function.
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let date = |time: Timestamp| {
        epoch + Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default())
    };
    params.not_before = date(from - SKEW);
    params.not_after = date(to);
    params
}

impl CertificateWithKey {
    fn new(certificate: &rcgen::Certificate, key: &KeyPair) -> Self {
        Self {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// Parses the output of [`CertificateWithKey::to_pem`].
    pub(super) fn from_pem(text: &str) -> Result<Self, Error> {
        let begins = text.find(KEY_BEGINS).ok_or(Error::NoPair)?;
        let (certificate, key) = text.split_at(begins);
        let pair = Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        };
        pair.key_der()?;
        pair.expires_at()?;
        Ok(pair)
    }

    /// The certificate followed by the key.
    pub(super) fn to_pem(&self) -> String {
        format!("{}{}", self.certificate, self.key)
    }

    /// PEM.
    pub(super) fn certificate(&self) -> &str {
        &self.certificate
    }

    /// PEM.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn certificate_der(&self) -> Result<CertificateDer<'static>, Error> {
        Ok(CertificateDer::from_pem_slice(self.certificate.as_bytes())?)
    }

    pub(super) fn key_der(&self) -> Result<PrivateKeyDer<'static>, Error> {
        Ok(PrivateKeyDer::from_pem_slice(self.key.as_bytes())?)
    }

    /// When the certificate expires.
    pub(super) fn expires_at(&self) -> Result<Timestamp, Error> {
        self.read(|certificate| {
            let seconds = certificate.validity().not_after.timestamp();
            Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
        })
    }

    /// When the certificate begins to be valid.
    pub(super) fn valid_from(&self) -> Result<Timestamp, Error> {
        valid_from(&self.certificate_der()?)
    }

    /// Whether the certificate covers all of these names and addresses, and its subject differs from its
    /// issuer.
    pub(super) fn covers(&self, names: &[String]) -> Result<bool, Error> {
        self.read(|certificate| {
            let covered = alternative_names(certificate);
            let distinct = certificate.subject() != certificate.issuer();
            distinct && names.iter().all(|name| covered.contains(name))
        })
    }

    fn read<T>(&self, inspect: impl FnOnce(&X509Certificate<'_>) -> T) -> Result<T, Error> {
        read(&self.certificate_der()?, inspect)
    }

    /// Issues a certificate signed by this one, which must be an authority.
    pub(super) fn issue(&self, subject: &Subject<'_>, now: Timestamp) -> Result<Self, Error> {
        // A certificate cannot outlive its authority.
        let expires_at = self.expires_at()?.min(now + subject.validity);
        let mut params = valid(CertificateParams::new(subject.hosts)?, now, expires_at);
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, subject.name);
        if let Some(group) = subject.group {
            name.push(DnType::OrganizationName, group);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![subject.usage.clone()];
        params.use_authority_key_identifier_extension = true;
        let issuer = Issuer::from_ca_cert_pem(&self.certificate, KeyPair::from_pem(&self.key)?)?;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        Ok(Self::new(&certificate, &key))
    }
}

/// When a certificate begins to be valid.
pub(super) fn valid_from(certificate: &CertificateDer<'_>) -> Result<Timestamp, Error> {
    read(certificate, |certificate| {
        let seconds = certificate.validity().not_before.timestamp();
        Timestamp::from_second(seconds).unwrap_or(Timestamp::MIN)
    })
}

/// Parses a certificate and applies `inspect` to it.
fn read<T>(
    certificate: &CertificateDer<'_>,
    inspect: impl FnOnce(&X509Certificate<'_>) -> T,
) -> Result<T, Error> {
    let parsed = x509_parser::parse_x509_certificate(certificate);
    let (_rest, certificate) = parsed.map_err(|error| Error::Unreadable(error.to_string()))?;
    Ok(inspect(&certificate))
}

fn alternative_names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let names = extension.value.general_names.iter();
    names.filter_map(general_name).collect()
}

fn general_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => <[u8; 4]>::try_from(*bytes)
            .map(IpAddr::from)
            .or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from))
            .ok()
            .map(|ip| ip.to_string()),
        _ => None,
    }
}
