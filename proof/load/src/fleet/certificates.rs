//! Certificates of a provider and of its callers.

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    SanType,
};
use std::net::IpAddr;

/// An authority.
pub(super) struct Authority {
    /// Its certificate, PEM.
    pub(super) certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, PEM.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Authority {
    pub(super) fn new() -> Result<Self> {
        let key = KeyPair::generate()?;
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&key)?.pem();
        let issuer = Issuer::new(parameters, key);
        Ok(Self {
            certificate,
            issuer,
        })
    }

    /// A caller with this common name.
    pub(super) fn client(&self, name: &str) -> Result<Identity> {
        self.sign(name, ExtendedKeyUsagePurpose::ClientAuth, None)
    }

    /// A server at this address.
    pub(super) fn server(&self, address: IpAddr) -> Result<Identity> {
        let usage = ExtendedKeyUsagePurpose::ServerAuth;
        self.sign("server", usage, Some(address))
    }

    fn sign(
        &self,
        name: &str,
        usage: ExtendedKeyUsagePurpose,
        address: Option<IpAddr>,
    ) -> Result<Identity> {
        let key = KeyPair::generate()?;
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.extended_key_usages = vec![usage];
        let names = address.into_iter().map(SanType::IpAddress);
        parameters.subject_alt_names.extend(names);
        Ok(Identity {
            certificate: parameters.signed_by(&key, &self.issuer)?.pem(),
            key: key.serialize_pem(),
        })
    }
}
