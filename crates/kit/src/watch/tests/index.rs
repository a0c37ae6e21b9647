use kube::runtime::watcher::Event;

use super::{super::cache::Cache, *};
use crate::clock::Clock;

fn owned(name: &str, version: u64, owners: &[&str]) -> Decoded<ConfigMap> {
    let data: serde_json::Value = owners.iter().map(|&owner| (owner, "")).collect();
    let metadata = json!({"namespace": "d", "name": name, "uid": name, "resourceVersion": version.to_string()});
    read(&json!({"metadata": metadata, "data": data}))
}

fn owners(map: &ConfigMap) -> Vec<String> {
    map.data
        .iter()
        .flatten()
        .map(|(owner, _)| owner.clone())
        .collect()
}

fn found(index: &Index<ConfigMap>, owner: &str) -> Vec<String> {
    let found = index.get(owner);
    found
        .iter()
        .map(|map| Key::of(&**map).name().to_owned())
        .collect()
}

#[tokio::test]
async fn objects_are_found_by_their_current_values() {
    let cache = Cache::new(Clock::system(), None);
    cache.apply_event(Event::Apply(owned("before", 1, &["x"])));
    let index = Index::new(&cache, owners);
    cache.apply_event(Event::Apply(owned("b", 2, &["x", "y"])));
    cache.apply_event(Event::Apply(owned("a", 3, &["x"])));
    assert_eq!(found(&index, "x"), ["a", "b", "before"]);
    assert_eq!(found(&index, "y"), ["b"]);
    cache.apply_event(Event::Apply(owned("b", 4, &["z"])));
    assert_eq!(found(&index, "x"), ["a", "before"]);
    assert_eq!(found(&index, "y"), [""; 0]);
    assert_eq!(found(&index, "z"), ["b"]);
    cache.apply_event(Event::Delete(owned("b", 5, &["z"])));
    assert_eq!(found(&index, "z"), [""; 0]);
}

#[tokio::test]
async fn a_later_subscriber_finds_the_objects_of_its_changes() {
    let cache = Cache::new(Clock::system(), None);
    let index = Index::new(&cache, owners);
    let queried = index.clone();
    let (sender, receiver) = std::sync::mpsc::sync_channel(9);
    cache.subscribe(move |_| sender.send(found(&queried, "x")).unwrap());
    cache.apply_event(Event::Apply(owned("a", 1, &["x"])));
    cache.apply_event(Event::Delete(owned("a", 2, &["x"])));
    let received: Vec<_> = receiver.try_iter().collect();
    assert_eq!(received, [vec!["a".to_owned()], vec![]]);
}

#[tokio::test]
async fn an_earlier_subscriber_finds_the_objects_of_its_changes_too() {
    let cache = Cache::new(Clock::system(), None);
    let index = std::sync::Arc::new(std::sync::OnceLock::<Index<ConfigMap>>::new());
    let queried = index.clone();
    let (sender, receiver) = std::sync::mpsc::sync_channel(9);
    cache.subscribe(move |_| sender.send(found(queried.get().unwrap(), "x")).unwrap());
    index.set(Index::new(&cache, owners)).unwrap();
    cache.apply_event(Event::Apply(owned("a", 1, &["x"])));
    cache.apply_event(Event::Delete(owned("a", 2, &["x"])));
    let received: Vec<_> = receiver.try_iter().collect();
    assert_eq!(received, [vec!["a".to_owned()], vec![]]);
}
