use std::time::Duration;

use futures::future::join_all;
use neap_idle::resolver::probe::open_connections;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::fixture::{ResolverFixture, TEST_TIMEOUT, until};

/// A pod that sends hello first, then echoes until the client closes its side, then sends goodbye.
async fn greeter(fixture: &ResolverFixture) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tasks = fixture.tasks.clone();
    fixture.tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tasks.spawn(async move {
                stream.write_all(b"hello ").await.unwrap();
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = stream.write_all(b" goodbye").await;
            });
        }
    });
    address
}

async fn talk(mut client: TcpStream, text: &[u8]) -> String {
    client.write_all(text).await.unwrap();
    client.shutdown().await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(TEST_TIMEOUT, client.read_to_end(&mut answer));
    read.await.expect("no end").unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_server_may_speak_first_and_a_client_may_close_first() {
    let fixture = ResolverFixture::new("TCP", &json!({}));
    let silent = fixture.connect().await;
    let talkative = fixture.connect().await;
    // Both request the wake at accept.
    fixture.wait_until_waking(2).await;
    let answers = async { tokio::join!(talk(silent, b""), talk(talkative, b"early words")) };
    let wake = async { fixture.pods(&[greeter(&fixture).await]) };
    let ((silent, talkative), ()) = tokio::join!(answers, wake);
    assert_eq!(silent, "hello  goodbye");
    assert_eq!(talkative, "hello early words goodbye");
}

#[tokio::test]
async fn a_client_that_resets_is_no_longer_held() {
    let fixture = ResolverFixture::new("TCP", &json!({}));
    let client = fixture.connect().await;
    fixture.wait_until_held(1).await;
    client.set_zero_linger().unwrap();
    drop(client);
    fixture.wait_until_held(0).await;
}

#[tokio::test]
async fn an_exceeded_deadline_resets_the_connection() {
    let fixture = ResolverFixture::new("TCP", &json!({"deadlineSeconds": 1}));
    let mut client = fixture.connect().await;
    let mut buffer = [0];
    let read = tokio::time::timeout(TEST_TIMEOUT, client.read(&mut buffer)).await;
    let error = read.expect("no end").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn port_checks_can_be_ignored() {
    let ports = json!({"ports": [{"port": 80, "protocol": "TCP", "ignoreEmpty": true}]});
    let fixture = ResolverFixture::new("TCP", &ports);
    let looked = fixture.connect().await;
    let source = looked.local_addr().unwrap();
    drop(looked);
    until(|| fixture.resolver.accepted.accepted_among(&[source]) == [source]).await;
    let mut client = fixture.connect().await;
    client.write_all(b"x").await.unwrap();
    fixture.wait_until_waking(1).await;
    assert_eq!(
        fixture
            .resolver
            .activity
            .all()
            .values()
            .next()
            .unwrap()
            .requests,
        1
    );
}

#[tokio::test]
async fn a_silent_client_that_stays_waits_for_the_server_to_speak() {
    let ports = json!({"ports": [{"port": 80, "protocol": "TCP", "ignoreEmpty": true}]});
    let fixture = ResolverFixture::on_test_clock("TCP", &ports);
    let client = fixture.connect().await;
    let source = client.local_addr().unwrap();
    until(|| fixture.resolver.accepted.accepted_among(&[source]) == [source]).await;
    assert_eq!(fixture.wake_requests(), 0);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(6)).await;
    tokio::time::resume();
    fixture.wait_until_waking(1).await;
}

#[tokio::test]
async fn a_tls_client_that_closes_is_no_longer_held() {
    let fixture = ResolverFixture::new("TLS", &json!({}));
    let mut client = fixture.connect().await;
    client.write_all(&[22, 3, 1, 0, 5]).await.unwrap();
    fixture.wait_until_held(1).await;
    drop(client);
    fixture.wait_until_held(0).await;
}

#[tokio::test]
async fn a_probe_is_confirmed_without_a_wake() {
    let fixture = ResolverFixture::new("TCP", &json!({}));
    let local = "127.0.0.1".parse().unwrap();
    fixture
        .resolver
        .accepted
        .set_resolver_addresses([local].into());
    let probe = fixture.connect().await;
    let source = probe.local_addr().unwrap();
    drop(probe);
    until(|| fixture.resolver.accepted.accepted_among(&[source]) == [source]).await;
    // A connection that stays is a client of a server that speaks first.
    let _client = fixture.connect().await;
    fixture.wait_until_held(1).await;
    let request = fixture.resolver.activity.all();
    assert_eq!(request.values().next().unwrap().requests, 1);
    until(|| fixture.wake_requests() == 1).await;
}

#[tokio::test]
async fn the_data_plane_is_probed_without_a_wake() {
    let fixture = ResolverFixture::new("TCP", &json!({}));
    let accepted = &fixture.resolver.accepted;
    let tried = open_connections(&fixture.resolver, fixture.address, 3).await;
    assert_eq!((tried.sources.len(), tried.failed), (3, 0));
    until(|| accepted.accepted_among(&tried.sources) == tried.sources).await;
    // A pod accepts them, and no resolver.
    let pod = greeter(&fixture).await;
    let tried = open_connections(&fixture.resolver, pod, 2).await;
    assert_eq!(tried.sources.len(), 2);
    assert_eq!(accepted.accepted_among(&tried.sources), []);
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    assert_eq!(
        open_connections(&fixture.resolver, address, 2).await.failed,
        2
    );
    assert_eq!(fixture.wake_requests(), 0);
    assert!(fixture.resolver.activity.all().is_empty());
}

#[tokio::test]
async fn bytes_that_are_not_tls_do_not_wake_a_tls_service() {
    let fixture = ResolverFixture::new("TLS", &json!({}));
    assert_eq!(fixture.exchange(b"GET / HTTP/1.1\r\n\r\n").await, "");
    drop(fixture.connect().await);
    assert_eq!(fixture.wake_requests(), 0);
    let hello: &[u8] = &[22, 3, 1, 0, 5, 1, 0, 0, 1, 0];
    let mut client = fixture.connect().await;
    client.write_all(hello).await.unwrap();
    fixture.wait_until_held(1).await;
    fixture.pods(&[greeter(&fixture).await]);
    fixture.wait_until_held(0).await;
    let answer = talk(client, b"").await;
    let echoed = &answer.as_bytes()["hello ".len()..answer.len() - " goodbye".len()];
    assert_eq!(echoed, hello);
}

#[tokio::test]
async fn a_thousand_held_connections_are_all_served() {
    let fixture = ResolverFixture::new("TCP", &json!({"queue": {"perPod": 50}}));
    let clients = join_all((0..1000).map(|_| fixture.connect())).await;
    fixture.wait_until_waking(1000).await;
    let pods = [greeter(&fixture).await, greeter(&fixture).await];
    fixture.pods(&pods);
    let answers = clients
        .into_iter()
        .enumerate()
        .map(|(number, client)| async move {
            let text = number.to_string();
            let answer = talk(client, text.as_bytes()).await;
            assert_eq!(answer, format!("hello {text} goodbye"));
        });
    join_all(answers).await;
    assert_eq!(fixture.held(), 0);
}

#[tokio::test]
async fn large_transfers_are_forwarded_unchanged() {
    let fixture = ResolverFixture::new("TCP", &json!({}));
    fixture.pods(&[greeter(&fixture).await]);
    let client = fixture.connect().await;
    let (mut read, mut write) = client.into_split();
    let sent = vec![7; 32 << 20];
    let length = sent.len();
    fixture.tasks.spawn(async move {
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    });
    let mut all = Vec::new();
    read.read_to_end(&mut all).await.unwrap();
    assert_eq!(all.len(), length + "hello  goodbye".len());
    assert!(all[6..length + 6].iter().all(|byte| *byte == 7));
}
