//! The self-signed certificate of the metrics server, as KubeElasti has it where none is given. It encrypts
//! the connection; it does not authenticate the server.

use std::{error::Error, sync::Arc};

use rustls::{
    ServerConfig,
    crypto::aws_lc_rs::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};

use crate::options::Installation;

type CertificateResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Creates a certificate for the names of the operator. It is new with every start.
pub(crate) fn self_signed(installation: &Installation) -> CertificateResult<Arc<ServerConfig>> {
    server_config(generate(installation)?)
}

fn generate(
    installation: &Installation,
) -> CertificateResult<(CertificateDer<'static>, PrivateKeyDer<'static>)> {
    let (operator, namespace) = (
        &installation.operator_deployment,
        &installation.operator_namespace,
    );
    let names = vec![
        format!("{operator}-metrics-service.{namespace}.svc"),
        "localhost".to_owned(),
    ];
    let generated = rcgen::generate_simple_self_signed(names)?;
    let key = PrivatePkcs8KeyDer::from(generated.signing_key.serialize_der());
    Ok((generated.cert.der().clone(), key.into()))
}

fn server_config(
    (certificate, key): (CertificateDer<'static>, PrivateKeyDer<'static>),
) -> CertificateResult<Arc<ServerConfig>> {
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use kube::client::Body;
    use neap_kit::{
        clock::Clock,
        context::Context,
        lease::Leadership,
        manager::{Manager, secure_listener},
        watch::Watches,
    };
    use rustls::{ClientConfig, RootCertStore};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpStream},
    };
    use tokio_rustls::TlsConnector;
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn context() -> Context {
        let clock = Clock::system();
        let silence = tower::service_fn(|_: http::Request<Body>| {
            std::future::pending::<Result<http::Response<Body>, Infallible>>()
        });
        Context {
            client: kube::Client::new(silence, "default"),
            watches: Watches::new(clock).0,
            leadership: Leadership::without_election(clock),
            clock,
        }
    }

    fn trusting(certificate: CertificateDer<'static>) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        TlsConnector::from(Arc::new(config))
    }

    #[tokio::test]
    async fn metrics_are_served_over_tls_in_the_name_of_the_service() {
        let (certificate, key) = generate(&Installation::standard()).unwrap();
        let identity = server_config((certificate.clone(), key)).unwrap();
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let health = Manager::new(&context()).health();
        let stop = CancellationToken::new();
        let serve = secure_listener(socket, health, identity).run(stop.clone());
        let request = async {
            let stream = TcpStream::connect(address).await.unwrap();
            let name = "elasti-operator-controller-manager-metrics-service.elasti.svc"
                .try_into()
                .unwrap();
            let connected = trusting(certificate).connect(name, stream).await;
            let mut stream = connected.unwrap();
            let head = b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            stream.write_all(head).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            stop.cancel();
            answer
        };
        let ((), answer) = tokio::join!(serve, request);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.ends_with("# EOF\n"), "{answer}");
    }
}
