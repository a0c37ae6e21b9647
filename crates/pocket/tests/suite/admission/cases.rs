//! A server with webhooks, and requests as clients send them.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::webhooks::{Reaction, TestWebhooks, WebhookDialer};

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// One server and its webhooks.
pub(crate) struct Case {
    pub(crate) pocket: Pocket,
    pub(crate) webhooks: Arc<TestWebhooks>,
}

/// A response.
pub(crate) struct HttpReply {
    pub(crate) code: u16,
    pub(crate) body: Value,
    pub(crate) warnings: Vec<String>,
}

impl HttpReply {
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

impl Case {
    pub(crate) async fn new(
        react: impl Fn(&str, &Value) -> Reaction + Send + Sync + 'static,
    ) -> Self {
        let webhooks = TestWebhooks::new(react);
        let options = Options {
            dial: Some(Arc::new(WebhookDialer(webhooks.clone()))),
            ..Options::new(Environment::simulated(1))
        };
        let pocket = Pocket::open(options).await.unwrap();
        Self { pocket, webhooks }
    }

    /// A webhook for all writes of config maps, with `changes` merged into it.
    pub(crate) fn hook(&self, path: &str, changes: &Value) -> Value {
        let mut hook = json!({
            "name": "one.tide.example",
            "clientConfig": {"url": format!("https://hooks.example/{path}"), "caBundle": self.webhooks.ca_bundle()},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 2,
        });
        for (key, value) in changes.as_object().unwrap() {
            hook[key] = value.clone();
        }
        hook
    }

    pub(crate) async fn install(&self, kind: &str, name: &str, hooks: &[Value]) {
        let mut hooks = hooks.to_vec();
        for (index, hook) in hooks.iter_mut().enumerate().skip(1) {
            hook["name"] = json!(format!("h{index}.tide.example"));
        }
        let body = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": format!("{kind}WebhookConfiguration"),
            "metadata": {"name": name}, "webhooks": hooks,
        });
        let plural = format!("{}webhookconfigurations", kind.to_lowercase());
        let told = self.send("POST", &format!("{GROUP}/{plural}"), &body).await;
        assert_eq!(told.code, 201, "{}", told.body);
        assert_eq!(told.warnings, [""; 0]);
    }

    pub(crate) async fn validating(&self, path: &str, changes: &Value) {
        let hook = self.hook(path, changes);
        self.install("Validating", "v", &[hook]).await;
    }

    pub(crate) async fn mutating(&self, path: &str, changes: &Value) {
        let hook = self.hook(path, changes);
        self.install("Mutating", "m", &[hook]).await;
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &Value) -> HttpReply {
        let kind = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let bytes = match body {
            Value::Null => Bytes::new(),
            body => body.to_string().into(),
        };
        let request = Request::builder()
            .method(method.parse::<Method>().unwrap())
            .uri(path)
            .header("content-type", kind)
            .header("user-agent", "test/1")
            .body(Full::new(bytes))
            .unwrap();
        let answer = self.pocket.service().oneshot(request).await.unwrap();
        let code = answer.status().as_u16();
        let warnings = answer.headers().get_all("warning").iter();
        let warnings = warnings.map(|w| w.to_str().unwrap().to_owned()).collect();
        #[expect(clippy::disallowed_methods, reason = "both ends are this test's")]
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        HttpReply {
            code,
            body,
            warnings,
        }
    }

    /// Creates a config map.
    pub(crate) async fn create(&self, name: &str) -> HttpReply {
        self.send("POST", MAPS, &map(name)).await
    }
}

pub(crate) fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}
