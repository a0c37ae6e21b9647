//! What the operator shows of itself over TLS: a certificate that it made for itself, as KubeElasti has
//! it where none is given. Nobody can tell by it who shows it; what is read on the way is hidden.

use std::{error::Error, sync::Arc};

use rustls::{
    ServerConfig,
    crypto::aws_lc_rs::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};

use super::settings::Places;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Made anew with every start, for the names that the operator is reached by.
pub(crate) fn self_signed(places: &Places) -> Result<Arc<ServerConfig>> {
    shown(own(places)?)
}

fn own(places: &Places) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>)> {
    let (operator, namespace) = (&places.operator_deployment, &places.operator_namespace);
    let names = vec![
        format!("{operator}-metrics-service.{namespace}.svc"),
        "localhost".to_owned(),
    ];
    let own = rcgen::generate_simple_self_signed(names)?;
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    Ok((own.cert.der().clone(), key.into()))
}

fn shown(
    (certificate, key): (CertificateDer<'static>, PrivateKeyDer<'static>),
) -> Result<Arc<ServerConfig>> {
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
        lease::Leadership,
        manager::{Manager, secure_listener},
        site::Site,
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

    fn places() -> Places {
        let name = str::to_owned;
        Places {
            resolver_namespace: name("elasti"),
            resolver_deployment: name("resolver"),
            resolver_service: name("resolver"),
            resolver_account: name("resolver"),
            resolver_port: 8013,
            resolver_proxy_port: 8012,
            operator_namespace: name("elasti"),
            operator_deployment: name("operator"),
            operator_service: name("operator"),
            operator_account: name("operator"),
            operator_port: 8013,
        }
    }

    fn site() -> Site {
        let clock = Clock::system();
        let silence = tower::service_fn(|_: http::Request<Body>| {
            std::future::pending::<std::result::Result<http::Response<Body>, Infallible>>()
        });
        Site {
            client: kube::Client::new(silence, "default"),
            watches: Watches::new(clock).0,
            leadership: Leadership::alone(clock),
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
    async fn numbers_are_shown_over_tls_in_the_name_of_the_service() {
        let (certificate, key) = own(&places()).unwrap();
        let identity = shown((certificate.clone(), key)).unwrap();
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let health = Manager::new(&site()).health();
        let stop = CancellationToken::new();
        let serve = secure_listener(socket, health, identity).run(stop.clone());
        let ask = async {
            let stream = TcpStream::connect(address).await.unwrap();
            let name = "operator-metrics-service.elasti.svc".try_into().unwrap();
            let connected = trusting(certificate).connect(name, stream).await;
            let mut stream = connected.unwrap();
            let request = b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            stream.write_all(request).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            stop.cancel();
            answer
        };
        let ((), answer) = tokio::join!(serve, ask);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.ends_with("# EOF\n"), "{answer}");
    }
}
