//! What a client must not be able to do, in process: every refusal is a proper Status, and the
//! server answers the next request as if nothing had been.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use neap_pocket::{Options, Pocket, environment::Environment, wire};
use serde_json::{Value, json};
use tower::ServiceExt;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

struct Server(Pocket);

impl Server {
    async fn open() -> Self {
        let options = Options::new(Environment::rehearsal(1));
        let server = Self(Pocket::open(options).await.unwrap());
        let map = json!({"metadata": {"name": "x"}, "data": {"a": "1"}});
        let (status, _) = server.send(Method::POST, MAPS, JSON, map.to_string()).await;
        assert_eq!(status, 201);
        server
    }

    async fn raw(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Response<wire::Body> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .body(Full::new(body.into()))
            .unwrap();
        self.0.service().oneshot(request).await.unwrap()
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> (u16, Value) {
        let response = self.raw(method, path, content_type, body).await;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), 64 << 20);
        #[expect(clippy::disallowed_methods, reason = "the body is limited just above")]
        let bytes = body.collect().await.unwrap().to_bytes();
        let value = serde_json::from_slice(&bytes).unwrap_or_else(|_| {
            panic!("no JSON: {:?}", String::from_utf8_lossy(&bytes));
        });
        (status, value)
    }

    /// The answer is a Status with this code, and the server still works.
    async fn refuses(
        &self,
        code: u16,
        method: Method,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Value {
        let (status, answer) = self.send(method, path, content_type, body).await;
        let path: String = path.chars().take(120).collect();
        assert_eq!(status, code, "{path} {content_type}: {answer}");
        assert_eq!(answer["kind"], "Status", "{path}: {answer}");
        assert_eq!(answer["code"], code, "{path}: {answer}");
        let filled = |key: &str| answer[key].as_str().is_some_and(|text| !text.is_empty());
        assert!(filled("reason") && filled("message"), "{path}: {answer}");
        let message = answer["message"].as_str().unwrap();
        assert!(message.len() < 64 << 10, "{path}: {} bytes", message.len());
        self.works().await;
        answer
    }

    /// Another client sees what was there before.
    async fn works(&self) {
        let (status, map) = self.send(Method::GET, &format!("{MAPS}/x"), JSON, "").await;
        assert_eq!((status, &map["data"]), (200, &json!({"a": "1"})));
    }
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    open.repeat(depth) + "1" + &close.repeat(depth)
}

#[tokio::test(start_paused = true)]
async fn malformed_bodies_are_bad_requests() {
    let server = Server::open().await;
    let deep = format!("{{\"data\":{}}}", nested("{\"a\":", "}", 20_000));
    let wide = format!("{{\"data\":{}}}", nested("[", "]", 500_000));
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for letter in b'b'..=b'k' {
        let (this, previous) = (letter as char, (letter - 1) as char);
        let nine = vec![format!("*{previous}"); 9].join(",");
        bomb.extend([this.to_string(), format!(": &{this} [{nine}]\n")]);
    }
    let bodies: [(&str, Vec<u8>); 17] = [
        (JSON, b"{".to_vec()),
        (JSON, b"{\"metadata\":{\"name\":\"y\"}} trailing".to_vec()),
        (JSON, b"\xff\xfe\x00".to_vec()),
        (JSON, b"[]".to_vec()),
        (JSON, b"null".to_vec()),
        (JSON, b"\"text\"".to_vec()),
        (JSON, b"{\"metadata\": 7}".to_vec()),
        (
            JSON,
            b"{\"metadata\":{\"name\":\"y\"},\"data\":{\"a\":1e999}}".to_vec(),
        ),
        (JSON, deep.into_bytes()),
        (JSON, wide.into_bytes()),
        (YAML, b"a: [".to_vec()),
        (YAML, b"\t- :\n  - {".to_vec()),
        (YAML, bomb.into_bytes()),
        (YAML, nested("[", "]", 100_000).into_bytes()),
        (PROTOBUF, b"k8s\0".to_vec()),
        (PROTOBUF, b"not protobuf at all".to_vec()),
        (PROTOBUF, [b"k8s\0".as_slice(), &[0xff; 64]].concat()),
    ];
    for (content_type, body) in bodies {
        let (status, answer) = server
            .send(Method::POST, MAPS, content_type, body.clone())
            .await;
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        assert!(
            matches!(status, 400 | 422),
            "{content_type} {shown:?}: {status} {answer}"
        );
        assert_eq!(answer["kind"], "Status", "{shown:?}");
        server.works().await;
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_too_large_or_of_no_known_type_are_refused() {
    let server = Server::open().await;
    let padding = "x".repeat((3 << 20) + 1);
    let large = json!({"metadata": {"name": "y"}, "data": {"a": padding}}).to_string();
    let refused = server.refuses(413, Method::POST, MAPS, JSON, large.clone());
    assert_eq!(refused.await["reason"], "RequestEntityTooLarge");
    let map = format!("{MAPS}/x");
    server
        .refuses(413, Method::PUT, &map, JSON, large.clone())
        .await;
    server.refuses(413, Method::PATCH, &map, MERGE, large).await;
    for unknown in [
        "text/plain",
        "application/xml",
        "application/cbor",
        "a/b/c",
        "\u{7f}",
    ] {
        if http::HeaderValue::from_str(unknown).is_ok() {
            server.refuses(415, Method::POST, MAPS, unknown, "{}").await;
            server
                .refuses(415, Method::PATCH, &map, unknown, "{}")
                .await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn absurd_selectors_and_options_are_bad_requests() {
    let server = Server::open().await;
    let long = format!("labelSelector={}", "a%3Db,".repeat(9_000) + "%21");
    let parentheses = format!("labelSelector=a+in+{}", "(".repeat(10_000));
    let value = format!("labelSelector=a%3D{}", "v".repeat(50_000));
    for query in [
        "labelSelector=%3D%3D%3D",
        "labelSelector=a+in",
        "labelSelector=a+in+(",
        "labelSelector=%00",
        "labelSelector=a%3D%FF%FE",
        "fieldSelector=spec.nodeName%3Dx",
        "fieldSelector=metadata.name%3E1",
        "fieldSelector=%3D",
        "limit=-9999999999999999999",
        "limit=many",
        "continue=%FF%00garbage",
        "resourceVersion=minus",
        "resourceVersion=-1",
        "resourceVersionMatch=Exact",
        "watch=1&timeoutSeconds=forever",
        "watch=1&sendInitialEvents=true",
        &long,
        &parentheses,
        &value,
    ] {
        let path = format!("{MAPS}?{query}");
        let (status, answer) = server.send(Method::GET, &path, JSON, "").await;
        let query: String = query.chars().take(60).collect();
        assert!(matches!(status, 400 | 422), "{query}: {status} {answer}");
        assert_eq!(answer["kind"], "Status", "{query}");
        server.works().await;
    }
}

#[tokio::test(start_paused = true)]
async fn hostile_patches_are_refused() {
    let server = Server::open().await;
    let map = format!("{MAPS}/x");
    let test = json!({"op": "test", "path": "/data/a", "value": "1"});
    let many = Value::Array(vec![test; 10_001]).to_string();
    server
        .refuses(413, Method::PATCH, &map, JSON_PATCH, many)
        .await;
    let deep = nested("{\"data\":", "}", 50_000);
    let directives = json!({"data": {"$patch": "explode"}}).to_string();
    let doubling: Vec<Value> = (0..64)
        .map(|_| json!({"op": "copy", "from": "/data", "path": "/data/again"}))
        .collect();
    for (content_type, body) in [
        (MERGE, deep.clone()),
        (STRATEGIC, deep.clone()),
        (JSON_PATCH, nested("[", "]", 50_000)),
        (APPLY, nested("[", "]", 50_000)),
        (MERGE, "[1]".to_owned()),
        (MERGE, "\"x\"".to_owned()),
        (STRATEGIC, "[]".to_owned()),
        (STRATEGIC, directives),
        (JSON_PATCH, "{}".to_owned()),
        (JSON_PATCH, "[{\"op\":\"fly\"}]".to_owned()),
        (
            JSON_PATCH,
            "[{\"op\":\"remove\",\"path\":\"/data/none\"}]".to_owned(),
        ),
        (
            JSON_PATCH,
            "[{\"op\":\"replace\",\"path\":\"\",\"value\":1}]".to_owned(),
        ),
        (JSON_PATCH, Value::Array(doubling).to_string()),
        (APPLY, "a: [".to_owned()),
    ] {
        let path = if content_type == APPLY {
            format!("{map}?fieldManager=m")
        } else {
            map.clone()
        };
        let (status, answer) = server
            .send(Method::PATCH, &path, content_type, body.clone())
            .await;
        let shown: String = body.chars().take(60).collect();
        assert!(
            matches!(status, 400 | 413 | 422),
            "{content_type} {shown}: {status} {answer}"
        );
        assert_eq!(answer["kind"], "Status", "{shown}");
        server.works().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_cannot_grow_an_object_without_end() {
    let server = Server::open().await;
    let big = json!([{"op": "add", "path": "/data/big", "value": "x".repeat(1 << 20)}]);
    let mut operations = big.as_array().unwrap().clone();
    for copy in 0..4000 {
        let path = format!("/data/copy{copy}");
        operations.push(json!({"op": "copy", "from": "/data/big", "path": path}));
    }
    let map = format!("{MAPS}/x");
    let body = Value::Array(operations).to_string();
    let (status, answer) = server.send(Method::PATCH, &map, JSON_PATCH, body).await;
    assert!(matches!(status, 413 | 422), "{status} {answer}");
    server.works().await;
}

fn definition(rule: &str, schema: &Value) -> String {
    let mut root = json!({"type": "object", "properties": {"spec": schema}});
    root["x-kubernetes-validations"] = json!([{"rule": rule}]);
    json!({
        "metadata": {"name": "things.hostile.dev"},
        "spec": {
            "group": "hostile.dev", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": root},
            }],
        },
    })
    .to_string()
}

#[tokio::test(start_paused = true)]
async fn broken_rules_are_refused_with_the_definition() {
    let server = Server::open().await;
    let plain = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let chain = format!("self.spec.n == {}", vec!["1"; 5000].join(" + "));
    let parentheses = nested("(", ")", 5000) + " == 1";
    for (rule, schema) in [
        ("self.spec.n ==", &plain),
        ("self.spec.missing == 1", &plain),
        ("self.spec.n", &plain),
        ("self.spec.n == 'text'", &plain),
        ("unknown(self)", &plain),
        ("'a'.matches('(((((')", &plain),
        ("", &plain),
        (&chain, &plain),
        (&parentheses, &plain),
    ] {
        let body = definition(rule, schema);
        server
            .refuses(422, Method::POST, DEFINITIONS, JSON, body)
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_expensive_rule_is_given_up_and_the_object_refused() {
    let server = Server::open().await;
    let lists = json!({"type": "object", "properties": {
        "a": {"type": "array", "maxItems": 1000, "items": {"type": "string", "maxLength": 10}},
    }});
    let rule = "self.spec.a.all(x, self.spec.a.all(y, self.spec.a.all(z, x + y + z != '')))";
    let body = definition(rule, &lists);
    let (status, answer) = server.send(Method::POST, DEFINITIONS, JSON, body).await;
    // Refused with the definition, or at the latest when it is used.
    if status == 201 {
        let thing = json!({
            "apiVersion": "hostile.dev/v1", "kind": "Thing", "metadata": {"name": "t"},
            "spec": {"a": vec!["x"; 1000]},
        });
        let path = "/apis/hostile.dev/v1/namespaces/default/things";
        let body = thing.to_string();
        let refused = server.refuses(422, Method::POST, path, JSON, body).await;
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.contains("cost") || message.contains("budget"),
            "{message}"
        );
    } else {
        assert_eq!(status, 422, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn paths_that_lead_nowhere_are_refused() {
    let server = Server::open().await;
    let long = format!("{MAPS}/{}", "n".repeat(5000));
    for (code, method, path) in [
        (404, Method::GET, format!("{MAPS}/none")),
        (404, Method::GET, format!("{MAPS}/..%2f..%2fsecrets")),
        (404, Method::GET, format!("{MAPS}/%00")),
        (404, Method::GET, long),
        (405, Method::POST, format!("{MAPS}/x")),
        (405, Method::TRACE, MAPS.to_owned()),
        (405, Method::PUT, MAPS.to_owned()),
    ] {
        server.refuses(code, method, &path, JSON, "{}").await;
    }
}
