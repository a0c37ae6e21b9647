//! Which servers are trusted, and how this side identifies itself to them.

use std::{collections::BTreeSet, fmt, sync::Arc};

use tokio_rustls::rustls::{
    self, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};

/// Which servers are trusted.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    extra: Vec<CertificateDer<'static>>,
    only_extra: bool,
    pub(super) insecure_hosts: BTreeSet<String>,
    identity: Option<Arc<Identity>>,
}

struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The text is not PEM.
    #[error("{0} is not PEM")]
    NotPem(&'static str),
    /// There is no certificate in the text.
    #[error("there is no certificate in {0}")]
    NoCertificate(&'static str),
    /// A certificate cannot be used.
    #[error("a certificate cannot be used")]
    Unusable(#[source] rustls::Error),
}

impl Trust {
    /// Also trusts these certificate authorities, besides those of the machine.
    pub fn with_authorities(mut self, pem: &[u8]) -> Result<Self, TrustError> {
        self.extra.extend(certificates(pem, "the bundle")?);
        Ok(self)
    }

    /// Trusts the added certificate authorities only, and not those of the machine.
    pub fn only_added(mut self) -> Self {
        self.only_extra = true;
        self
    }

    /// Accepts any certificate of this host. With a port, such as `registry.example.com:5000`, only
    /// on that port.
    pub fn with_insecure_host(mut self, host: &str) -> Self {
        self.insecure_hosts.insert(host.to_ascii_lowercase());
        self
    }

    /// Identifies this side with a certificate.
    pub fn with_identity(mut self, chain: &[u8], key: &[u8]) -> Result<Self, TrustError> {
        let chain = certificates(chain, "the certificate")?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TrustError::NotPem("the key"))?;
        self.identity = Some(Arc::new(Identity { chain, key }));
        Ok(self)
    }

    /// Reads the certificate authorities of the machine, which takes milliseconds.
    pub(super) fn config(&self) -> Result<ClientConfig, TrustError> {
        self.config_with(self.roots())
    }

    fn config_with(&self, roots: RootCertStore) -> Result<ClientConfig, TrustError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TrustError::Unusable)?
            .with_root_certificates(roots);
        match &self.identity {
            None => Ok(builder.with_no_client_auth()),
            Some(identity) => builder
                .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
                .map_err(TrustError::Unusable),
        }
    }

    /// The same, for hosts whose certificates are not verified.
    pub(super) fn insecure_config(&self) -> Result<ClientConfig, TrustError> {
        let mut config = self.config_with(RootCertStore::empty())?;
        let provider = config.crypto_provider().clone();
        config
            .dangerous()
            .set_certificate_verifier(Arc::new(AnyCertificate(provider)));
        Ok(config)
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        if !self.only_extra {
            let native = rustls_native_certs::load_native_certs();
            for error in &native.errors {
                tracing::debug!(%error, "a certificate authority of this machine cannot be loaded");
            }
            roots.add_parsable_certificates(native.certs);
        }
        roots.add_parsable_certificates(self.extra.iter().cloned());
        if roots.is_empty() {
            tracing::warn!(
                "there are no certificate authorities, so no https:// address can be called"
            );
        }
        roots
    }
}

fn certificates(
    pem: &[u8],
    what: &'static str,
) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|_| TrustError::NotPem(what))?;
    if certificates.is_empty() {
        return Err(TrustError::NoCertificate(what));
    }
    Ok(certificates)
}

/// Accepts any certificate, and verifies only that the server has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
