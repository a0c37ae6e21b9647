//! What can be seen of a resolver from outside.

use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::{
    pod::Pod,
    scene::{Scene, until},
};

const ASKED: &[u8] = b"GET /a/b?c=d HTTP/1.1\r\nHost: cart.shop.svc\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn numbers_of_the_original_are_there_without_what_clients_choose() {
    let scene = Scene::shared("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    let wake = async {
        scene.holds(1).await;
        let text = scene.telemetry.text();
        for line in [
            "elasti_resolver_queued_count{source=\"cart\",namespace=\"shop\"} 1",
            "neaptide_idle_held 1",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        scene.pods(&[pod.address]);
    };
    tokio::join!(scene.say(ASKED), wake);
    scene
        .say(b"GET / HTTP/1.1\r\nHost: nobody\r\nConnection: close\r\n\r\n")
        .await;
    let text = scene.telemetry.text();
    for line in [
        "elasti_resolver_incoming_requests_count{source=\"cart\"",
        "namespace=\"shop\",method=\"GET\",requestURI=\"\",status=\"OK\",error=\"\"} 1",
        "elasti_resolver_host_extraction_count{extractionType=\"cache-hit\",source=\"cart\"",
        "elasti_resolver_host_extraction_count{extractionType=\"error\",source=\"\"",
        "elasti_resolver_operator_rpc_count{error=\"\"} 1",
        "neaptide_idle_requests_total{protocol=\"http\"} 1",
        "neaptide_idle_refused_total{protocol=\"http\",reason=\"UnknownService\"} 1",
        "neaptide_idle_held_bytes 0",
        "part=\"schedule\"",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    assert!(!text.contains("nobody") && !text.contains("/a/b"), "{text}");
}

#[tokio::test]
async fn what_clients_choose_is_shown_to_those_who_ask_for_it() {
    let scene = Scene::shared_unbounded();
    let pod = Pod::new(&scene.tasks).await;
    scene.pods(&[pod.address]);
    scene.say(ASKED).await;
    let text = scene.telemetry.text();
    assert!(text.contains("requestURI=\"/a/b\""), "{text}");
    assert!(text.contains("hostHeader=\"cart.shop.svc\""), "{text}");
}

#[tokio::test]
async fn a_service_that_is_gone_is_no_longer_counted() {
    let scene = Scene::shared("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    scene.pods(&[pod.address]);
    scene.say(ASKED).await;
    assert!(scene.telemetry.text().contains("source=\"cart\""));
    let stop = tokio_util::sync::CancellationToken::new();
    let follow = neap_idle::resolver::listen::follow(scene.resolver.clone(), stop.clone());
    scene.forget();
    scene.tasks.spawn(follow);
    until(|| !scene.telemetry.text().contains("source=\"cart\"")).await;
    stop.cancel();
}

#[tokio::test]
async fn what_is_malformed_is_counted() {
    let scene = Scene::new("HTTP", &json!({}));
    scene.say(b"GET / HTTP/1.1\nHost: a\n\n").await;
    scene.say(b"no request at all\r\n\r\n").await;
    refused(&scene, "BadRequest", 2).await;
}

#[tokio::test]
async fn what_is_slow_is_counted() {
    // However slow the machine is, these are slower: they never say the rest.
    let scene = Scene::impatient("HTTP", std::time::Duration::from_millis(50));
    scene.say(b"GET / HTTP/1.1\r\n").await;
    scene.say(b"").await;
    refused(&scene, "TooSlow", 2).await;
}

#[tokio::test]
async fn who_leaves_in_the_middle_of_a_body_is_counted_and_nonsense_only_once() {
    let scene = Scene::new("HTTP", &json!({}));
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut client = scene.connect().await;
    client.write_all(head.as_bytes()).await.unwrap();
    scene.holds(1).await;
    client.write_all(b"4\r\nab").await.unwrap();
    drop(client);
    refused(&scene, "ClientLeft", 1).await;
    let mut client = scene.connect().await;
    client.write_all(head.as_bytes()).await.unwrap();
    scene.holds(1).await;
    client.write_all(b"nonsense\r\n").await.unwrap();
    refused(&scene, "BadRequest", 1).await;
    refused(&scene, "ClientLeft", 1).await;
}

async fn refused(scene: &Scene, reason: &str, count: usize) {
    let labels = format!("{{protocol=\"http\",reason=\"{reason}\"}}");
    let line = format!("neaptide_idle_refused_total{labels} {count}\n");
    until(|| scene.telemetry.text().contains(&line)).await;
}
