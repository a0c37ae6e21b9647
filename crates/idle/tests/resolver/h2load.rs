//! h2load, which sends many requests at once.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::{
    fixture::{ResolverFixture, until},
    pod::Pod,
    programs::{program, stdout_of},
};

/// Sends requests to a sleeping service, and counts them on both sides.
async fn load(test: &str, arguments: &[&str], requests: usize) {
    let Some(h2load) = program(test, "NEAP_H2LOAD") else {
        return;
    };
    let fixture = ResolverFixture::new("HTTP", &json!({"queue": {"perPod": 20}}));
    let pods = [
        Pod::new(&fixture.tasks).await,
        Pod::new(&fixture.tasks).await,
    ];
    let url = format!("http://{}/", fixture.address);
    let count = requests.to_string();
    let arguments = arguments.iter().copied();
    let request = stdout_of(&h2load, arguments.chain(["-n", &count, &url]));
    let wake = async {
        until(|| fixture.held() >= 50).await;
        fixture.pods(&[pods[0].address, pods[1].address]);
    };
    let (answer, ()) = tokio::join!(request, wake);
    let all = format!("{requests} done, {requests} succeeded, 0 failed, 0 errored, 0 timeout");
    assert!(answer.contains(&all), "{answer}");
    let seen = pods.map(|pod| pod.requests.load(Ordering::SeqCst));
    assert_eq!(seen.iter().sum::<usize>(), requests);
    assert_eq!(fixture.wake_requests(), 1);
}

#[tokio::test]
async fn h2load_gets_every_answer_once_over_http_2() {
    let test = "h2load::h2load_gets_every_answer_once_over_http_2";
    load(test, &["-c", "10", "-m", "10"], 3000).await;
}

#[tokio::test]
async fn h2load_gets_every_answer_once_over_http_1() {
    let test = "h2load::h2load_gets_every_answer_once_over_http_1";
    load(test, &["--h1", "-c", "60"], 3000).await;
}
