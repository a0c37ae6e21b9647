//! The edge of the server: probes, defects and shutdown, seen from outside.

use std::{future::Future, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use neap_pocket::{
    Options, Pocket, Storage,
    environment::Environment,
    status::ApiError,
    store::{Access, Hooks},
    wire::{Body, Service},
};
use serde_json::{Value, json};
use tower::ServiceExt;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn ask(service: &Service, method: &str, uri: &str, body: &Value) -> Response<Body> {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = Request::builder().method(method).uri(uri);
    let request = request.body(Full::<Bytes>::from(body)).unwrap();
    service.clone().oneshot(request).await.unwrap()
}

#[expect(clippy::disallowed_methods, reason = "answers of a test are small")]
async fn text(response: Response<Body>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn a_server_whose_store_was_closed_is_alive_and_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        storage: Storage::Folder(folder.path().into()),
        ..Options::new(Environment::simulated(1))
    };
    let pocket = Pocket::open(options).await.unwrap();
    let service = pocket.service();
    for path in ["/livez", "/readyz", "/healthz", "/readyz/ping"] {
        assert_eq!(ask(&service, "GET", path, &Value::Null).await.status(), 200);
    }
    pocket.close();
    assert_eq!(
        ask(&service, "GET", "/livez", &Value::Null).await.status(),
        200
    );
    for path in ["/readyz", "/healthz"] {
        let response = ask(&service, "GET", path, &Value::Null).await;
        assert_eq!(response.status(), 500);
        let cause = text(response).await;
        assert!(cause.contains("the server is stopping"), "{cause}");
    }
    let map = json!({"metadata": {"name": "late"}});
    let refused = ask(&service, "POST", MAPS, &map).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()["retry-after"], "1");
}

struct Defect;

impl Hooks for Defect {
    fn before_read<'a>(
        &'a self,
        _: Access<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<(), ApiError>> + Send + 'a>> {
        Box::pin(async { panic!("this hook is wrong") })
    }
}

#[tokio::test(start_paused = true)]
async fn a_defect_is_answered_with_the_name_of_its_log_line() {
    let pocket = Pocket::open(Options::new(Environment::simulated(1)))
        .await
        .unwrap();
    let service = pocket.service_over(pocket.view(Some(Arc::new(Defect))));
    let response = ask(&service, "GET", MAPS, &Value::Null).await;
    assert_eq!(response.status(), 500);
    let id = response.headers()["audit-id"].to_str().unwrap().to_owned();
    let status: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(status["kind"], "Status");
    assert!(status["message"].as_str().unwrap().contains(&id));
    let answer = ask(&pocket.service(), "GET", MAPS, &Value::Null).await;
    assert_eq!(answer.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn discovery_names_the_port_of_the_server() {
    let options = Options {
        port: 7001,
        ..Options::new(Environment::simulated(1))
    };
    let pocket = Pocket::open(options).await.unwrap();
    let answer = ask(&pocket.service(), "GET", "/api", &Value::Null).await;
    let versions: Value = serde_json::from_str(&text(answer).await).unwrap();
    let address = &versions["serverAddressByClientCIDRs"][0]["serverAddress"];
    assert_eq!(address, "127.0.0.1:7001");
}

#[tokio::test(start_paused = true)]
async fn an_empty_namespace_in_a_path_is_nothing() {
    let pocket = Pocket::open(Options::new(Environment::simulated(1)))
        .await
        .unwrap();
    let path = "/api/v1/namespaces//configmaps";
    let answer = ask(&pocket.service(), "DELETE", path, &Value::Null).await;
    assert_eq!(answer.status(), 404);
}

#[tokio::test(start_paused = true)]
async fn a_request_in_another_name_is_refused() {
    let pocket = Pocket::open(Options::new(Environment::simulated(1)))
        .await
        .unwrap();
    let request = Request::get("/api/v1/namespaces")
        .header("Impersonate-User", "bob")
        .body(http_body_util::Empty::<Bytes>::new())
        .unwrap();
    let answer = pocket.service().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 403);
}

#[tokio::test(start_paused = true)]
async fn a_definition_cannot_take_the_place_of_a_built_in_kind() {
    let pocket = Pocket::open(Options::new(Environment::simulated(1)))
        .await
        .unwrap();
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let definition = json!({
        "metadata": {"name": "deployments.apps"},
        "spec": {
            "group": "apps",
            "scope": "Cluster",
            "names": {"plural": "deployments", "kind": "Impostor"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    let service = pocket.service();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let _ = ask(&service, "POST", definitions, &definition).await;
    let answer = ask(&service, "GET", "/apis/apps/v1", &Value::Null).await;
    let list: Value = serde_json::from_str(&text(answer).await).unwrap();
    let kinds: Vec<&Value> = list["resources"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|resource| resource["name"] == "deployments")
        .map(|resource| &resource["kind"])
        .collect();
    assert_eq!(kinds, ["Deployment"]);
}
