//! TLS towards a webhook: only the certificate authorities of its configuration are trusted.

use std::{io, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, RootCertStore,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{Connection, Destination};

/// The TLS settings for webhooks whose certificates chain to these authorities. Without any, no
/// webhook is trusted: this server has no list of public authorities.
pub(super) fn config(authorities: Option<&[u8]>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities.unwrap_or_default()) {
        let certificate = certificate.map_err(|_| UNREADABLE)?;
        roots.add(certificate).map_err(|_| UNREADABLE)?;
    }
    if authorities.is_some() && roots.is_empty() {
        return Err(UNREADABLE.into());
    }
    // Webhooks are also called for an embedder that has installed no provider.
    let provider = CryptoProvider::get_default()
        .cloned()
        .unwrap_or_else(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

const UNREADABLE: &str = "unable to load root certificates: unable to parse bytes as PEM block";

/// Starts TLS on a connection to `host`.
pub(super) async fn secured(
    config: Arc<ClientConfig>,
    host: &str,
    raw: Box<dyn Connection>,
) -> Result<TlsStream<Box<dyn Connection>>, String> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| format!("tls: {host:?} is no name a certificate can have"))?;
    let connector = TlsConnector::from(config);
    connector
        .connect(name, raw)
        .await
        .map_err(|error| handshaking(host, &error))
}

/// The message of a failed connection.
pub(super) fn dialing(to: &Destination, error: &io::Error) -> String {
    let address = match to.endpoint {
        Some(address) => address.to_string(),
        None => to.authority(),
    };
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!("dial tcp {address}: connect: connection refused")
        }
        _ if to.endpoint.is_none() && error.raw_os_error().is_none() => {
            format!("dial tcp: lookup {}: no such host", to.host)
        }
        _ => format!("dial tcp {address}: {error}"),
    }
}

/// The message of a failed TLS handshake.
fn handshaking(host: &str, error: &io::Error) -> String {
    let cause = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let why = match cause {
        Some(rustls::Error::InvalidCertificate(why)) => match why {
            // Another authority may have the same name and a different key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "x509: certificate signed by unknown authority".to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!("x509: certificate is not valid for {host}")
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "x509: certificate has expired or is not yet valid".to_owned()
            }
            other => format!("x509: {other}"),
        },
        Some(other) => return format!("tls: {other}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => return "EOF".into(),
        None => return error.to_string(),
    };
    format!("tls: failed to verify certificate: {why}")
}
