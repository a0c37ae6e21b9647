//! What a server knows of its callers, and certificates that change while it runs.

use std::{fs, path::Path, sync::Arc};

use http::{HeaderMap, HeaderValue, header};
use k8s_openapi::api::{authentication::v1::TokenRequest, core::v1::ServiceAccount};
use kube::{Api, Client, api::PostParams};
use neap_pocket::{Options, Pocket, environment::Environment, identity::SigningKey};
use rcgen::{CertificateParams, KeyPair};
use serde_json::json;
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConnection,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::server::unresponsive_client;

fn bearer(token: &str) -> HeaderMap {
    let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
    HeaderMap::from_iter([(header::AUTHORIZATION, value)])
}

/// A token of a new service account.
async fn token(client: &Client) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let account = json!({"metadata": {"name": "caller"}});
    let account = serde_json::from_value(account).unwrap();
    accounts
        .create(&PostParams::default(), &account)
        .await
        .unwrap();
    let request: TokenRequest = serde_json::from_value(json!({"spec": {"audiences": []}})).unwrap();
    let parameters = PostParams::default();
    let issued = accounts.create_token_request("caller", &parameters, &request);
    issued.await.unwrap().status.unwrap().token.unwrap()
}

#[tokio::test]
async fn a_bearer_is_who_the_api_server_says() {
    let key = KeyPair::generate().unwrap().serialize_pem();
    let options = Options {
        signing_key: Some(SigningKey::from_pem(&key).unwrap()),
        ..Options::new(Environment::simulated(7))
    };
    let pocket = Pocket::open(options).await.unwrap();
    let client = Client::new(pocket.service(), "default");
    let token = token(&client).await;
    let reviews = TokenReviews::new(client, Vec::new(), Clock::system());
    let user = reviews.authenticate(&bearer(&token)).await.unwrap();
    assert_eq!(user.name, "system:serviceaccount:default:caller");
    assert!(user.groups.contains(&"system:serviceaccounts".to_owned()));
    let forged = format!("{token}x");
    for _ in 0..2 {
        let refused = reviews.authenticate(&bearer(&forged)).await.unwrap_err();
        assert!(matches!(refused, BearerError::Refused), "{refused}");
    }
    let none = reviews.authenticate(&HeaderMap::new()).await.unwrap_err();
    assert!(matches!(none, BearerError::Missing), "{none}");
    let text = format!("{reviews:?}");
    assert!(!text.contains(&token), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_about_a_token_is_used_again_for_a_while() {
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    // An API server that answers once.
    let asked = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counter = asked.clone();
    let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let answer = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {}, "spec": {"token": "t"},
            "status": {"authenticated": true, "user": {"username": "ann"}},
        });
        let body = kube::client::Body::from(answer.to_string().into_bytes());
        async { Ok::<_, std::convert::Infallible>(http::Response::new(body)) }
    });
    let reviews = TokenReviews::new(Client::new(service, "default"), Vec::new(), clock);
    for _ in 0..3 {
        let user = reviews.authenticate(&bearer("t")).await.unwrap();
        assert_eq!(user.name, "ann");
    }
    assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 1);
    clock.sleep(std::time::Duration::from_secs(31)).await;
    reviews.authenticate(&bearer("t")).await.unwrap();
    assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 2);
    // A server that never answers authenticates no caller.
    let silent = TokenReviews::new(unresponsive_client(), Vec::new(), clock);
    let headers = bearer("t");
    let waited = clock.within(
        std::time::Duration::from_mins(1),
        silent.authenticate(&headers),
    );
    assert!(waited.await.is_none());
}

/// Writes a new certificate for `localhost` and its key. Returns the certificate.
fn certificate(folder: &Path) -> String {
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = parameters.self_signed(&key).unwrap().pem();
    fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    fs::write(folder.join("tls.crt"), &certificate).unwrap();
    certificate
}

/// Whether a handshake with the newest certificate succeeds for a client that trusts `authority`.
fn is_trusted(identity: &TlsIdentity, authority: &str) -> bool {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(authority.as_bytes()).unwrap();
    roots.add(root).unwrap();
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut server = ServerConnection::new(identity.config()).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut sent = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut sent).unwrap();
        }
        let mut received = &*sent;
        while !received.is_empty() {
            server.read_tls(&mut received).unwrap();
        }
        if server.process_new_packets().is_err() {
            return false;
        }
        let mut sent = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut sent).unwrap();
        }
        let mut received = &*sent;
        while !received.is_empty() {
            client.read_tls(&mut received).unwrap();
        }
        if client.process_new_packets().is_err() {
            return false;
        }
    }
    true
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_read_again_and_one_that_is_broken_changes_nothing() {
    let _ = tokio_rustls::rustls::crypto::aws_lc_rs::default_provider().install_default();
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let first = certificate(folder.path());
    let files = TlsFiles {
        certificate: folder.path().join("tls.crt"),
        key: folder.path().join("tls.key"),
        clients: ClientCertificates::Requested,
    };
    let (identity, component) = reload(files, clock).unwrap();
    let stop = CancellationToken::new();
    let later = || clock.sleep(std::time::Duration::from_secs(31));
    let changing = async {
        assert!(is_trusted(&identity, &first));
        let second = certificate(folder.path());
        assert!(is_trusted(&identity, &first), "not before it is read");
        later().await;
        assert!(is_trusted(&identity, &second) && !is_trusted(&identity, &first));
        // Half a write: the certificate does not belong to the key.
        let key = KeyPair::generate().unwrap().serialize_pem();
        fs::write(folder.path().join("tls.key"), key).unwrap();
        later().await;
        assert!(is_trusted(&identity, &second));
        fs::remove_file(folder.path().join("tls.crt")).unwrap();
        later().await;
        assert!(is_trusted(&identity, &second));
        stop.cancel();
    };
    tokio::join!(changing, component.run(stop.clone()));
}
