use kube::api::PostParams;
use neap_kit::client::{Body, Client as HttpClient, TransportError, transport_fn};
use neap_pocket::{Options as PocketOptions, Pocket, environment::Environment};
use serde_json::json;

use super::*;
use crate::oci::client::Options;

async fn opened() -> (Pocket, Client, PullSecrets, Clock) {
    let pocket = Pocket::open(PocketOptions::new(Environment::simulated(7)))
        .await
        .unwrap();
    let api = Client::new(pocket.service(), "default");
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let nothing = transport_fn(|_: http::Request<Body>| async {
        Ok::<_, TransportError>(http::Response::new(Body::empty()))
    });
    let http = HttpClient::builder("registry", clock).transport(nothing);
    let base = RegistryClient::new(
        http.build().unwrap(),
        Credentials::none(),
        Options::default(),
    );
    (pocket, api, PullSecrets::new(base, clock), clock)
}

async fn create(api: &Client, name: &str, host: &str) {
    let config = json!({"auths": {host: {"username": "u", "password": "p"}}}).to_string();
    let secret = json!({"metadata": {"name": name}, "type": DOCKER_CONFIG_JSON, "stringData": {".dockerconfigjson": config}});
    let secrets: Api<Secret> = Api::namespaced(api.clone(), "default");
    let secret = serde_json::from_value(secret).unwrap();
    secrets
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn all_pages_of_secrets_are_read() {
    let (_pocket, api, _, _) = opened().await;
    let count = PAGE * 2 + 1;
    for number in 0..count {
        create(
            &api,
            &format!("s{number:03}"),
            &format!("reg{number}.example"),
        )
        .await;
    }
    let found = read(&api, "default").await.unwrap();
    for number in [0, PAGE, count - 1] {
        let host = format!("reg{number}.example");
        assert!(found.find(&host, "ocp/cli").is_some(), "{host}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_without_imports_is_forgotten() {
    let (_pocket, api, secrets, clock) = opened().await;
    for namespace in ["gone", "default"] {
        secrets.client(&api, namespace).await.unwrap();
    }
    for _ in 0..4 {
        clock.sleep(UNUSED / 2).await;
        secrets.client(&api, "default").await.unwrap();
    }
    let remembered: Vec<_> = secrets.by_namespace.lock().keys().cloned().collect();
    assert_eq!(remembered, ["default"]);
}
