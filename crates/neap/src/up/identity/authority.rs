//! Certificates with their keys: making, signing, storing and reading them.
//!
//! Pure but for the randomness of keys: times are handed in, files are somebody else's.

use std::{net::IpAddr, time::Duration};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use x509_parser::{extensions::GeneralName, prelude::X509Certificate};

use super::{LONG, SHORT};

/// The admin's name and group, as they stand in the client certificate.
pub(super) const ADMIN: (&str, &str) = ("admin", "system:masters");

/// Clocks of two machines differ; a certificate is valid from a little before it was made.
const SKEW: Duration = Duration::from_hours(1);
const KEY_BEGINS: &str = "-----BEGIN PRIVATE KEY-----";

/// Why a certificate cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("no certificate followed by a private key in it")]
    NoPair,
    #[error("not readable as PEM")]
    Pem(#[from] rustls::pki_types::pem::Error),
    #[error("not readable as an X.509 certificate: {0}")]
    Unreadable(String),
    #[error("the certificate library refuses it")]
    Library(#[from] rcgen::Error),
}

/// A certificate and its private key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    certificate: String,
    key: String,
}

/// Whom a certificate is for.
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
            // Another name than the authority's: OpenSSL takes a certificate whose subject is its
            // issuer for one that signed itself.
            name: "neap-server",
            group: None,
            usage: ExtendedKeyUsagePurpose::ServerAuth,
            hosts,
            validity: SHORT,
        }
    }

    /// The user who may do everything.
    pub(super) fn admin() -> Self {
        Self {
            name: ADMIN.0,
            group: Some(ADMIN.1),
            usage: ExtendedKeyUsagePurpose::ClientAuth,
            hosts: &[],
            validity: LONG,
        }
    }
}

/// A new authority.
pub(super) fn create(now: Timestamp, validity: Duration) -> Result<Pair, Error> {
    let mut params = valid(CertificateParams::default(), now, now + validity);
    params.distinguished_name.push(DnType::CommonName, "neap");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(Pair::new(&certificate, &key))
}

/// A new private key, PEM.
pub(super) fn signing_key() -> Result<String, Error> {
    Ok(KeyPair::generate()?.serialize_pem())
}

fn valid(mut params: CertificateParams, from: Timestamp, to: Timestamp) -> CertificateParams {
    // The library dates certificates with the types of another crate; it re-exports only this.
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let date = |time: Timestamp| {
        epoch + Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default())
    };
    params.not_before = date(from - SKEW);
    params.not_after = date(to);
    params
}

impl Pair {
    fn new(certificate: &rcgen::Certificate, key: &KeyPair) -> Self {
        Self {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// Reads what [`Pair::to_pem`] wrote.
    pub(super) fn from_pem(text: &str) -> Result<Self, Error> {
        let begins = text.find(KEY_BEGINS).ok_or(Error::NoPair)?;
        let (certificate, key) = text.split_at(begins);
        let pair = Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        };
        pair.key_der()?;
        pair.ends()?;
        Ok(pair)
    }

    /// Certificate, then key, as one text.
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

    /// When the certificate ceases to be valid.
    pub(super) fn ends(&self) -> Result<Timestamp, Error> {
        self.read(|certificate| {
            let seconds = certificate.validity().not_after.timestamp();
            Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
        })
    }

    /// Whether the certificate holds all of these names and addresses, and can be told from that of
    /// its authority.
    pub(super) fn holds(&self, names: &[String]) -> Result<bool, Error> {
        self.read(|certificate| {
            let held = alternative_names(certificate);
            let told_apart = certificate.subject() != certificate.issuer();
            told_apart && names.iter().all(|name| held.contains(name))
        })
    }

    fn read<T>(&self, look: impl FnOnce(&X509Certificate<'_>) -> T) -> Result<T, Error> {
        read(&self.certificate_der()?, look)
    }

    /// A new certificate signed by this one, which must be an authority.
    pub(super) fn issue(&self, subject: &Subject<'_>, now: Timestamp) -> Result<Self, Error> {
        // A certificate that outlives its authority is of no use.
        let ends = self.ends()?.min(now + subject.validity);
        let mut params = valid(CertificateParams::new(subject.hosts)?, now, ends);
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

/// Takes a look into a certificate.
fn read<T>(
    certificate: &CertificateDer<'_>,
    look: impl FnOnce(&X509Certificate<'_>) -> T,
) -> Result<T, Error> {
    let parsed = x509_parser::parse_x509_certificate(certificate);
    let (_rest, certificate) = parsed.map_err(|error| Error::Unreadable(error.to_string()))?;
    Ok(look(&certificate))
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
