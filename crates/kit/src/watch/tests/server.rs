//! Caches against a server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Request, Response, header::ACCEPT};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams},
    client::Body,
};
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tower::util::MapRequest;

use super::*;
use crate::{
    clock::Clock,
    server::{Server, through},
};

struct Bench {
    server: Server,
    watches: Watches,
    maps: Api<ConfigMap>,
}

impl Bench {
    #[expect(clippy::disallowed_methods, reason = "a service of its own, in a test")]
    async fn new() -> Self {
        let server = Server::open().await;
        let (watches, service) = Watches::new(Clock::system());
        tokio::spawn(service.run(CancellationToken::new()));
        let maps = Api::default_namespaced(server.client.clone());
        Self {
            server,
            watches,
            maps,
        }
    }

    /// A cache whose first watch hears nothing and is soon over, and whose second is told that the
    /// server has forgotten what happened since.
    fn deaf_cache(&self) -> Cache<ConfigMap> {
        let (client, watches) = (self.server.client.clone(), AtomicUsize::new(0));
        let deaf = tower::service_fn(move |mut request: Request<Body>| {
            let (client, uri) = (client.clone(), request.uri().to_string());
            let is_watch = uri.contains("watch=true");
            let number = is_watch.then(|| watches.fetch_add(1, Ordering::Relaxed));
            async move {
                match number {
                    Some(0) => *request.uri_mut() = deafened(&uri).parse().unwrap(),
                    Some(1) => return Ok(forgotten()),
                    _ => {}
                }
                client.send(request).await
            }
        });
        let client = Client::new(deaf, self.server.namespace());
        let api = Api::default_namespaced(client);
        self.watches.of(api, Selection::default()).unwrap()
    }

    fn key(&self, name: &str) -> Key {
        Key::new(self.server.namespace(), name)
    }

    fn cache(&self) -> Cache<ConfigMap> {
        let api = Api::default_namespaced(self.server.client.clone());
        self.watches.of(api, Selection::default()).unwrap()
    }

    async fn create(&self, name: &str) -> String {
        let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        let made = self
            .maps
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
        made.metadata.resource_version.unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_cache_shows_what_was_there_and_what_is_written_since() {
    let bench = Bench::new().await;
    bench.create("before").await;
    let cache = bench.cache();
    cache.synced().await;
    assert!(cache.get(&bench.key("before")).is_some());
    let version = bench.create("after").await;
    cache.shows(&version, Duration::from_secs(5)).await.unwrap();
    assert!(cache.get(&bench.key("after")).is_some());
}

#[tokio::test(start_paused = true)]
async fn everybody_gets_the_same_cache_and_hears_everything_once() {
    let bench = Bench::new().await;
    let (one, two) = (bench.cache(), bench.cache());
    bench.create("a").await;
    one.synced().await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    for (who, cache) in [("one", &one), ("two", &two)] {
        let heard = heard.clone();
        cache.follow(move |change| {
            let gone = matches!(change, Change::Deleted(_));
            let key = change.key();
            if key.name() == "a" {
                heard.lock().push((who, gone));
            }
        });
    }
    bench
        .maps
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    let version = bench.create("b").await;
    two.shows(&version, Duration::from_secs(5)).await.unwrap();
    let heard = heard.lock();
    assert_eq!(
        *heard,
        [("one", false), ("two", false), ("one", true), ("two", true)]
    );
}

/// A watch for a second of what nobody has.
fn deafened(uri: &str) -> String {
    let (path, query) = uri.split_once('?').unwrap();
    let parts = query.split('&').map(|part| {
        let is_limit = part.starts_with("timeoutSeconds=");
        if is_limit { "timeoutSeconds=1" } else { part }
    });
    let parts: Vec<_> = parts.collect();
    format!(
        "{path}?{}&fieldSelector=metadata.name%3Dnobody",
        parts.join("&")
    )
}

/// What a server says that no longer knows what happened since.
fn forgotten() -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version", "reason": "Expired", "code": 410,
    });
    let event = json!({"type": "ERROR", "object": status});
    Response::new(Body::from(format!("{event}\n").into_bytes()))
}

#[tokio::test(start_paused = true)]
async fn what_happens_while_a_watch_is_deaf_is_told_by_the_listing_after_it() {
    let bench = Bench::new().await;
    bench.create("a").await;
    bench.create("c").await;
    let cache = bench.deaf_cache();
    cache.synced().await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let noted = heard.clone();
    cache.follow(move |change| {
        let gone = matches!(change, Change::Deleted(_));
        noted.lock().push((change.key().name().to_owned(), gone));
    });
    let delete = DeleteParams::default();
    bench.maps.delete("a", &delete).await.unwrap();
    bench.maps.delete("c", &delete).await.unwrap();
    bench.create("c").await;
    let version = bench.create("b").await;
    let limit = Duration::from_secs(30);
    cache.shows(&version, limit).await.unwrap();
    let names = |gone| -> Vec<String> {
        let heard = heard.lock();
        let those = heard.iter().filter(|(_, was)| *was == gone);
        those.map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(false), ["a", "c", "b", "c"]);
    assert_eq!(names(true), ["c", "a"], "by the listing, and at its end");
    assert!(cache.get(&bench.key("a")).is_none());
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_can_be_watched() {
    let bench = Bench::new().await;
    let object = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v"}});
    let object = serde_json::from_value(object).unwrap();
    bench
        .maps
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = asked.clone();
    let noting = MapRequest::new(
        through(bench.server.client.clone()),
        move |request: Request<Body>| {
            noted.lock().push(request.headers()[ACCEPT].clone());
            request
        },
    );
    let client = Client::new(noting, bench.server.namespace());
    let api: Api<Lenient<Metadata<ConfigMap>>> = Api::default_namespaced(client);
    let cache = bench.watches.of(api, Selection::default()).unwrap();
    let namespace = bench.server.namespace();
    let address = format!("/api/v1/namespaces/{namespace}/configmaps");
    assert_eq!(bench.watches.unsynced(), [address]);
    cache.synced().await;
    assert_eq!(bench.watches.unsynced(), [""; 0]);
    let seen = cache.get(&bench.key("a")).unwrap();
    assert_eq!(seen.metadata.labels.as_ref().unwrap()["x"], "y");
    assert_eq!(seen.metadata.managed_fields, None);
    for accepted in asked.lock().iter() {
        let accepted = accepted.to_str().unwrap();
        assert!(accepted.contains("as=PartialObjectMetadata"), "{accepted}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_never_comes_back_is_late() {
    let bench = Bench::new().await;
    let cache = bench.cache();
    cache.synced().await;
    let limit = Duration::from_secs(3);
    let late = cache.shows("999999", limit).await.unwrap_err();
    assert_eq!(
        late,
        Late {
            version: "999999".into(),
            waited: limit
        }
    );
}
