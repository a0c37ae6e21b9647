use std::{net::Ipv4Addr, sync::Arc};

use rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use super::{
    ProbeOutcome::{Failure, Success, Undecided},
    *,
};

#[test]
fn consecutive_results_reach_the_thresholds() {
    let probe =
        serde_json::from_value(json!({"successThreshold": 2, "failureThreshold": 3})).unwrap();
    let mut counter = ProbeCounter::new(&probe);
    let results = [true, true, false, false, true, false, false, false, true];
    let found = results.map(|result| counter.record(result));
    assert_eq!(
        found,
        [
            Undecided, Success, Undecided, Undecided, Undecided, Undecided, Undecided, Failure,
            Undecided
        ]
    );
}

async fn probe(probe: Value) -> Result<(), String> {
    let container = json!({"name": "main", "ports": [{"name": "web", "containerPort": 1}]});
    let (probe, container) = (
        serde_json::from_value(probe).unwrap(),
        serde_json::from_value(container).unwrap(),
    );
    match check(&probe, &container, Ipv4Addr::LOCALHOST.into()).await {
        ProbeCheck::Answered(answer) => answer,
        ProbeCheck::Command(command) => Err(format!("run {command:?}")),
    }
}

/// Answers every connection with `answer`.
async fn server(answer: &'static str, tasks: &mut JoinSet<()>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tasks.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut question = [0; 1024];
            let _ = stream.read(&mut question).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    port
}

#[tokio::test]
async fn responses_are_evaluated_as_by_a_kubelet() {
    let mut tasks = JoinSet::new();
    let good = server(
        "HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n",
        &mut tasks,
    )
    .await;
    let bad = server("HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n", &mut tasks).await;
    assert_eq!(
        probe(json!({"httpGet": {"port": good, "path": "/ready"}})).await,
        Ok(())
    );
    let refused = probe(json!({"httpGet": {"port": bad}})).await;
    assert_eq!(
        refused,
        Err("HTTP probe failed with statuscode: 503".to_owned())
    );
    assert_eq!(probe(json!({"tcpSocket": {"port": good}})).await, Ok(()));
    let refused_port = probe(json!({"tcpSocket": {"port": "web"}}))
        .await
        .unwrap_err();
    assert!(
        refused_port.starts_with("dial tcp 127.0.0.1:1: "),
        "{refused_port}"
    );
    let unnamed = probe(json!({"httpGet": {"port": "admin"}})).await;
    assert_eq!(
        unnamed,
        Err("the container has no port \"admin\"".to_owned())
    );
    let command = probe(json!({"exec": {"command": ["true"]}})).await;
    assert_eq!(command, Err("run [\"true\"]".to_owned()));
    let strange = probe(json!({"grpc": {"port": bad}})).await.unwrap_err();
    assert!(strange.starts_with("grpc 127.0.0.1:"), "{strange}");
}

/// The same over TLS, with a self-signed certificate for another name.
async fn encrypted_server(answer: &'static str, tasks: &mut JoinSet<()>) -> u16 {
    let names = vec!["other.example".to_owned()];
    let own = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tasks.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            // A client that does not speak TLS gets no answer.
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut question = [0; 1024];
            let _ = stream.read(&mut question).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    port
}

#[tokio::test]
async fn an_encrypted_response_counts_whatever_its_certificate() {
    let mut tasks = JoinSet::new();
    let good = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let good = encrypted_server(good, &mut tasks).await;
    let bad = "HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n";
    let bad = encrypted_server(bad, &mut tasks).await;
    let https = |port| probe(json!({"httpGet": {"port": port, "scheme": "HTTPS"}}));
    assert_eq!(https(good).await, Ok(()));
    let refused = Err("HTTP probe failed with statuscode: 500".to_owned());
    assert_eq!(https(bad).await, refused);
    let plain = probe(json!({"httpGet": {"port": good}})).await.unwrap_err();
    assert!(plain.starts_with("Get \"http://127.0.0.1:"), "{plain}");
    let clear = server("HTTP/1.1 200 OK\r\n\r\n", &mut tasks).await;
    let unencrypted = https(clear).await.unwrap_err();
    let expected = format!("Get \"https://127.0.0.1:{clear}/\": ");
    assert!(unencrypted.starts_with(&expected), "{unencrypted}");
}
