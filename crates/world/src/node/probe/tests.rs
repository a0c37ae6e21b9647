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
    Finding::{Ill, Open, Well},
    *,
};

#[test]
fn results_mean_something_when_there_are_enough_in_a_row() {
    let probe =
        serde_json::from_value(json!({"successThreshold": 2, "failureThreshold": 3})).unwrap();
    let mut tally = Tally::new(&probe);
    let results = [true, true, false, false, true, false, false, false, true];
    let found = results.map(|result| tally.note(result));
    assert_eq!(found, [Open, Well, Open, Open, Open, Open, Open, Ill, Open]);
}

async fn ask(probe: Value) -> Result<(), String> {
    let container = json!({"name": "main", "ports": [{"name": "web", "containerPort": 1}]});
    let (probe, container) = (
        serde_json::from_value(probe).unwrap(),
        serde_json::from_value(container).unwrap(),
    );
    match check(&probe, &container, Ipv4Addr::LOCALHOST.into()).await {
        Asked::Answered(answer) => answer,
        Asked::Command(command) => Err(format!("run {command:?}")),
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
async fn answers_are_judged_as_a_kubelet_judges_them() {
    let mut tasks = JoinSet::new();
    let good = server(
        "HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n",
        &mut tasks,
    )
    .await;
    let bad = server("HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n", &mut tasks).await;
    assert_eq!(
        ask(json!({"httpGet": {"port": good, "path": "/ready"}})).await,
        Ok(())
    );
    let refused = ask(json!({"httpGet": {"port": bad}})).await;
    assert_eq!(
        refused,
        Err("HTTP probe failed with statuscode: 503".to_owned())
    );
    assert_eq!(ask(json!({"tcpSocket": {"port": good}})).await, Ok(()));
    let nobody = ask(json!({"tcpSocket": {"port": "web"}}))
        .await
        .unwrap_err();
    assert!(nobody.starts_with("dial tcp 127.0.0.1:1: "), "{nobody}");
    let unnamed = ask(json!({"httpGet": {"port": "admin"}})).await;
    assert_eq!(
        unnamed,
        Err("the container has no port \"admin\"".to_owned())
    );
    let command = ask(json!({"exec": {"command": ["true"]}})).await;
    assert_eq!(command, Err("run [\"true\"]".to_owned()));
    let strange = ask(json!({"grpc": {"port": bad}})).await.unwrap_err();
    assert!(strange.starts_with("grpc 127.0.0.1:"), "{strange}");
}

/// The same over TLS, with a certificate that nobody has signed and that names somebody else.
async fn encrypted_server(answer: &'static str, tasks: &mut JoinSet<()>) -> u16 {
    let names = vec!["somebody.else".to_owned()];
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
            // Whoever does not speak TLS gets no answer.
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
async fn an_encrypted_answer_counts_whoever_signed_for_it() {
    let mut tasks = JoinSet::new();
    let good = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let good = encrypted_server(good, &mut tasks).await;
    let bad = "HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n";
    let bad = encrypted_server(bad, &mut tasks).await;
    let https = |port| ask(json!({"httpGet": {"port": port, "scheme": "HTTPS"}}));
    assert_eq!(https(good).await, Ok(()));
    let refused = Err("HTTP probe failed with statuscode: 500".to_owned());
    assert_eq!(https(bad).await, refused);
    let plain = ask(json!({"httpGet": {"port": good}})).await.unwrap_err();
    assert!(plain.starts_with("Get \"http://127.0.0.1:"), "{plain}");
    let clear = server("HTTP/1.1 200 OK\r\n\r\n", &mut tasks).await;
    let unencrypted = https(clear).await.unwrap_err();
    let words = format!("Get \"https://127.0.0.1:{clear}/\": ");
    assert!(unencrypted.starts_with(&words), "{unencrypted}");
}
