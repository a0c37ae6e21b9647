use serde_json::json;

use crate::{pod::Pod, scene::Scene};

#[tokio::test]
async fn a_service_is_known_by_its_own_name_only() {
    let scene = Scene::shared(&json!({}));
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
