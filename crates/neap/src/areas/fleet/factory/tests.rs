use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::PostParams};
use rustls::{ClientConfig, pki_types::ServerName};
use tempfile::TempDir;
use tokio::{net::TcpStream, runtime::Handle};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::*;
use crate::environment;

const ID: &str = "cluster-1";

/// A factory, and the folder of its clusters. Clusters share an address, as on a machine without others.
fn factory() -> (PocketFactory, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let addresses = ClusterAddresses {
        own: Vec::new(),
        shared: Ipv4Addr::LOCALHOST.into(),
    };
    let (environment, _panics) = environment::system(&Handle::current());
    let factory = PocketFactory::new(folder.path().to_owned(), addresses, environment);
    (factory, folder)
}

async fn start(factory: &PocketFactory) -> StartedCluster {
    let spec = ClusterSpec {
        id: ID.to_owned(),
        name: "one".to_owned(),
        domain: "one.example.com".to_owned(),
        version: "4.20.0".to_owned(),
    };
    factory.start(&spec).await.unwrap()
}

fn address(cluster: &StartedCluster) -> SocketAddr {
    let address = cluster.api_url.strip_prefix("https://").unwrap();
    address.parse().unwrap()
}

async fn connect(cluster: &StartedCluster) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(cluster.authority.as_bytes()).unwrap();
    roots.add(authority).unwrap();
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address(cluster)).await.unwrap();
    let name = ServerName::from(address(cluster).ip());
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.unwrap()
}

#[tokio::test]
async fn a_destroyed_cluster_has_closed_its_socket_and_its_store() {
    let (factory, folder) = factory();
    let cluster = start(&factory).await;
    let _client = connect(&cluster).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client.clone());
    let map = |name: &str| {
        let metadata = kube::api::ObjectMeta {
            name: Some(name.to_owned()),
            ..kube::api::ObjectMeta::default()
        };
        ConfigMap {
            metadata,
            ..ConfigMap::default()
        }
    };
    maps.create(&PostParams::default(), &map("before"))
        .await
        .unwrap();
    factory.destroy(ID).await.unwrap();
    TcpListener::bind(address(&cluster)).await.unwrap();
    let late = maps.create(&PostParams::default(), &map("after")).await;
    assert!(late.is_err(), "the store is closed: {late:?}");
    assert!(!folder.path().join(ID).exists());
    assert!(factory.running(ID).await.is_none());
    factory.destroy(ID).await.unwrap();
}

#[tokio::test]
async fn clients_beyond_the_share_of_a_cluster_wait() {
    let (mut factory, _folder) = factory();
    factory.max_connections = 2;
    let cluster = start(&factory).await;
    let (first, _second) = (connect(&cluster).await, connect(&cluster).await);
    let third = connect(&cluster);
    tokio::pin!(third);
    // Enough for many handshakes.
    for _ in 0..10_000 {
        assert!(futures::poll!(third.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    drop(first);
    third.await;
}
