//! The metrics of a resolver.

use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::{
    fixture::{ResolverFixture, until},
    pod::Pod,
};

const REQUEST: &[u8] = b"GET /a/b?c=d HTTP/1.1\r\nHost: cart.shop.svc\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn kubeelasti_metrics_exist_without_client_controlled_labels() {
    let fixture = ResolverFixture::shared("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    let wake = async {
        fixture.wait_until_held(1).await;
        let text = fixture.telemetry.text();
        for line in [
            "elasti_resolver_queued_count{source=\"cart\",namespace=\"shop\"} 1",
            "neaptide_idle_held 1",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        fixture.pods(&[pod.address]);
    };
    tokio::join!(fixture.exchange(REQUEST), wake);
    fixture
        .exchange(b"GET / HTTP/1.1\r\nHost: elsewhere\r\nConnection: close\r\n\r\n")
        .await;
    let text = fixture.telemetry.text();
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
    assert!(
        !text.contains("elsewhere\"") && !text.contains("/a/b"),
        "{text}"
    );
}

#[tokio::test]
async fn client_controlled_labels_can_be_enabled() {
    let fixture = ResolverFixture::shared_unbounded();
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    fixture.exchange(REQUEST).await;
    let text = fixture.telemetry.text();
    assert!(text.contains("requestURI=\"/a/b\""), "{text}");
    assert!(text.contains("hostHeader=\"cart.shop.svc\""), "{text}");
}

#[tokio::test]
async fn the_series_of_a_removed_service_end() {
    let fixture = ResolverFixture::shared("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    fixture.exchange(REQUEST).await;
    assert!(fixture.telemetry.text().contains("source=\"cart\""));
    let stop = tokio_util::sync::CancellationToken::new();
    let follow = neap_idle::resolver::listeners::run(fixture.resolver.clone(), stop.clone());
    fixture.remove_service();
    fixture.tasks.spawn(follow);
    until(|| !fixture.telemetry.text().contains("source=\"cart\"")).await;
    stop.cancel();
}

#[tokio::test]
async fn malformed_requests_are_counted() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    fixture.exchange(b"GET / HTTP/1.1\nHost: a\n\n").await;
    fixture.exchange(b"no request at all\r\n\r\n").await;
    refused(&fixture, "BadRequest", 2).await;
}

#[tokio::test]
async fn slow_clients_are_counted() {
    // Independent of the speed of the machine: these requests are never completed.
    let fixture =
        ResolverFixture::with_client_timeout("HTTP", std::time::Duration::from_millis(50));
    fixture.exchange(b"GET / HTTP/1.1\r\n").await;
    fixture.exchange(b"").await;
    refused(&fixture, "TooSlow", 2).await;
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_of_a_body_is_counted_and_a_malformed_body_only_once() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut client = fixture.connect().await;
    client.write_all(head.as_bytes()).await.unwrap();
    fixture.wait_until_held(1).await;
    client.write_all(b"4\r\nab").await.unwrap();
    drop(client);
    refused(&fixture, "ClientLeft", 1).await;
    let mut client = fixture.connect().await;
    client.write_all(head.as_bytes()).await.unwrap();
    fixture.wait_until_held(1).await;
    client.write_all(b"nonsense\r\n").await.unwrap();
    refused(&fixture, "BadRequest", 1).await;
    refused(&fixture, "ClientLeft", 1).await;
}

async fn refused(fixture: &ResolverFixture, reason: &str, count: usize) {
    let labels = format!("{{protocol=\"http\",reason=\"{reason}\"}}");
    let line = format!("neaptide_idle_refused_total{labels} {count}\n");
    until(|| fixture.telemetry.text().contains(&line)).await;
}
