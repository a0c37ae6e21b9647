//! The TLS configuration of the server, and its treatment of client certificates.
//!
//! A client certificate is optional, and one of an unknown authority does not fail the handshake. The
//! handshake only proves possession of the key; the authenticator decides per request whether the
//! certificate is trusted, and an untrusted one gets 401.

use std::sync::Arc;

use rustls::{
    DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    pki_types::{CertificateDer, UnixTime},
    server::{
        VerifierBuilderError, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};

use super::authority::{self, CertificateWithKey};

/// Why the certificates cannot be used for TLS.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("a certificate or key is invalid")]
    Unreadable(#[from] authority::Error),
    #[error("certificate and key do not match")]
    Refused(#[from] rustls::Error),
    #[error("the authority is invalid")]
    Authority(#[from] VerifierBuilderError),
}

/// Serves with `serving`, over HTTP/2 or HTTP/1.1, and requests certificates of `clients`.
pub(super) fn server(
    clients: RootCertStore,
    serving: &CertificateWithKey,
) -> Result<Arc<ServerConfig>, Error> {
    // Clients choose their certificate by the names of these authorities.
    let verifier = WebPkiClientVerifier::builder(Arc::new(clients))
        .allow_unauthenticated()
        .build()?;
    let verifier = DeferredTrust(verifier);
    let mut config = ServerConfig::builder()
        .with_client_cert_verifier(Arc::new(verifier))
        .with_single_cert(vec![serving.certificate_der()?], serving.key_der()?)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Accepts any certificate and leaves the decision on trust to the authenticator.
#[derive(Debug)]
struct DeferredTrust(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for DeferredTrust {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
