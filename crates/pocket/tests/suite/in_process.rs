//! A kube client with no socket, under a paused clock.

use crate::support::chronicle;
use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use neap_oracles::{ObservedService, Observer};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::json;

/// A server whose responses are all checked when the test ends.
struct Judged {
    pocket: Pocket,
    observer: Observer,
}

impl Drop for Judged {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let verdict = self.observer.finish(&chronicle::chronicle(&self.pocket));
            assert!(verdict.operations > 0, "nothing was judged");
        }
    }
}

async fn client() -> (Judged, Client) {
    let pocket = Pocket::open(Options::new(Environment::simulated(1)))
        .await
        .unwrap();
    let observer = Observer::new();
    let client = Client::new(
        ObservedService::new(pocket.service(), &observer, "test"),
        "default",
    );
    (Judged { pocket, observer }, client)
}

fn map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": value}})).unwrap()
}

#[tokio::test(start_paused = true)]
async fn objects_are_created_read_changed_and_deleted() {
    let (_judged, client) = client().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let created = maps
        .create(&PostParams::default(), &map("x", "1"))
        .await
        .unwrap();
    assert!(created.metadata.uid.is_some());
    assert_eq!(created.metadata.managed_fields.as_ref().unwrap().len(), 1);
    let again = maps
        .create(&PostParams::default(), &map("x", "1"))
        .await
        .unwrap_err();
    assert!(matches!(again, kube::Error::Api(status) if status.is_already_exists()));

    let patch = Patch::Merge(json!({"data": {"b": "2"}}));
    let patched = maps
        .patch("x", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(
        patched.data.unwrap(),
        BTreeMap::from([("a".into(), "1".into()), ("b".into(), "2".into())])
    );

    let list = maps.list(&ListParams::default()).await.unwrap();
    assert!(
        list.items
            .iter()
            .any(|item| item.metadata.name.as_deref() == Some("x"))
    );
    maps.delete("x", &DeleteParams::default()).await.unwrap();
    assert!(maps.get_opt("x").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_watch_sees_every_change_in_order() {
    let (_judged, client) = client().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let start = maps
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();
    let watch = maps
        .watch(&WatchParams::default().fields("metadata.name=x"), &start)
        .await
        .unwrap();
    maps.create(&PostParams::default(), &map("x", "1"))
        .await
        .unwrap();
    maps.create(&PostParams::default(), &map("other", "1"))
        .await
        .unwrap();
    maps.patch(
        "x",
        &PatchParams::default(),
        &Patch::Merge(json!({"data": {"a": "2"}})),
    )
    .await
    .unwrap();
    maps.delete("x", &DeleteParams::default()).await.unwrap();
    let events: Vec<WatchEvent<ConfigMap>> = watch.take(3).try_collect().await.unwrap();
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| match event {
            WatchEvent::Added(_) => "added",
            WatchEvent::Modified(_) => "modified",
            WatchEvent::Deleted(_) => "deleted",
            WatchEvent::Bookmark(_) => "bookmark",
            WatchEvent::Error(_) => "error",
        })
        .collect();
    assert_eq!(kinds, ["added", "modified", "deleted"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_furnished_and_ends_empty() {
    let (_judged, client) = client().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "n");
    for i in 0..100 {
        maps.create(&PostParams::default(), &map(&format!("m{i}"), "1"))
            .await
            .unwrap();
    }
    namespaces
        .delete("n", &DeleteParams::default())
        .await
        .unwrap();
    let gone = kube::runtime::wait::await_condition(
        namespaces.clone(),
        "n",
        kube::runtime::wait::conditions::is_deleted(""),
    );
    let _ = gone.await;
    assert!(namespaces.get_opt("n").await.unwrap().is_none());
    assert!(
        maps.list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}
