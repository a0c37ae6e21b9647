//! A client with random requests.

use std::collections::HashMap;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use neap_oracles::{ObservedBody, ObservedService};
use neap_pocket::wire::{Body, Service};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{draw::Draw, kinds::Kind};

/// Names of each kind in each namespace.
const NAMES: u64 = 40;
const HOT_NAMES: u64 = 3;
pub(crate) const NAMESPACES: [&str; 2] = ["one", "two"];
pub(crate) const COLORS: [&str; 3] = ["red", "green", "blue"];

pub(crate) struct Client {
    pub(crate) service: ObservedService<Service>,
    pub(crate) draw: Draw,
    /// The last seen state of each object.
    seen: HashMap<String, Value>,
    newest: u64,
    pub(crate) answers: HashMap<(&'static str, u16), usize>,
}

pub(crate) async fn open(
    service: &ObservedService<Service>,
    uri: &str,
) -> http::Response<ObservedBody<Body>> {
    let request = Request::get(uri).body(Full::<Bytes>::default()).unwrap();
    service.clone().oneshot(request).await.unwrap()
}

impl Client {
    pub(crate) fn new(service: ObservedService<Service>, seed: u64) -> Self {
        Self {
            service,
            draw: Draw::new(seed),
            seen: HashMap::new(),
            newest: 0,
            answers: HashMap::new(),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "answers of a test are small")]
    pub(crate) async fn send(
        &mut self,
        (method, what): (Method, &'static str),
        uri: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let kind = match what {
            "patch" => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header(CONTENT_TYPE, kind)
            .body(Full::<Bytes>::from(body))
            .unwrap();
        let answer = self.service.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        *self.answers.entry((what, status.as_u16())).or_default() += 1;
        let value: Value = serde_json::from_slice(&body).unwrap();
        if status.is_success()
            && let Some(revision) = value["metadata"]["resourceVersion"].as_str()
        {
            self.newest = self.newest.max(revision.parse().unwrap());
        }
        (status, value)
    }

    /// Makes one request.
    pub(crate) async fn step(&mut self) {
        let kind = self.draw.one_of(&Kind::ALL);
        let namespace = self.draw.one_of(&NAMESPACES);
        // Half of the time all clients use the same few names.
        let names = self.draw.one_of(&[HOT_NAMES, NAMES]);
        let name = format!("x{}", self.draw.below(names));
        let uri = format!("{}/{name}", kind.collection(namespace));
        match self.draw.below(100) {
            0..20 => self.get(&uri).await,
            20..40 => self.create(kind, namespace, &name).await,
            40..62 => self.put(&uri).await,
            62..80 => self.patch(kind, &uri).await,
            80..95 => self.delete(&uri).await,
            _ => self.list(kind, namespace).await,
        }
    }

    async fn get(&mut self, uri: &str) {
        let (status, object) = self.send((Method::GET, "get"), uri, None).await;
        self.remember(uri, status, object);
    }

    fn remember(&mut self, uri: &str, status: StatusCode, object: Value) {
        if status.is_success() && object["kind"] != "Status" {
            self.seen.insert(uri.into(), object);
        }
    }

    async fn create(&mut self, kind: Kind, namespace: &str, name: &str) {
        let color = self.draw.one_of(&COLORS);
        let mut object = kind.object(name, color, self.draw.below(1000));
        if self.draw.once_in(10) {
            object["metadata"]["finalizers"] = json!(["example.com/hold"]);
        }
        let uri = kind.collection(namespace);
        let (status, object) = self
            .send((Method::POST, "create"), &uri, Some(object))
            .await;
        self.remember(&format!("{uri}/{name}"), status, object);
    }

    /// With the last seen revision, which may be old.
    async fn put(&mut self, uri: &str) {
        let Some(mut object) = self.seen.get(uri).cloned() else {
            return self.get(uri).await;
        };
        object["metadata"]["labels"]["color"] = json!(self.draw.one_of(&COLORS));
        if self.draw.once_in(4) {
            object["metadata"]["finalizers"] = json!([]);
        }
        if self.draw.once_in(8)
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("uid");
        }
        let (status, object) = self.send((Method::PUT, "put"), uri, Some(object)).await;
        if status == StatusCode::CONFLICT {
            return self.get(uri).await;
        }
        self.remember(uri, status, object);
    }

    async fn patch(&mut self, kind: Kind, uri: &str) {
        let mut patch = kind.patch(self.draw.below(1000));
        if self.draw.once_in(3) {
            patch["metadata"] = json!({"labels": {"color": self.draw.one_of(&COLORS)}});
        }
        if self.draw.once_in(4) {
            patch["metadata"]["finalizers"] = Value::Null;
        }
        if self.draw.once_in(3)
            && let Some(seen) = self.seen.get(uri)
        {
            patch["metadata"]["resourceVersion"] = seen["metadata"]["resourceVersion"].clone();
        }
        let (status, object) = self.send((Method::PATCH, "patch"), uri, Some(patch)).await;
        self.remember(uri, status, object);
    }

    async fn delete(&mut self, uri: &str) {
        let seen = self.seen.get(uri).filter(|_| self.draw.once_in(2));
        let options = seen.map(|seen| {
            let revision = &seen["metadata"]["resourceVersion"];
            json!({"preconditions": {"resourceVersion": revision}})
        });
        self.send((Method::DELETE, "delete"), uri, options).await;
    }

    /// Pages of one snapshot, sometimes of the past, sometimes abandoned in the middle.
    async fn list(&mut self, kind: Kind, namespace: &str) {
        let base = match self.draw.below(3) {
            0 => kind.collection(""),
            _ => kind.collection(namespace),
        };
        let mut query = format!("?limit={}", self.draw.one_of(&[1, 2, 500]));
        if self.draw.once_in(3) {
            let color = self.draw.one_of(&COLORS);
            query = format!("{query}&labelSelector=color%3D{color}");
        }
        let mut first = query.clone();
        if self.draw.once_in(4) && self.newest > 0 {
            let past = self.newest.saturating_sub(self.draw.below(30)).max(1);
            first = format!("{first}&resourceVersion={past}");
            first += self.draw.one_of(&[
                "&resourceVersionMatch=Exact",
                "&resourceVersionMatch=NotOlderThan",
            ]);
        }
        let mut uri = format!("{base}{first}");
        for _ in 0..=self.draw.below(12) {
            let (_, list) = self.send((Method::GET, "list"), &uri, None).await;
            let Some(token) = list["metadata"]["continue"].as_str() else {
                return;
            };
            uri = format!("{base}{query}&continue={token}");
        }
    }
}
