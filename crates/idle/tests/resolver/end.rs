use std::{sync::atomic::Ordering, time::Duration};

use neap_idle::resolver::drain::{Ending, Patience, drain};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::{
    pod::Pod,
    scene::{Scene, read_until, until},
};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn patience(held: u64) -> Patience {
    Patience {
        lag: Duration::from_millis(20),
        held: Duration::from_millis(held),
        rest: Duration::from_secs(10),
    }
}

#[tokio::test]
async fn what_is_held_at_the_end_is_answered_if_a_pod_comes_in_time() {
    let scene = Scene::new("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    let mut idle = scene.connect().await;
    let asked = scene.say(GET);
    let ending = Ending::default();
    let end = async {
        scene.holds(1).await;
        let drain = drain(&scene.resolver, &ending, &scene.listeners, patience(20_000));
        let pods = async {
            until(|| scene.listeners.is_cancelled()).await;
            assert!(ending.has_begun());
            scene.pods(&[pod.address]);
        };
        tokio::join!(drain, pods).0
    };
    idle.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let (answer, left) = tokio::join!(asked, end);
    assert!(answer.ends_with("hello"), "{answer}");
    assert_eq!(pod.requests.load(Ordering::SeqCst), 1);
    // A client that has not said what it wants is let go.
    assert_eq!(left, 0);
}

#[tokio::test]
async fn what_is_held_at_the_end_is_refused_if_none_comes() {
    let scene = Scene::new("HTTP", &json!({}));
    let mut client = scene.connect().await;
    client.write_all(GET).await.unwrap();
    scene.holds(1).await;
    let ending = Ending::default();
    let end = drain(&scene.resolver, &ending, &scene.listeners, patience(20));
    let (left, answer) = tokio::join!(end, read_until(&mut client, "ResolverEnding"));
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
    assert_eq!((left, scene.held()), (0, 0));
}

#[tokio::test]
async fn what_is_asked_as_the_end_begins_is_answered() {
    let scene = Scene::new("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    scene.pods(&[pod.address]);
    let mut clients = Vec::new();
    for _ in 0..64 {
        clients.push(scene.connect().await);
    }
    until(|| scene.resolver.tasks.len() >= 64).await;
    for client in &mut clients {
        client.write_all(GET).await.unwrap();
    }
    scene.resolver.ending.cancel();
    for client in &mut clients {
        read_until(client, "hello").await;
    }
}
