//! The keys by which others check the tokens of service accounts.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::World;

#[tokio::test(start_paused = true)]
async fn others_can_check_tokens_by_the_published_keys() {
    let world = World::new().await;
    let (_, issuer) = world
        .admin("GET", "/.well-known/openid-configuration", Value::Null)
        .await;
    assert_eq!(issuer["issuer"], "https://kubernetes.default.svc");
    assert_eq!(issuer["jwks_uri"], "https://127.0.0.1:6443/openid/v1/jwks");
    assert_eq!(
        issuer["id_token_signing_alg_values_supported"],
        json!(["ES256"])
    );
    let (_, keys) = world.admin("GET", "/openid/v1/jwks", Value::Null).await;
    assert_eq!(keys["keys"][0]["crv"], "P-256");
    // Pods look there for the keys of the tokens that they receive.
    let token = world.token("default", json!({})).await;
    for (header, code) in [
        ("", 403),
        ("Bearer alice-token", 403),
        (&format!("Bearer {token}"), 200),
    ] {
        let (answer, _) = world
            .ask(header, "GET", "/openid/v1/jwks", Value::Null)
            .await;
        assert_eq!(answer, code);
    }
}

#[tokio::test(start_paused = true)]
async fn keys_are_found_where_the_server_is_advertised() {
    let options = Options {
        advertised: Some("[::1]:7000".into()),
        ..Options::new(Environment::simulated(1))
    };
    let service = Pocket::open(options).await.unwrap().service();
    let request = Request::get("/.well-known/openid-configuration");
    let request = request.body(Full::<Bytes>::default()).unwrap();
    let body = service.oneshot(request).await.unwrap().into_body();
    let bytes = body.collect().await.unwrap().to_bytes();
    let issuer: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(issuer["jwks_uri"], "https://[::1]:7000/openid/v1/jwks");
}
