//! Caches with a server.

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
    Api, Client, CustomResourceExt,
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
    operation::Operation,
    server::{Server, transport_of},
};

pub(super) struct WatchBench {
    pub(super) server: Server,
    pub(super) watches: Watches,
    pub(super) maps: Api<ConfigMap>,
}

impl WatchBench {
    #[expect(
        clippy::disallowed_methods,
        reason = "a component of its own, in a test"
    )]
    pub(super) async fn new() -> Self {
        let server = Server::open().await;
        let (watches, runner) = Watches::new(Clock::system());
        tokio::spawn(runner.run(CancellationToken::new()));
        let maps = Api::default_namespaced(server.client.clone());
        Self {
            server,
            watches,
            maps,
        }
    }

    /// A cache whose first watch receives nothing and soon ends, and whose second receives the error
    /// that its version has expired.
    fn interrupted_cache(&self) -> Cache<ConfigMap> {
        let (client, watches) = (self.server.client.clone(), AtomicUsize::new(0));
        let interrupted = tower::service_fn(move |mut request: Request<Body>| {
            let (client, uri) = (client.clone(), request.uri().to_string());
            let is_watch = uri.contains("watch=true");
            let number = is_watch.then(|| watches.fetch_add(1, Ordering::Relaxed));
            async move {
                match number {
                    Some(0) => *request.uri_mut() = without_events(&uri).parse().unwrap(),
                    Some(1) => return Ok(expired()),
                    _ => {}
                }
                client.send(request).await
            }
        });
        let client = Client::new(interrupted, self.server.namespace());
        let api = Api::default_namespaced(client);
        self.watches.cache(api, Selection::default()).unwrap()
    }

    pub(super) fn key(&self, name: &str) -> Key {
        Key::new(self.server.namespace(), name)
    }

    fn cache(&self) -> Cache<ConfigMap> {
        let api = Api::default_namespaced(self.server.client.clone());
        self.watches.cache(api, Selection::default()).unwrap()
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
async fn a_cache_shows_existing_objects_and_later_writes() {
    let bench = WatchBench::new().await;
    bench.create("before").await;
    let cache = bench.cache();
    cache.synced().await;
    assert!(cache.get(&bench.key("before")).is_some());
    let version = bench.create("after").await;
    cache
        .wait_for_version(&version, Duration::from_secs(5))
        .await
        .unwrap();
    assert!(cache.get(&bench.key("after")).is_some());
}

#[tokio::test(start_paused = true)]
async fn equal_requests_share_a_cache_and_each_subscriber_receives_every_change_once() {
    let bench = WatchBench::new().await;
    let (one, two) = (bench.cache(), bench.cache());
    bench.create("a").await;
    one.synced().await;
    let received = Arc::new(Mutex::new(Vec::new()));
    for (who, cache) in [("one", &one), ("two", &two)] {
        let received = received.clone();
        cache.subscribe(move |change| {
            let gone = matches!(change, Change::Deleted(_));
            let key = change.key();
            if key.name() == "a" {
                received.lock().push((who, gone));
            }
        });
    }
    bench
        .maps
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    let version = bench.create("b").await;
    two.wait_for_version(&version, Duration::from_secs(5))
        .await
        .unwrap();
    let received = received.lock();
    assert_eq!(
        *received,
        [("one", false), ("two", false), ("one", true), ("two", true)]
    );
}

/// Changes a watch so that it lasts a second and selects no object.
fn without_events(uri: &str) -> String {
    let (path, query) = uri.split_once('?').unwrap();
    let parts = query.split('&').map(|part| {
        let is_limit = part.starts_with("timeoutSeconds=");
        if is_limit { "timeoutSeconds=1" } else { part }
    });
    let parts: Vec<_> = parts.collect();
    format!(
        "{path}?{}&fieldSelector=metadata.name%3Dnone",
        parts.join("&")
    )
}

/// The response of a server to a watch from an expired version.
fn expired() -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version", "reason": "Expired", "code": 410,
    });
    let event = json!({"type": "ERROR", "object": status});
    Response::new(Body::from(format!("{event}\n").into_bytes()))
}

#[tokio::test(start_paused = true)]
async fn changes_during_an_interrupted_watch_are_reported_by_the_next_listing() {
    let bench = WatchBench::new().await;
    bench.create("a").await;
    bench.create("c").await;
    let cache = bench.interrupted_cache();
    cache.synced().await;
    let received = Arc::new(Mutex::new(Vec::new()));
    let collected = received.clone();
    cache.subscribe(move |change| {
        let gone = matches!(change, Change::Deleted(_));
        collected
            .lock()
            .push((change.key().name().to_owned(), gone));
    });
    let delete = DeleteParams::default();
    bench.maps.delete("a", &delete).await.unwrap();
    bench.maps.delete("c", &delete).await.unwrap();
    bench.create("c").await;
    let version = bench.create("b").await;
    let limit = Duration::from_secs(30);
    cache.wait_for_version(&version, limit).await.unwrap();
    let names = |gone| -> Vec<String> {
        let received = received.lock();
        let those = received.iter().filter(|(_, was)| *was == gone);
        those.map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(false), ["a", "c", "b", "c"]);
    assert_eq!(
        names(true),
        ["c", "a"],
        "found by the listing, and at its end"
    );
    assert!(cache.get(&bench.key("a")).is_none());
}

#[tokio::test(start_paused = true)]
async fn metadata_can_be_watched_without_the_objects() {
    let bench = WatchBench::new().await;
    let object = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v"}});
    let object = serde_json::from_value(object).unwrap();
    bench
        .maps
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    let accepted_types = Arc::new(Mutex::new(Vec::new()));
    let collected = accepted_types.clone();
    let recording = MapRequest::new(
        transport_of(bench.server.client.clone()),
        move |request: Request<Body>| {
            collected.lock().push(request.headers()[ACCEPT].clone());
            request
        },
    );
    let client = Client::new(recording, bench.server.namespace());
    let api: Api<Metadata<ConfigMap>> = Api::default_namespaced(client);
    let cache = bench.watches.cache(api, Selection::default()).unwrap();
    let namespace = bench.server.namespace();
    let address = format!("/api/v1/namespaces/{namespace}/configmaps");
    assert_eq!(bench.watches.unsynced(), [address]);
    cache.synced().await;
    assert_eq!(bench.watches.unsynced(), [""; 0]);
    let seen = cache.get(&bench.key("a")).unwrap();
    assert_eq!(seen.metadata.labels.as_ref().unwrap()["x"], "y");
    assert_eq!(seen.metadata.managed_fields, None);
    for accepted in accepted_types.lock().iter() {
        let accepted = accepted.to_str().unwrap();
        assert!(accepted.contains("as=PartialObjectMetadata"), "{accepted}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_never_shown_times_out() {
    let bench = WatchBench::new().await;
    let cache = bench.cache();
    cache.synced().await;
    let limit = Duration::from_secs(3);
    let late = cache.wait_for_version("999999", limit).await.unwrap_err();
    assert_eq!(
        late,
        WatchTimeout {
            version: "999999".into(),
            waited: limit
        }
    );
}

/// Drops the data of a ConfigMap.
const WITHOUT_DATA: Trim<ConfigMap> = Trim {
    name: "without-data",
    keep: |map| map.data = None,
};

#[tokio::test(start_paused = true)]
async fn a_trimmed_cache_keeps_what_its_trim_leaves_and_shares_with_equal_ones_only() {
    let bench = WatchBench::new().await;
    let object = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v"}});
    let object = serde_json::from_value(object).unwrap();
    let made = bench.maps.create(&PostParams::default(), &object).await;
    made.unwrap();
    let trimmed = || {
        let api = Api::default_namespaced(bench.server.client.clone());
        let selection = Selection::default();
        bench
            .watches
            .trimmed_cache(api, selection, WITHOUT_DATA)
            .unwrap()
    };
    let (whole, one, two) = (bench.cache(), trimmed(), trimmed());
    for cache in [&whole, &one, &two] {
        cache.synced().await;
    }
    let key = bench.key("a");
    let (full, cut) = (whole.get(&key).unwrap(), one.get(&key).unwrap());
    assert!(full.data.is_some() && cut.data.is_none());
    assert_eq!(cut.metadata.labels, full.metadata.labels);
    assert!(Arc::ptr_eq(&cut, &two.get(&key).unwrap()), "one cache");
    assert_eq!(bench.watches.states().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cache_ends_a_while_after_its_last_reader_and_not_before() {
    let bench = WatchBench::new().await;
    if bench.server.by_clock(1, 0) == 0 {
        // It takes minutes, which pass quickly under a paused clock only.
        return;
    }
    let clock = Clock::system();
    bench.create("a").await;
    let (read, also) = (bench.cache(), bench.cache());
    read.synced().await;
    drop(read);
    clock.sleep(Duration::from_mins(5)).await;
    assert_eq!(bench.watches.states().len(), 1, "it has another reader");
    drop(also);
    clock.sleep(Duration::from_secs(30)).await;
    let again = bench.cache();
    assert!(again.is_synced(), "it was asked for again in time");
    clock.sleep(Duration::from_mins(5)).await;
    assert_eq!(bench.watches.states().len(), 1);
    let needed = Arc::new(());
    let receiver = Arc::downgrade(&needed);
    again.subscribe_while(move || receiver.strong_count() > 0, |_| {});
    drop(again);
    clock.sleep(Duration::from_mins(5)).await;
    assert_eq!(bench.watches.states().len(), 1, "it has a subscriber");
    drop((needed, bench.cache()));
    clock.sleep(Duration::from_mins(5)).await;
    assert_eq!(bench.watches.states(), []);
    let new = bench.cache();
    new.synced().await;
    assert!(new.get(&bench.key("a")).is_some());
}

#[tokio::test(start_paused = true)]
async fn clusters_have_caches_of_their_own() {
    let (one, other) = (WatchBench::new().await, Server::open().await);
    if one.server.by_clock(1, 0) == 0 {
        // The other cluster has to be another server.
        return;
    }
    one.create("here").await;
    let away = one.watches.in_cluster("away");
    let api: Api<ConfigMap> = Api::default_namespaced(other.client.clone());
    let far = away.cache(api, Selection::default()).unwrap();
    let near = one.cache();
    assert!(
        one.watches
            .unsynced()
            .contains(&"/api/v1/namespaces/default/configmaps in away".to_owned())
    );
    far.synced().await;
    near.synced().await;
    let key = one.key("here");
    assert!(near.get(&key).is_some() && far.get(&key).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_is_waited_for_and_named() {
    let bench = WatchBench::new().await;
    let clock = Clock::system();
    if bench.server.by_clock(1, 0) == 0 {
        // Another test on a shared server may have installed it.
        return;
    }
    let api: Api<Operation> = Api::default_namespaced(bench.server.client.clone());
    let operations = bench.watches.cache(api, Selection::default()).unwrap();
    let address = "/apis/neaptide.dev/v1alpha1/namespaces/default/operations".to_owned();
    assert_eq!(
        bench.watches.unsynced(),
        std::slice::from_ref(&address),
        "nothing is known yet"
    );
    clock.sleep(Duration::from_secs(30)).await;
    assert_eq!(
        bench.watches.unsynced(),
        [""; 0],
        "it keeps no process from being ready"
    );
    assert_eq!(bench.watches.unserved(), [address]);
    assert!(!operations.is_synced());
    bench.server.install(&Operation::crd()).await;
    let synced = clock
        .within(Duration::from_secs(10), operations.synced())
        .await;
    synced.expect("the watch begins soon after the installation");
    assert_eq!(bench.watches.unserved(), [""; 0]);
}
