mod waits;

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Limited};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Client, CustomResourceExt, api::PostParams, client::Body};
use neap_kit::{clock::Clock, lease::Leadership, site::Site, watch::Watches};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    operator::{
        asking::OUTCOME_WITHIN,
        tokens::{Denied, Tokens},
    },
    wake::WakeService,
};

#[derive(Debug)]
struct Clerk;

impl Tokens for Clerk {
    fn owner<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<String>, Denied>> {
        let owner = (token == "good").then(|| "system:serviceaccount:elasti:r".to_owned());
        Box::pin(async move { Ok(owner) })
    }
}

fn door() -> Door {
    Door::for_accounts(Arc::new(Clerk), [("elasti", "r")])
}

struct Stage {
    routes: OperatorRoutes,
    client: Client,
    clock: Clock,
    tasks: JoinSet<()>,
    pocket: Pocket,
}

async fn stage(door: Door) -> Stage {
    stage_with(door, |client| client).await
}

/// Wakes are done through what `server` makes of the server's client.
async fn stage_with(door: Door, server: impl FnOnce(Client) -> Client) -> Stage {
    let options = Options::new(Environment::rehearsal(7));
    let pocket = Pocket::open(options).await.unwrap();
    let client = Client::new(pocket.service(), "default");
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let (watches, watching) = Watches::new(clock);
    let site = Site {
        client: server(client.clone()),
        watches,
        leadership: Leadership::alone(clock),
        clock,
    };
    let definitions = Api::all(client.clone());
    let definition = ElastiService::crd();
    let made = definitions
        .create(&PostParams::default(), &definition)
        .await;
    made.unwrap();
    let services = site.all().unwrap();
    let (waker, wakes) = WakeService::new(&site, services.clone());
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(watching.run(stop.clone()));
    tasks.spawn(wakes.run(stop));
    Stage {
        routes: OperatorRoutes {
            door,
            waker,
            services,
            process: Process::default(),
            clock,
            patience: OUTCOME_WITHIN,
        },
        client,
        clock,
        tasks,
        pocket,
    }
}

fn asked(method: &str, path: &str, token: &str, body: &str) -> Asked {
    let mut request = Request::builder().method(method).uri(path);
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    request.body(Bytes::from(body.to_owned())).unwrap()
}

impl Stage {
    async fn said(&self, asked: Asked) -> (u16, String, String) {
        said(self.routes.answer(&asked).await).await
    }

    async fn wake(&self, token: &str) -> Answer {
        let asked = asked("POST", "/informer/incoming-request", token, WAKE);
        self.routes.answer(&asked).await
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
async fn said(answer: Answer) -> (u16, String, String) {
    let status = answer.status().as_u16();
    let kind = answer.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    let body = Limited::new(answer.into_body(), 1 << 20).collect().await;
    let body = body.unwrap().to_bytes();
    (status, kind, String::from_utf8(body.to_vec()).unwrap())
}

const WAKE: &str = r#"{"count":1,"svc":"cart","namespace":"default"}"#;

#[tokio::test(start_paused = true)]
async fn verbs_statuses_and_bodies_are_those_of_the_original() {
    let stage = stage(door()).await;
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
        ("POST", path, "", WAKE, 401, "show the token"),
        ("GET", "/crd-cache", "good", "", 200, r#"{"services":{}}"#),
        ("POST", "/crd-cache", "good", "", 405, "Method not allowed"),
        ("GET", "/crd-cache", "", "", 401, "show the token"),
        ("GET", "/metrics", "", "", 200, "# EOF"),
        ("GET", "/else", "good", "", 404, "404 page not found"),
    ] {
        let (code, kind, text) = stage.said(asked(method, path, token, body)).await;
        assert_eq!(code, status, "{method} {path} {body}: {text}");
        assert!(text.contains(says), "{method} {path} {body}: {text}");
        if text.starts_with('{') {
            assert_eq!((kind.as_str(), text.as_str()), ("application/json", says));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_resolver_of_the_original_is_let_in_by_a_flag() {
    let stage = stage(door().standing_open(true)).await;
    assert_eq!(stage.wake("").await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_is_woken_and_listed_without_secrets() {
    let stage = stage(door()).await;
    stage.target().await;
    stage.sleepy().await;
    stage.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.wake("good").await.status(), 200);
    stage.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.replicas().await, Some(1));
    let (_, _, text) = stage.said(asked("GET", "/crd-cache", "good", "")).await;
    let read: Value = serde_json::from_str(&text).unwrap();
    let told = &read["services"]["default/cart"];
    assert_eq!(told["name"], "sleepy");
    assert_eq!(
        told["spec"]["triggers"][0]["metadata"]["headers"]["X"],
        "redacted"
    );
    assert_eq!(told["status"]["lastWake"]["cause"], "request");
    assert!(!text.contains("hush"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn when_too_many_wait_that_is_said() {
    let silence = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<Response<Body>, Infallible>>()
    });
    let mut stage = stage(door()).await;
    let (watches, _watching) = Watches::new(stage.clock);
    let site = Site {
        client: Client::new(silence, "default"),
        watches,
        leadership: Leadership::alone(stage.clock),
        clock: stage.clock,
    };
    // Nobody takes these in.
    let (waker, _wakes) = WakeService::of_all(&site).unwrap();
    stage.routes.waker = waker;
    let mut last = (200, String::new());
    for _ in 0..5000 {
        let answer = stage.wake("good").await;
        if answer.status() != 200 {
            assert_eq!(answer.headers()["retry-after"], "1");
            let (status, _, text) = said(answer).await;
            last = (status, text);
            break;
        }
    }
    assert_eq!(last.0, 503, "{}", last.1);
}
