//! A client over HTTP without a socket, as one user or another.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full, Limited};
use neap_pocket::{Options, Pocket, Storage, environment::Environment, store::Store, wire::Body};
use serde_json::{Value, json};
use tower::ServiceExt;

/// A server, and the user that requests are made as.
pub(crate) struct TestClient {
    pub(crate) pocket: Pocket,
    headers: Vec<(String, String)>,
}

impl TestClient {
    /// The user who may do everything, at a new server.
    pub(crate) async fn new() -> Self {
        let options = Options::new(Environment::simulated(1));
        Self {
            pocket: Pocket::open(options).await.unwrap(),
            headers: Vec::new(),
        }
    }

    /// Another user of the same server.
    pub(crate) fn user(&self, name: &str, groups: &[&str]) -> Self {
        let mut headers = vec![("impersonate-user".into(), name.into())];
        let groups = groups
            .iter()
            .map(|group| ("impersonate-group".into(), (*group).into()));
        headers.extend(groups);
        Self {
            pocket: self.pocket.clone(),
            headers,
        }
    }

    /// The user who may do everything, at a server with an existing store.
    pub(crate) async fn over(store: Store) -> Self {
        let mut options = Options::new(Environment::simulated(2));
        options.storage = Storage::Store(store);
        Self {
            pocket: Pocket::open(options).await.unwrap(),
            headers: Vec::new(),
        }
    }

    /// Status code and body of the response.
    pub(crate) async fn request(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if method == "PATCH" {
            request = request.header("content-type", "application/merge-patch+json");
        }
        let body = Full::<Bytes>::from(body.to_string());
        let service = self.pocket.service();
        let response = service.oneshot(request.body(body).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = whole(body).await;
        let value =
            serde_json::from_slice(&bytes).unwrap_or(json!(String::from_utf8_lossy(&bytes)));
        (parts.status.as_u16(), value)
    }

    /// The status code alone.
    pub(crate) async fn get(&self, path: &str) -> u16 {
        self.request("GET", path, Value::Null).await.0
    }

    /// Creates an object, which must be accepted.
    pub(crate) async fn make(&self, path: &str, object: Value) -> Value {
        let (code, made) = self.request("POST", path, object).await;
        assert_eq!(code, 201, "{path}: {made}");
        made
    }

    /// The message of a refusal, with its code.
    pub(crate) async fn refused(&self, method: &str, path: &str, body: Value) -> (u16, String) {
        let (code, status) = self.request(method, path, body).await;
        assert_eq!(status["kind"], "Status", "{method} {path}: {status}");
        (
            code,
            status["message"].as_str().unwrap_or_default().to_owned(),
        )
    }
}

pub(crate) const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

impl TestClient {
    /// A cluster role with these rules.
    pub(crate) async fn cluster_role(&self, name: &str, rules: Value) {
        let role = json!({"metadata": {"name": name}, "rules": rules});
        self.make(&format!("{RBAC}/clusterroles"), role).await;
    }

    /// Binds a cluster role to a subject, cluster-wide.
    pub(crate) async fn bind(&self, name: &str, role: &str, subject: Value) {
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        });
        self.make(&format!("{RBAC}/clusterrolebindings"), binding)
            .await;
    }
}

/// A user as a subject of bindings.
pub(crate) fn user(name: &str) -> Value {
    json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name})
}

/// Reads a whole body.
#[expect(clippy::disallowed_methods, reason = "the body is limited first")]
pub(crate) async fn whole(body: Body) -> Bytes {
    let body = Limited::new(body, 8 << 20);
    body.collect().await.unwrap().to_bytes()
}
