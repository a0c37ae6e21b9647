//! h2load, which asks much at once.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::{
    pod::Pod,
    programs::{program, said},
    scene::{Scene, until},
};

/// Asks for a service that sleeps, and counts on both sides.
async fn load(test: &str, arguments: &[&str], requests: usize) {
    let Some(h2load) = program(test, "NEAP_H2LOAD") else {
        return;
    };
    let scene = Scene::new("HTTP", &json!({"queue": {"perPod": 20}}));
    let pods = [Pod::new(&scene.tasks).await, Pod::new(&scene.tasks).await];
    let url = format!("http://{}/", scene.address);
    let count = requests.to_string();
    let arguments = arguments.iter().copied();
    let asked = said(&h2load, arguments.chain(["-n", &count, &url]));
    let wake = async {
        until(|| scene.held() >= 50).await;
        scene.pods(&[pods[0].address, pods[1].address]);
    };
    let (answer, ()) = tokio::join!(asked, wake);
    let all = format!("{requests} done, {requests} succeeded, 0 failed, 0 errored, 0 timeout");
    assert!(answer.contains(&all), "{answer}");
    let seen = pods.map(|pod| pod.requests.load(Ordering::SeqCst));
    assert_eq!(seen.iter().sum::<usize>(), requests);
    assert_eq!(scene.woken(), 1);
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
