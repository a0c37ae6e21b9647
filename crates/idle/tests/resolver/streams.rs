use futures::{SinkExt, StreamExt};
use serde_json::json;
use tokio::{io::AsyncWriteExt, net::TcpListener};
use tokio_tungstenite::{accept_async, client_async, tungstenite::Message};

use crate::{
    fixture::{ResolverFixture, TEST_TIMEOUT, read_until},
    pod::Pod,
};

#[tokio::test]
async fn events_arrive_one_by_one_as_they_happen() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    let mut client = fixture.connect().await;
    client
        .write_all(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    // Each event is sent only after the one before arrived.
    for event in ["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"] {
        pod.events.send(event).await.unwrap();
        read_until(&mut client, event).await;
    }
}

#[tokio::test]
async fn a_body_is_echoed_while_it_is_sent() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    let mut client = fixture.connect().await;
    let head = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.write_all(head).await.unwrap();
    for part in ["one", "two", "six"] {
        let chunk = format!("3\r\n{part}\r\n");
        client.write_all(chunk.as_bytes()).await.unwrap();
        read_until(&mut client, part).await;
    }
    client.write_all(b"0\r\n\r\n").await.unwrap();
    read_until(&mut client, "0\r\n\r\n").await;
}

#[tokio::test]
async fn a_web_socket_is_held_and_then_forwarded_both_ways() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    fixture.tasks.spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = accept_async(stream).await.unwrap();
        socket.send(Message::text("welcome")).await.unwrap();
        while let Some(Ok(message)) = socket.next().await {
            if message.is_text() {
                socket.send(message).await.unwrap();
            }
        }
    });
    let stream = fixture.connect().await;
    let client = client_async("ws://shop.example.com/chat", stream);
    let wake = async {
        fixture.wait_until_held(1).await;
        fixture.pods(&[address]);
    };
    let (client, ()) = tokio::join!(client, wake);
    let (mut client, response) = client.unwrap();
    assert!(response.headers().contains_key("x-neaptide-cold-start"));
    let talk = async {
        let next = client.next().await.unwrap().unwrap();
        assert_eq!(next, Message::text("welcome"));
        // Bytes that are not HTTP, with bare line feeds.
        let text = "a\nb\n\n".repeat(20_000);
        client.send(Message::text(text.clone())).await.unwrap();
        assert_eq!(client.next().await.unwrap().unwrap(), Message::text(text));
        client.close(None).await.unwrap();
        while client.next().await.is_some() {}
    };
    tokio::time::timeout(TEST_TIMEOUT, talk)
        .await
        .expect("no end");
}
