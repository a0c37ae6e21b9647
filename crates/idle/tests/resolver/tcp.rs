use std::time::Duration;

use futures::future::join_all;
use neap_idle::resolver::prove::prove;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::scene::{STUCK, Scene, until};

/// A pod that says hello first, then everything back until the client has ended, then goodbye.
async fn greeter(scene: &Scene) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tasks = scene.tasks.clone();
    scene.tasks.spawn(async move {
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

async fn talk(mut client: TcpStream, said: &[u8]) -> String {
    client.write_all(said).await.unwrap();
    client.shutdown().await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(STUCK, client.read_to_end(&mut answer));
    read.await.expect("no end").unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_server_may_speak_first_and_a_client_may_end_first() {
    let scene = Scene::new("TCP", &json!({}));
    let silent = scene.connect().await;
    let talkative = scene.connect().await;
    // Both wake it at accept.
    scene.holds(2).await;
    assert_eq!(scene.woken(), 1);
    let answers = async { tokio::join!(talk(silent, b""), talk(talkative, b"early words")) };
    let wake = async { scene.pods(&[greeter(&scene).await]) };
    let ((silent, talkative), ()) = tokio::join!(answers, wake);
    assert_eq!(silent, "hello  goodbye");
    assert_eq!(talkative, "hello early words goodbye");
}

#[tokio::test]
async fn a_client_that_breaks_off_is_held_no_longer() {
    let scene = Scene::new("TCP", &json!({}));
    let client = scene.connect().await;
    scene.holds(1).await;
    client.set_zero_linger().unwrap();
    drop(client);
    scene.holds(0).await;
}

#[tokio::test]
async fn the_time_that_is_up_breaks_off() {
    let scene = Scene::new("TCP", &json!({"deadlineSeconds": 1}));
    let mut client = scene.connect().await;
    let mut buffer = [0];
    let read = tokio::time::timeout(STUCK, client.read(&mut buffer)).await;
    let error = read.expect("no end").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn who_only_looks_whether_a_port_is_open_may_be_ignored() {
    let ports = json!({"ports": [{"port": 80, "protocol": "TCP", "ignoreEmpty": true}]});
    let scene = Scene::new("TCP", &ports);
    let looked = scene.connect().await;
    let source = looked.local_addr().unwrap();
    drop(looked);
    until(|| scene.resolver.taken.of(&[source]) == [source]).await;
    let mut client = scene.connect().await;
    client.write_all(b"x").await.unwrap();
    scene.holds(1).await;
    assert_eq!(scene.woken(), 1);
    assert_eq!(
        scene
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
async fn who_stays_without_a_word_waits_for_the_server_to_speak() {
    let ports = json!({"ports": [{"port": 80, "protocol": "TCP", "ignoreEmpty": true}]});
    let scene = Scene::on_one_clock("TCP", &ports);
    let client = scene.connect().await;
    let source = client.local_addr().unwrap();
    until(|| scene.resolver.taken.of(&[source]) == [source]).await;
    assert_eq!(scene.woken(), 0);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(6)).await;
    tokio::time::resume();
    scene.holds(1).await;
    assert_eq!(scene.woken(), 1);
}

#[tokio::test]
async fn a_client_of_tls_that_closes_is_held_no_longer() {
    let scene = Scene::new("TLS", &json!({}));
    let mut client = scene.connect().await;
    client.write_all(&[22, 3, 1, 0, 5]).await.unwrap();
    scene.holds(1).await;
    drop(client);
    scene.holds(0).await;
}

#[tokio::test]
async fn a_proof_is_confirmed_and_wakes_nobody() {
    let scene = Scene::new("TCP", &json!({}));
    let local = "127.0.0.1".parse().unwrap();
    scene.resolver.taken.resolvers_are([local].into());
    let proof = scene.connect().await;
    let source = proof.local_addr().unwrap();
    drop(proof);
    until(|| scene.resolver.taken.of(&[source]) == [source]).await;
    // One that stays is a client of a server that speaks first.
    let _client = scene.connect().await;
    scene.holds(1).await;
    let asked = scene.resolver.activity.all();
    assert_eq!(asked.values().next().unwrap().requests, 1);
    until(|| scene.woken() == 1).await;
}

#[tokio::test]
async fn where_the_data_plane_leads_is_shown_without_waking_anybody() {
    let scene = Scene::new("TCP", &json!({}));
    let taken = &scene.resolver.taken;
    let tried = prove(&scene.resolver, scene.address, 3).await;
    assert_eq!((tried.sources.len(), tried.failed), (3, 0));
    until(|| taken.of(&tried.sources) == tried.sources).await;
    // A pod that takes them is not a resolver.
    let pod = greeter(&scene).await;
    let tried = prove(&scene.resolver, pod, 2).await;
    assert_eq!(tried.sources.len(), 2);
    assert_eq!(taken.of(&tried.sources), []);
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    assert_eq!(prove(&scene.resolver, address, 2).await.failed, 2);
    assert_eq!(scene.woken(), 0);
    assert!(scene.resolver.activity.all().is_empty());
}

#[tokio::test]
async fn what_is_not_tls_does_not_wake_a_service_that_speaks_it() {
    let scene = Scene::new("TLS", &json!({}));
    assert_eq!(scene.say(b"GET / HTTP/1.1\r\n\r\n").await, "");
    drop(scene.connect().await);
    assert_eq!(scene.woken(), 0);
    let hello: &[u8] = &[22, 3, 1, 0, 5, 1, 0, 0, 1, 0];
    let mut client = scene.connect().await;
    client.write_all(hello).await.unwrap();
    scene.holds(1).await;
    scene.pods(&[greeter(&scene).await]);
    scene.holds(0).await;
    let answer = talk(client, b"").await;
    let echoed = &answer.as_bytes()["hello ".len()..answer.len() - " goodbye".len()];
    assert_eq!(echoed, hello);
}

#[tokio::test]
async fn a_thousand_that_waited_are_all_served() {
    let scene = Scene::new("TCP", &json!({"queue": {"perPod": 50}}));
    let clients = join_all((0..1000).map(|_| scene.connect())).await;
    scene.holds(1000).await;
    assert_eq!(scene.woken(), 1);
    let pods = [greeter(&scene).await, greeter(&scene).await];
    scene.pods(&pods);
    let answers = clients
        .into_iter()
        .enumerate()
        .map(|(number, client)| async move {
            let said = number.to_string();
            let answer = talk(client, said.as_bytes()).await;
            assert_eq!(answer, format!("hello {said} goodbye"));
        });
    join_all(answers).await;
    assert_eq!(scene.held(), 0);
}

#[tokio::test]
async fn much_is_carried_as_it_is() {
    let scene = Scene::new("TCP", &json!({}));
    scene.pods(&[greeter(&scene).await]);
    let client = scene.connect().await;
    let (mut read, mut write) = client.into_split();
    let sent = vec![7; 32 << 20];
    let length = sent.len();
    scene.tasks.spawn(async move {
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    });
    let mut all = Vec::new();
    read.read_to_end(&mut all).await.unwrap();
    assert_eq!(all.len(), length + "hello  goodbye".len());
    assert!(all[6..length + 6].iter().all(|byte| *byte == 7));
}
