mod waits;

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Limited};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Client, CustomResourceExt, api::PostParams, client::Body};
use neap_kit::{clock::Clock, context::Context, lease::Leadership, watch::Watches};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    auth::{Denied, TokenReviewer},
    http_api::WAKE_RESPONSE_TIMEOUT,
    wake::WakeRunner,
};

#[derive(Debug)]
struct FakeReviewer;

impl TokenReviewer for FakeReviewer {
    fn username<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<String>, Denied>> {
        let owner = (token == "good").then(|| "system:serviceaccount:elasti:r".to_owned());
        Box::pin(async move { Ok(owner) })
    }
}

fn authenticator() -> Authenticator {
    Authenticator::for_service_accounts(Arc::new(FakeReviewer), [("elasti", "r")])
}

struct TestOperator {
    routes: OperatorRoutes,
    client: Client,
    clock: Clock,
    tasks: JoinSet<()>,
    pocket: Pocket,
}

async fn operator(authenticator: Authenticator) -> TestOperator {
    operator_with(authenticator, |client| client).await
}

/// Wakes use the client that `server` makes of the server's.
async fn operator_with(
    authenticator: Authenticator,
    server: impl FnOnce(Client) -> Client,
) -> TestOperator {
    let options = Options::new(Environment::simulated(7));
    let pocket = Pocket::open(options).await.unwrap();
    let client = Client::new(pocket.service(), "default");
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let (watches, watching) = Watches::new(clock);
    let context = Context {
        client: server(client.clone()),
        watches,
        leadership: Leadership::without_election(clock),
        clock,
    };
    let definitions = Api::all(client.clone());
    let definition = ElastiService::crd();
    let made = definitions
        .create(&PostParams::default(), &definition)
        .await;
    made.unwrap();
    let services = context.cache().unwrap();
    let (waker, wakes) = WakeRunner::new(&context, services.clone());
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(watching.run(stop.clone()));
    tasks.spawn(wakes.run(stop));
    TestOperator {
        routes: OperatorRoutes {
            authenticator,
            waker,
            services,
            process: Process::default(),
            clock,
            wake_timeout: WAKE_RESPONSE_TIMEOUT,
        },
        client,
        clock,
        tasks,
        pocket,
    }
}

fn request(method: &str, path: &str, token: &str, body: &str) -> ApiRequest {
    let mut request = Request::builder().method(method).uri(path);
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    request.body(Bytes::from(body.to_owned())).unwrap()
}

impl TestOperator {
    async fn call(&self, request: ApiRequest) -> (u16, String, String) {
        response_parts(self.routes.handle(&request).await).await
    }

    async fn wake(&self, token: &str) -> ApiResponse {
        let request = request("POST", "/informer/incoming-request", token, WAKE);
        self.routes.handle(&request).await
    }

    fn targets(&self) -> Api<Deployment> {
        Api::default_namespaced(self.client.clone())
    }

    async fn target(&self) {
        let target = serde_json::from_value(json!({
            "metadata": {"name": "cart"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "cart"}},
                "template": {
                    "metadata": {"labels": {"app": "cart"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        }));
        let (api, options) = (self.targets(), PostParams::default());
        api.create(&options, &target.unwrap()).await.unwrap();
    }

    async fn sleepy(&self) {
        let service = serde_json::from_value(json!({
            "apiVersion": "elasti.truefoundry.com/v1alpha1",
            "kind": "ElastiService",
            "metadata": {"name": "sleepy"},
            "spec": {
                "service": "cart",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cart"},
                "triggers": [{"type": "prometheus", "metadata": {"headers": {"X": "hush"}}}],
            },
        }));
        let services: Api<ElastiService> = Api::default_namespaced(self.client.clone());
        let options = PostParams::default();
        services.create(&options, &service.unwrap()).await.unwrap();
    }

    async fn replicas(&self) -> Option<i32> {
        self.targets()
            .get("cart")
            .await
            .unwrap()
            .spec
            .unwrap()
            .replicas
    }
}

#[expect(clippy::disallowed_methods, reason = "limited")]
async fn response_parts(response: ApiResponse) -> (u16, String, String) {
    let status = response.status().as_u16();
    let kind = response.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    let body = Limited::new(response.into_body(), 1 << 20).collect().await;
    let body = body.unwrap().to_bytes();
    (status, kind, String::from_utf8(body.to_vec()).unwrap())
}

const WAKE: &str = r#"{"count":1,"svc":"cart","namespace":"default"}"#;

#[tokio::test(start_paused = true)]
async fn methods_statuses_and_bodies_are_those_of_kube_elasti() {
    let operator = operator(authenticator()).await;
    let path = "/informer/incoming-request";
    for (method, path, token, body, status, says) in [
        (
            "POST",
            path,
            "good",
            WAKE,
            200,
            r#"{"message":"Request received successfully!"}"#,
        ),
        (
            "POST",
            path,
            "good",
            "{}",
            200,
            r#"{"message":"Request received successfully!"}"#,
        ),
        ("POST", path, "good", "hello", 400, "JSON"),
        ("POST", path, "good", "", 400, "JSON"),
        ("GET", path, "good", "", 405, "Method not allowed"),
        ("POST", path, "bad", WAKE, 401, "not valid"),
        ("POST", path, "", WAKE, 401, "send the token"),
        ("GET", "/crd-cache", "good", "", 200, r#"{"services":{}}"#),
        ("POST", "/crd-cache", "good", "", 405, "Method not allowed"),
        ("GET", "/crd-cache", "", "", 401, "send the token"),
        ("GET", "/metrics", "", "", 200, "# EOF"),
        ("GET", "/else", "good", "", 404, "404 page not found"),
    ] {
        let (code, kind, text) = operator.call(request(method, path, token, body)).await;
        assert_eq!(code, status, "{method} {path} {body}: {text}");
        assert!(text.contains(says), "{method} {path} {body}: {text}");
        if text.starts_with('{') {
            assert_eq!((kind.as_str(), text.as_str()), ("application/json", says));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_resolver_of_kube_elasti_is_admitted_by_a_flag() {
    let operator = operator(authenticator().allow_unauthenticated(true)).await;
    assert_eq!(operator.wake("").await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_requested_service_is_woken_and_listed_without_secrets() {
    let operator = operator(authenticator()).await;
    operator.target().await;
    operator.sleepy().await;
    operator.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(operator.wake("good").await.status(), 200);
    operator.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(operator.replicas().await, Some(1));
    let (_, _, text) = operator
        .call(request("GET", "/crd-cache", "good", ""))
        .await;
    let read: Value = serde_json::from_str(&text).unwrap();
    let entry = &read["services"]["default/cart"];
    assert_eq!(entry["name"], "sleepy");
    assert_eq!(
        entry["spec"]["triggers"][0]["metadata"]["headers"]["X"],
        "redacted"
    );
    assert_eq!(entry["status"]["lastWake"]["cause"], "request");
    assert!(!text.contains("hush"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_is_reported() {
    let silence = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<Response<Body>, Infallible>>()
    });
    let mut operator = operator(authenticator()).await;
    let (watches, _watching) = Watches::new(operator.clock);
    let context = Context {
        client: Client::new(silence, "default"),
        watches,
        leadership: Leadership::without_election(operator.clock),
        clock: operator.clock,
    };
    // The runner is not started.
    let (waker, _wakes) = WakeRunner::for_all_services(&context).unwrap();
    operator.routes.waker = waker;
    let mut last = (200, String::new());
    for _ in 0..5000 {
        let response = operator.wake("good").await;
        if response.status() != 200 {
            assert_eq!(response.headers()["retry-after"], "1");
            let (status, _, text) = response_parts(response).await;
            last = (status, text);
            break;
        }
    }
    assert_eq!(last.0, 503, "{}", last.1);
}
