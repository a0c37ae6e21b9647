//! Clients that are slow, half-open, send garbage or never read.

use std::time::Duration;

use http::Method;
use neap_load::{
    bulk::{BulkRequest, send_all},
    client::Client,
    objects::{Resource, create, revision},
    server::Server,
};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::start_server;

const MAPS: Resource = Resource::ConfigMaps;
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Bounds the wait of a test that fails.
const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

/// Asserts that another client is served normally.
async fn assert_others_are_served(client: &Client, name: &str) {
    let mut connection = client.connect().await.unwrap();
    let created = create(&mut connection, MAPS, &MAPS.object(name, 1, 10)).await;
    assert_eq!(created.unwrap().status, 201);
    let read = connection.send(Method::GET, &MAPS.path(name), "").await;
    assert_eq!(read.unwrap().status, 200);
}

fn grown(server: &Server, before: u64) -> u64 {
    server.resident_bytes().unwrap().saturating_sub(before)
}

/// A Deployment with many variables, whose patch is merged entry by entry.
fn with_variables(name: &str, number: usize) -> serde_json::Value {
    let variables =
        (0..20_000).map(|at| json!({"name": format!("V{at}"), "value": format!("{number}")}));
    let variables: Vec<_> = variables.collect();
    let container = json!({"name": "c", "image": "i", "env": variables});
    let template =
        json!({"metadata": {"labels": {"a": name}}, "spec": {"containers": [container]}});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": name}}, "template": template},
    })
}

#[tokio::test]
async fn memory_is_given_back_without_traffic_after_a_burst_of_large_patches() {
    const WRITERS: usize = 8;
    let (server, client) = start_server(None).await;
    let before = server.resident_bytes().unwrap();
    let all = "/apis/apps/v1/namespaces/default/deployments";
    let writers = (0..WRITERS).map(|writer| {
        let client = client.clone();
        async move {
            let mut connection = client.connect().await.unwrap();
            let name = format!("d{writer}");
            let body = with_variables(&name, 0).to_string();
            let created = connection.send(Method::POST, all, body).await.unwrap();
            assert_eq!(created.status, 201);
            for number in 1..6 {
                let patch = with_variables(&name, number).to_string();
                let kind = "application/strategic-merge-patch+json";
                let path = format!("{all}/{name}");
                let patched = connection
                    .send_as(Method::PATCH, &path, kind, patch)
                    .await
                    .unwrap();
                assert_eq!(patched.status, 200);
            }
        }
    });
    futures::future::join_all(writers).await;
    // The objects, and 32 MiB of history, stay.
    let bound = 200_000_000;
    // No request arrives meanwhile.
    let returned = async {
        while grown(&server, before) >= bound {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let returned = tokio::time::timeout(WAIT_TIMEOUT, returned).await;
    let left = grown(&server, before);
    assert!(returned.is_ok(), "{left} bytes are kept");
    assert_others_are_served(&client, "afterwards").await;
}

#[tokio::test]
async fn slow_and_half_open_clients_use_little_memory_and_block_no_others() {
    let (server, client) = start_server(None).await;
    let before = server.resident_bytes().unwrap();
    let mut sockets = Vec::new();
    let mut streams = Vec::new();
    for _ in 0..200 {
        sockets.push(client.socket().await.unwrap());
    }
    let authorization = client.authorization();
    let path = MAPS.collection();
    let begun = format!("POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n");
    for (number, rest) in ["", "Content-Length: 3000000\r\n\r\n{\"meta", "\r\n"]
        .iter()
        .cycle()
        .take(90)
        .enumerate()
    {
        let mut stream = client.raw().await.unwrap();
        let sent = format!("{begun}{rest}");
        // Some requests stop in the middle of a line.
        let end = sent.len() - number % 3;
        stream.write_all(&sent.as_bytes()[..end]).await.unwrap();
        stream.flush().await.unwrap();
        streams.push(stream);
    }
    assert_others_are_served(&client, "meanwhile").await;
    let grown = grown(&server, before);
    assert!(grown < 40_000_000, "{grown} bytes for slow clients");
    drop((sockets, streams));
    assert_others_are_served(&client, "afterwards").await;
}

#[tokio::test]
async fn garbage_instead_of_tls_or_http_ends_only_that_connection() {
    let (_server, client) = start_server(None).await;
    for garbage in [
        b"GET / HTTP/1.1\r\n\r\n".as_slice(),
        &[0x16; 4096],
        &[0; 17],
    ] {
        let mut socket = client.socket().await.unwrap();
        // The server may have closed the connection already.
        let _ = socket.write_all(garbage).await;
    }
    let endless = format!("GET /{} HTTP/1.1\r\n", "a".repeat(1 << 20));
    for garbage in [
        "\0\0\0\0\r\n\r\n",
        "GET\r\n\r\n",
        &endless,
        "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
    ] {
        let mut stream = client.raw().await.unwrap();
        let _ = stream.write_all(garbage.as_bytes()).await;
    }
    assert_others_are_served(&client, "afterwards").await;
}

#[tokio::test]
async fn an_oversized_body_is_refused() {
    let (_server, client) = start_server(None).await;
    let mut connection = client.connect().await.unwrap();
    let large = vec![b' '; (3 << 20) + 1];
    let sent = connection
        .send(Method::POST, &MAPS.collection(), large)
        .await;
    // The server may close the connection before it has read the body, in which case the client may miss
    // the response.
    if let Ok(answer) = sent {
        assert_eq!(answer.status, 413);
        assert_eq!(answer.json().unwrap()["reason"], "RequestEntityTooLarge");
    }
    assert_others_are_served(&client, "afterwards").await;
}

#[tokio::test]
async fn a_watcher_that_never_reads_uses_little_memory_and_gets_410() {
    let (server, client) = start_server(None).await;
    let mut connection = client.connect().await.unwrap();
    let list = connection.send(Method::GET, &MAPS.collection(), "").await;
    let from = revision(&list.unwrap().success().unwrap()).unwrap();
    let path = format!("{}?watch=1&resourceVersion={from}", MAPS.collection());
    let mut stuck = Vec::new();
    for _ in 0..20 {
        let connection = client.connect().await.unwrap();
        stuck.push(connection.watch(&path).await.unwrap());
    }
    let large = MAPS.object("large", 0, 100_000);
    let created = create(&mut connection, MAPS, &large).await;
    assert_eq!(created.unwrap().status, 201);
    let before = server.resident_bytes().unwrap();
    // Twice the history that the server keeps.
    let updates = send_all(&client, 4, 700, |number| BulkRequest {
        method: Method::PATCH,
        path: MAPS.path("large"),
        content_type: "application/merge-patch+json",
        body: json!({"data": {"number": (number + 1).to_string()}}).to_string(),
    });
    updates.await.unwrap();
    let grown = grown(&server, before);
    assert!(
        grown < 80_000_000,
        "{grown} bytes for watchers that never read"
    );
    assert_others_are_served(&client, "meanwhile").await;
    for mut watch in stuck {
        let mut last = from;
        loop {
            let event = watch
                .next()
                .await
                .unwrap()
                .expect("an ERROR event before the end");
            if event["type"] == "ERROR" {
                assert_eq!(event["object"]["code"], 410);
                break;
            }
            let at = revision(&event["object"]).unwrap();
            assert!(at > last);
            last = at;
        }
    }
}
