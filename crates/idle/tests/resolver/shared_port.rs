use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    pod::Pod,
    scene::{STUCK, Scene, read_until},
};

#[tokio::test]
async fn a_service_is_known_by_its_own_name_only() {
    let scene = Scene::shared("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    scene.pods(&[pod.address]);
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
        let asked = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = scene.say(asked.as_bytes()).await;
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{host}: {answer}");
    }
    assert_eq!(scene.woken(), 0);
}

#[tokio::test]
async fn whom_another_operator_has_led_here_is_held_until_ours_has_looked_at_the_service() {
    let scene = Scene::shared("HTTP", &json!({}));
    scene.unclaimed();
    let asked = b"GET / HTTP/1.1\r\nHost: cart.shop\r\nConnection: close\r\n\r\n";
    let answered = scene.say(asked);
    let pod = Pod::new(&scene.tasks).await;
    let looked_at = async {
        scene.holds(1).await;
        scene.pods(&[pod.address]);
    };
    let (answer, ()) = tokio::join!(answered, looked_at);
    assert!(answer.ends_with("hello"), "{answer}");
    assert_eq!(scene.woken(), 1);
}

/// The first message of a client of TLS, which names whom it means.
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
async fn a_client_of_tls_is_led_by_the_name_that_it_says_and_nothing_of_it_is_changed() {
    let scene = Scene::shared("TLS", &json!({}));
    let hello = hello("cart.shop.svc.cluster.local");
    let mut client = scene.connect().await;
    // It comes in two pieces.
    let (first, rest) = hello.split_at(20);
    client.write_all(first).await.unwrap();
    client.write_all(rest).await.unwrap();
    scene.holds(1).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    scene.pods(&[listener.local_addr().unwrap()]);
    let (mut pod, _) = listener.accept().await.unwrap();
    assert_eq!(read_bytes(&mut pod, hello.len()).await, hello);
    pod.write_all(b"and back").await.unwrap();
    read_until(&mut client, "and back").await;
}

#[tokio::test]
async fn a_client_of_tls_that_means_somebody_else_is_let_go() {
    let scene = Scene::shared("TLS", &json!({}));
    let mut client = scene.connect().await;
    client.write_all(&hello("shop.example.com")).await.unwrap();
    assert_eq!(read_bytes(&mut client, 1).await, b"");
    assert_eq!(scene.woken(), 0);
}

/// So many bytes, or as many as come before the end.
async fn read_bytes(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut read = Vec::new();
    let mut stream = stream.take(count as u64);
    let reading = stream.read_to_end(&mut read);
    // One that is reset has ended as well.
    let _ = tokio::time::timeout(STUCK, reading).await.expect("no end");
    read
}
