//! Authentication, and service account tokens, over HTTP without a socket.

#![expect(clippy::disallowed_methods, reason = "answers to a test are small")]

mod published_keys;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, header::AUTHORIZATION};
use http_body_util::{BodyExt, Full};
use neap_pocket::{
    Options, Pocket,
    environment::Environment,
    identity::{Credentials, Tokens},
    wire::Service,
};
use serde_json::{Value, json};
use tower::ServiceExt;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const PODS: &str = "/api/v1/namespaces/default/pods";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const HEALTH: &str = "/healthz";

struct World {
    environment: Environment,
    service: Service,
}

impl World {
    async fn new() -> Self {
        let environment = Environment::simulated(1);
        let pocket = Pocket::open(Options::new(environment.clone()));
        let credentials = Credentials {
            tokens: Tokens::parse("root,admin,,system:masters\nalice-token,alice,u-1,devs")
                .unwrap(),
            ..Credentials::default()
        };
        let service = pocket.await.unwrap().service();
        let service = service.authenticated_by(Arc::new(credentials));
        Self {
            environment,
            service: service.with_anonymous(true),
        }
    }

    /// The response to a request with this `Authorization` header.
    async fn ask(&self, header: &str, method: &str, path: &str, body: Value) -> (u16, Value) {
        let mut request = Request::builder().method(method).uri(path);
        if !header.is_empty() {
            request = request.header(AUTHORIZATION, header);
        }
        let body = Full::<Bytes>::from(if body.is_null() {
            String::new()
        } else {
            body.to_string()
        });
        let response = self.service.clone().oneshot(request.body(body).unwrap());
        let (parts, body) = response.await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let value = serde_json::from_slice(&bytes).unwrap_or_default();
        (parts.status.as_u16(), value)
    }

    /// The text of an answer that succeeded.
    async fn text(&self, header: &str, path: &str) -> String {
        let request = Request::get(path).header(AUTHORIZATION, header);
        let request = request.body(Full::<Bytes>::default()).unwrap();
        let response = self.service.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    async fn admin(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        self.ask("Bearer root", method, path, body).await
    }

    async fn make(&self, path: &str, body: Value) -> Value {
        let (code, made) = self.admin("POST", path, body).await;
        assert_eq!(code, 201, "{made}");
        made
    }

    async fn remove(&self, path: &str) {
        let (code, told) = self
            .admin("DELETE", path, json!({"gracePeriodSeconds": 0}))
            .await;
        assert_eq!(code, 200, "{told}");
    }

    async fn token(&self, account: &str, spec: Value) -> String {
        let path = format!("{ACCOUNTS}/{account}/token");
        let made = self.make(&path, json!({ "spec": spec })).await;
        made["status"]["token"].as_str().unwrap().to_owned()
    }

    /// The user of a token; the status code if it is invalid.
    async fn who(&self, token: &str) -> Result<Value, u16> {
        let header = format!("Bearer {token}");
        match self.ask(&header, "POST", WHO, json!({})).await {
            (201, review) => Ok(review["status"]["userInfo"].clone()),
            (code, _) => Err(code),
        }
    }

    async fn review(&self, spec: Value) -> Value {
        let made = self.make(REVIEWS, json!({ "spec": spec })).await;
        made["status"].clone()
    }

    /// Why a review refuses a token.
    async fn refusal(&self, token: &str) -> String {
        let status = self.review(json!({ "token": token })).await;
        assert_eq!(status["user"], json!({}), "{status}");
        status["error"].as_str().unwrap().to_owned()
    }
}

fn container() -> Value {
    json!([{"name": "c", "image": "i"}])
}

#[tokio::test(start_paused = true)]
async fn the_metrics_of_the_server_require_a_role() {
    let world = World::new().await;
    world
        .make("/api/v1/namespaces", json!({"metadata": {"name": "shop"}}))
        .await;
    for (header, code) in [
        ("", 403),
        ("Bearer wrong", 401),
        ("Bearer alice-token", 403),
    ] {
        let (refused, _) = world.ask(header, "GET", "/metrics", Value::Null).await;
        assert_eq!(refused, code, "{header:?}");
    }
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": {"name": "monitoring"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:monitoring"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "alice"}],
    });
    let bindings = format!("/apis/{group}/v1/clusterrolebindings");
    world.make(&bindings, binding).await;
    let text = world.text("Bearer alice-token", "/metrics").await;
    // The names are those of kube-apiserver.
    let created = text.lines().find(|line| {
        let parts = [
            "apiserver_request_total{",
            "verb=\"POST\"",
            "resource=\"namespaces\"",
            "code=\"201\"",
        ];
        parts.iter().all(|part| line.contains(part))
    });
    let created = created.unwrap_or_else(|| panic!("the request is not counted: {text}"));
    assert!(created.ends_with(" 1"), "{created}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_anonymous_and_wrong_is_refused() {
    let world = World::new().await;
    for (header, code) in [
        ("", 200),
        ("Bearer root", 200),
        ("bearer alice-token", 200),
        ("Bearer unknown", 401),
        ("Bearer a.b.c", 401),
        // An unsupported scheme counts as no credential.
        ("Basic cm9vdDpyb290", 200),
        ("Bearer ", 200),
    ] {
        let (answer, told) = world.ask(header, "GET", HEALTH, Value::Null).await;
        assert_eq!(answer, code, "{header:?}: {told}");
    }
    let (code, told) = world.ask("", "GET", PODS, Value::Null).await;
    assert_eq!(code, 403);
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("\"system:anonymous\""), "{message}");
    let closed = World {
        service: world.service.with_anonymous(false),
        ..world
    };
    assert_eq!(closed.ask("", "GET", HEALTH, Value::Null).await.0, 401);
    assert_eq!(
        closed
            .ask("Bearer root", "GET", HEALTH, Value::Null)
            .await
            .0,
        200
    );
}

#[tokio::test(start_paused = true)]
async fn a_self_review_returns_the_user() {
    let world = World::new().await;
    let alice =
        json!({"username": "alice", "uid": "u-1", "groups": ["devs", "system:authenticated"]});
    assert_eq!(world.who("alice-token").await, Ok(alice));
    let (_, review) = world
        .admin("POST", WHO, json!({"metadata": {"name": "x"}}))
        .await;
    assert_eq!(
        review["metadata"],
        json!({"creationTimestamp": "2026-01-01T00:00:00Z"})
    );
    assert_eq!(review["kind"], "SelfSubjectReview");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_its_accounts_until_it_ends() {
    let world = World::new().await;
    let (_, account) = world
        .admin("GET", &format!("{ACCOUNTS}/default"), Value::Null)
        .await;
    let token = world
        .token("default", json!({"expirationSeconds": 600}))
        .await;
    let who = world.who(&token).await.unwrap();
    assert_eq!(who["username"], "system:serviceaccount:default:default");
    assert_eq!(who["uid"], account["metadata"]["uid"]);
    let credential = &who["extra"]["authentication.kubernetes.io/credential-id"][0];
    assert!(credential.as_str().unwrap().starts_with("JTI="), "{who}");
    // One minute of clock skew is tolerated.
    world
        .environment
        .clock
        .sleep(Duration::from_secs(655))
        .await;
    assert!(world.who(&token).await.is_ok());
    world.environment.clock.sleep(Duration::from_secs(10)).await;
    assert_eq!(world.who(&token).await, Err(401));
    let why = world.refusal(&token).await;
    assert_eq!(
        why,
        "[invalid bearer token, service account token has expired]"
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_for_others_is_of_no_use_here() {
    let world = World::new().await;
    let token = world
        .token("default", json!({"audiences": ["vault", "b"]}))
        .await;
    assert_eq!(world.who(&token).await, Err(401));
    assert_eq!(
        world.refusal(&token).await,
        "[invalid bearer token, token audiences [\"vault\" \"b\"] is invalid for the target audiences [\"https://kubernetes.default.svc\"]]"
    );
    let status = world
        .review(json!({"token": token, "audiences": ["x", "vault"]}))
        .await;
    assert_eq!(status["authenticated"], true);
    assert_eq!(status["audiences"], json!(["vault"]));
    let status = world
        .review(json!({"token": "alice-token", "audiences": ["vault"]}))
        .await;
    assert_eq!(status, json!({"user": {}, "error": "invalid bearer token"}));
}

#[tokio::test(start_paused = true)]
async fn a_token_ends_with_its_account_though_another_takes_its_name() {
    let world = World::new().await;
    world
        .make(ACCOUNTS, json!({"metadata": {"name": "robot"}}))
        .await;
    let token = world.token("robot", json!({})).await;
    assert!(world.who(&token).await.is_ok());
    world.remove(&format!("{ACCOUNTS}/robot")).await;
    assert_eq!(world.who(&token).await, Err(401));
    let why = world.refusal(&token).await;
    assert_eq!(
        why,
        "[invalid bearer token, serviceaccounts \"robot\" not found]"
    );
    world
        .make(ACCOUNTS, json!({"metadata": {"name": "robot"}}))
        .await;
    assert_eq!(world.who(&token).await, Err(401));
    let why = world.refusal(&token).await;
    assert!(why.contains("does not match claim"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_bound_token_ends_with_what_it_is_bound_to() {
    let world = World::new().await;
    let nodes = "/api/v1/nodes";
    let secrets = "/api/v1/namespaces/default/secrets";
    let pod = json!({"nodeName": "m", "containers": container()});
    for (path, name, object) in [
        (nodes, "m", json!({})),
        (PODS, "p", json!({ "spec": pod })),
        (secrets, "s", json!({})),
    ] {
        let mut object = object;
        object["metadata"] = json!({ "name": name });
        world.make(path, object).await;
    }
    let bound = |kind: &str, name: &str| json!({"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name}});
    let of_secret = world.token("default", bound("Secret", "s")).await;
    let of_pod = world.token("default", bound("Pod", "p")).await;
    let of_node = world.token("default", bound("Node", "m")).await;
    let extra = &world.who(&of_pod).await.unwrap()["extra"];
    assert_eq!(extra["authentication.kubernetes.io/pod-name"], json!(["p"]));
    assert_eq!(
        extra["authentication.kubernetes.io/node-name"],
        json!(["m"])
    );
    for (path, token) in [
        (format!("{secrets}/s"), &of_secret),
        (format!("{nodes}/m"), &of_node),
        (format!("{PODS}/p"), &of_pod),
    ] {
        assert!(world.who(token).await.is_ok(), "{path}");
        world.remove(&path).await;
        assert_eq!(world.who(token).await, Err(401), "{path}");
        let why = world.refusal(token).await;
        assert_eq!(
            why,
            "[invalid bearer token, service account token has been invalidated]"
        );
    }
}

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "a table of refusals")]
async fn requests_for_tokens_are_refused_as_the_real_server_refuses_them() {
    let world = World::new().await;
    world
        .make(ACCOUNTS, json!({"metadata": {"name": "other"}}))
        .await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": container()}});
    world.make(PODS, pod).await;
    let bound = |kind: &str, name: &str, uid: &str| json!({"spec": {"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name, "uid": uid}}});
    for (account, body, code, message) in [
        ("nope", json!({}), 404, "serviceaccounts \"nope\" not found"),
        (
            "default",
            json!({"metadata": {"name": "other"}}),
            422,
            "TokenRequest.authentication.k8s.io \"default\" is invalid: metadata.name: Invalid value: \"other\": must match the service account name if specified",
        ),
        (
            "default",
            json!({"metadata": {"namespace": "z"}}),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            "default",
            bound("Pod", "none", ""),
            404,
            "pods \"none\" not found",
        ),
        (
            "default",
            bound("Secret", "none", ""),
            404,
            "secrets \"none\" not found",
        ),
        (
            "default",
            bound("Node", "none", ""),
            404,
            "nodes \"none\" not found",
        ),
        (
            "default",
            bound("ConfigMap", "none", ""),
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        (
            "default",
            bound("Pod", "p", "xyz"),
            409,
            "Operation cannot be fulfilled on Pod \"p\": the UID in the bound object reference (xyz) does not match the UID in record. The object might have been deleted and then recreated",
        ),
        (
            "other",
            bound("Pod", "p", ""),
            400,
            "cannot bind token for serviceaccount \"other\" to pod running with different serviceaccount name.",
        ),
    ] {
        let path = format!("{ACCOUNTS}/{account}/token");
        let (answer, told) = world.admin("POST", &path, body.clone()).await;
        assert_eq!(
            (answer, told["message"].as_str().unwrap()),
            (code, message),
            "{body}"
        );
    }
    let (code, _) = world
        .admin("GET", &format!("{ACCOUNTS}/default/token"), Value::Null)
        .await;
    assert_eq!(code, 405);
    let elsewhere = "/api/v1/namespaces/none/serviceaccounts/default/token";
    let (_, told) = world.admin("POST", elsewhere, json!({})).await;
    assert_eq!(told["message"], "namespaces \"none\" not found");
    let (_, told) = world.admin("POST", REVIEWS, json!({"spec": {}})).await;
    assert_eq!(
        told["message"],
        "token is required for TokenReview in authentication"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_comes_back_with_its_token() {
    let world = World::new().await;
    let (_, account) = world
        .admin("GET", &format!("{ACCOUNTS}/default"), Value::Null)
        .await;
    let path = format!("{ACCOUNTS}/default/token?fieldManager=me");
    let made = world.make(&path, json!({"spec": {"bogus": 1}})).await;
    assert_eq!(made["apiVersion"], "authentication.k8s.io/v1");
    assert_eq!(made["kind"], "TokenRequest");
    let metadata = &made["metadata"];
    assert_eq!(
        (&metadata["name"], &metadata["namespace"]),
        (&json!("default"), &json!("default"))
    );
    assert_eq!(metadata["uid"], account["metadata"]["uid"]);
    let managed = &metadata["managedFields"][0];
    assert_eq!(
        (&managed["manager"], &managed["subresource"]),
        (&json!("me"), &json!("token"))
    );
    assert_eq!(
        managed["fieldsV1"],
        json!({"f:spec": {"f:expirationSeconds": {}}})
    );
    let spec = json!({"audiences": ["https://kubernetes.default.svc"], "expirationSeconds": 3600, "boundObjectRef": null});
    assert_eq!(made["spec"], spec);
    assert_eq!(
        made["status"]["expirationTimestamp"],
        "2026-01-01T01:00:00Z"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_runs_as_an_account_that_is_there() {
    let world = World::new().await;
    let pod = |metadata: Value, account: &str| json!({"metadata": metadata, "spec": {"serviceAccountName": account, "containers": container()}});
    for (metadata, name) in [
        (json!({"name": "q"}), "q"),
        (json!({"generateName": "q-"}), "q-"),
    ] {
        let (code, told) = world.admin("POST", PODS, pod(metadata, "foo")).await;
        assert_eq!(code, 403);
        let why = "error looking up service account default/foo: serviceaccount \"foo\" not found";
        assert_eq!(
            told["message"],
            format!("pods \"{name}\" is forbidden: {why}")
        );
    }
    // The namespace is new: its account exists already.
    world
        .make("/api/v1/namespaces", json!({"metadata": {"name": "fresh"}}))
        .await;
    let made = world
        .make(
            "/api/v1/namespaces/fresh/pods",
            pod(json!({"name": "p"}), ""),
        )
        .await;
    assert_eq!(made["spec"]["serviceAccount"], "default");
    let volume = &made["spec"]["volumes"][0];
    assert_eq!(volume["projected"]["defaultMode"], 420);
    let mount = &made["spec"]["containers"][0]["volumeMounts"][0];
    assert_eq!(mount["name"], volume["name"]);
    // What the server added has no owner.
    let managed = &made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"];
    assert!(managed.get("f:volumes").is_none(), "{managed}");
}
