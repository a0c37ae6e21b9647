//! Certificates that are read again while the server runs.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::sync::watch;
use tokio_rustls::rustls::{
    self, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};

use crate::{clock::Clock, manager::Component, why::chain};

/// How often the files of a certificate are read again.
const RELOAD_INTERVAL: Duration = Duration::from_secs(30);

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file contains no certificate or key in PEM.
    #[error("{} contains no {what} in PEM", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What was expected.
        what: &'static str,
    },
    /// Certificate and key cannot be used together.
    #[error("the certificate cannot be used")]
    Refused(#[from] rustls::Error),
    /// The certificate authorities of clients cannot be used.
    #[error("the certificate authorities of clients cannot be used: {0}")]
    Authorities(String),
}

/// Where a server finds its certificate.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate and those that lead to its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// What is asked of clients. A client without a certificate may connect in any case: the routes decide
    /// what it may do.
    pub clients: ClientCertificates,
}

/// What a server asks of clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientCertificates {
    /// Nothing.
    Ignored,
    /// Any certificate, whose key the client proves to hold: the routes decide whether it is trusted.
    Requested,
    /// A certificate that one of the authorities in this file signed.
    Verified(PathBuf),
}

impl TlsFiles {
    /// Reads the files.
    pub fn read(&self) -> Result<ServerConfig, TlsError> {
        let certificates: Vec<_> = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&read(&self.key)?).map_err(|_| TlsError::Pem {
            path: self.key.clone(),
            what: "private key",
        })?;
        let builder = ServerConfig::builder();
        let builder = match &self.clients {
            ClientCertificates::Ignored => builder.with_no_client_auth(),
            ClientCertificates::Requested => {
                let provider = builder.crypto_provider().clone();
                builder.with_client_cert_verifier(Arc::new(AnyCertificate(provider)))
            }
            ClientCertificates::Verified(path) => {
                builder.with_client_cert_verifier(verifier(path)?)
            }
        };
        let mut config = builder.with_single_cert(certificates, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Accepts every certificate whose key the client holds.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
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

fn verifier(path: &Path) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate)?;
    }
    WebPkiClientVerifier::builder(roots.into())
        .allow_unauthenticated()
        .build()
        .map_err(|error| TlsError::Authorities(error.to_string()))
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.unwrap_or_default();
    if found.is_empty() {
        return Err(TlsError::Pem {
            path: path.to_owned(),
            what: "certificate",
        });
    }
    Ok(found)
}

/// The certificate of a server, in its newest version. Cheap to clone.
#[derive(Clone)]
pub struct TlsIdentity(watch::Receiver<Arc<ServerConfig>>);

impl TlsIdentity {
    /// A certificate that does not change.
    pub fn fixed(config: Arc<ServerConfig>) -> Self {
        Self(watch::channel(config).1)
    }

    /// The newest configuration.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.0.borrow().clone()
    }
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity").finish_non_exhaustive()
    }
}

/// The certificate in `files`, and a component that reads them again. New connections use what was read
/// last; files that cannot be used are reported and change nothing.
pub fn reload(files: TlsFiles, clock: Clock) -> Result<(TlsIdentity, Component), TlsError> {
    let (newest, identity) = watch::channel(Arc::new(files.read()?));
    let component = Component::new("certificates", move |stop| async move {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock.sleep(RELOAD_INTERVAL) => {}
            }
            match files.read() {
                Ok(config) => {
                    newest.send_replace(Arc::new(config));
                }
                Err(error) => {
                    let why = chain(&error);
                    tracing::warn!(
                        why,
                        "the certificate was not read again; the last one is used"
                    );
                }
            }
        }
    });
    Ok((TlsIdentity(identity), component))
}
