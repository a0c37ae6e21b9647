//! Clients that are slow, half-open, or never read.

use http::Method;
use neap_load::{
    client::Client,
    objects::{Resource, create, revision},
    rush::{Shot, rush},
    server::Server,
};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::up;

const MAPS: Resource = Resource::ConfigMaps;

/// Others are served as if nothing were.
async fn others_are_served(client: &Client, name: &str) {
    let mut connection = client.connect().await.unwrap();
    let created = create(&mut connection, MAPS, &MAPS.object(name, 1, 10)).await;
    assert_eq!(created.unwrap().status, 201);
    let read = connection.send(Method::GET, &MAPS.path(name), "").await;
    assert_eq!(read.unwrap().status, 200);
}

fn grown(server: &Server, before: u64) -> u64 {
    server.resident_bytes().unwrap().saturating_sub(before)
}

#[tokio::test]
async fn slow_and_half_open_clients_cost_little_and_hold_nobody_up() {
    let (server, client) = up(None).await;
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
        // Some stop in the middle of a word.
        let end = sent.len() - number % 3;
        stream.write_all(&sent.as_bytes()[..end]).await.unwrap();
        stream.flush().await.unwrap();
        streams.push(stream);
    }
    others_are_served(&client, "meanwhile").await;
    let grown = grown(&server, before);
    assert!(
        grown < 40_000_000,
        "{grown} bytes for clients that said little"
    );
    drop((sockets, streams));
    others_are_served(&client, "afterwards").await;
}

#[tokio::test]
async fn garbage_in_place_of_tls_or_http_ends_that_connection_alone() {
    let (_server, client) = up(None).await;
    for garbage in [
        b"GET / HTTP/1.1\r\n\r\n".as_slice(),
        &[0x16; 4096],
        &[0; 17],
    ] {
        let mut socket = client.socket().await.unwrap();
        // The server may have hung up already.
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
    others_are_served(&client, "afterwards").await;
}

#[tokio::test]
async fn an_oversized_body_is_refused_over_the_wire() {
    let (_server, client) = up(None).await;
    let mut connection = client.connect().await.unwrap();
    let large = vec![b' '; (3 << 20) + 1];
    let sent = connection
        .send(Method::POST, &MAPS.collection(), large)
        .await;
    // It may hang up before it has read everything, but not without an answer to who reads it.
    if let Ok(answer) = sent {
        assert_eq!(answer.status, 413);
        assert_eq!(answer.json().unwrap()["reason"], "RequestEntityTooLarge");
    }
    others_are_served(&client, "afterwards").await;
}

#[tokio::test]
async fn a_watcher_that_never_reads_costs_little_and_is_told_that_its_place_expired() {
    let (server, client) = up(None).await;
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
    // Twice the history that a server keeps.
    let updates = rush(&client, 4, 700, |number| Shot {
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
    others_are_served(&client, "meanwhile").await;
    for mut watch in stuck {
        let mut last = from;
        loop {
            let event = watch
                .next()
                .await
                .unwrap()
                .expect("an end that is explained");
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
