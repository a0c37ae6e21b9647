use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    fixture::{ResolverFixture, TEST_TIMEOUT, read_until},
    pod::Pod,
};

#[tokio::test]
async fn only_the_hosts_of_a_service_reach_it() {
    let fixture = ResolverFixture::shared("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    for (host, status) in [
        ("cart.shop", 200),
        ("cart.shop.svc:80", 200),
        ("cart.shop.svc.cluster.local", 200),
        ("cart.shop:81", 404),
        ("cart.other", 404),
        ("cart.shop.example.com", 404),
        ("api.example.com", 404),
        ("cart", 404),
    ] {
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = fixture.exchange(request.as_bytes()).await;
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{host}: {answer}");
    }
    assert_eq!(fixture.wake_requests(), 0);
}

#[tokio::test]
async fn a_request_for_an_unreconciled_service_is_held_until_it_is_reconciled() {
    let fixture = ResolverFixture::shared("HTTP", &json!({}));
    fixture.unreconciled();
    let request = b"GET / HTTP/1.1\r\nHost: cart.shop\r\nConnection: close\r\n\r\n";
    let answered = fixture.exchange(request);
    let pod = Pod::new(&fixture.tasks).await;
    let reconciled = async {
        fixture.wait_until_held(1).await;
        fixture.pods(&[pod.address]);
    };
    let (answer, ()) = tokio::join!(answered, reconciled);
    assert!(answer.ends_with("hello"), "{answer}");
    assert_eq!(fixture.wake_requests(), 1);
}

/// A ClientHello with a server name.
fn hello(name: &str) -> Vec<u8> {
    let length = name.len() as u8;
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 19, 1, 1, 0]);
    body.extend([
        0,
        length + 9,
        0,
        0,
        0,
        length + 5,
        0,
        length + 3,
        0,
        0,
        length,
    ]);
    body.extend(name.bytes());
    let mut message = vec![1, 0, 0, body.len() as u8];
    message.extend(body);
    let mut record = vec![22, 3, 1, 0, message.len() as u8];
    record.extend(message);
    record
}

#[tokio::test]
async fn tls_is_routed_by_server_name_and_forwarded_unchanged() {
    let fixture = ResolverFixture::shared("TLS", &json!({}));
    let hello = hello("cart.shop.svc.cluster.local");
    let mut client = fixture.connect().await;
    // It comes in two pieces.
    let (first, rest) = hello.split_at(20);
    client.write_all(first).await.unwrap();
    client.write_all(rest).await.unwrap();
    fixture.wait_until_held(1).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    fixture.pods(&[listener.local_addr().unwrap()]);
    let (mut pod, _) = listener.accept().await.unwrap();
    assert_eq!(read_bytes(&mut pod, hello.len()).await, hello);
    pod.write_all(b"and back").await.unwrap();
    read_until(&mut client, "and back").await;
}

#[tokio::test]
async fn a_tls_client_with_an_unknown_server_name_is_disconnected() {
    let fixture = ResolverFixture::shared("TLS", &json!({}));
    let mut client = fixture.connect().await;
    client.write_all(&hello("shop.example.com")).await.unwrap();
    assert_eq!(read_bytes(&mut client, 1).await, b"");
    assert_eq!(fixture.wake_requests(), 0);
}

/// `count` bytes, or fewer if the stream ends before.
async fn read_bytes(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut read = Vec::new();
    let mut stream = stream.take(count as u64);
    let reading = stream.read_to_end(&mut read);
    // A reset also ends the stream.
    let _ = tokio::time::timeout(TEST_TIMEOUT, reading)
        .await
        .expect("no end");
    read
}
