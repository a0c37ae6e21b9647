use std::net::Ipv4Addr;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};

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
