use kube::runtime::watcher::Event;

use super::{super::cache::Cache, *};
use crate::clock::Clock;

fn owned(name: &str, version: u64, owners: &[&str]) -> Lenient<ConfigMap> {
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
async fn objects_are_found_by_what_they_say_now() {
    let cache = Cache::new(Clock::system());
    cache.take(Event::Apply(owned("before", 1, &["x"])));
    let index = Index::new(&cache, owners);
    cache.take(Event::Apply(owned("b", 2, &["x", "y"])));
    cache.take(Event::Apply(owned("a", 3, &["x"])));
    assert_eq!(found(&index, "x"), ["a", "b", "before"]);
    assert_eq!(found(&index, "y"), ["b"]);
    cache.take(Event::Apply(owned("b", 4, &["z"])));
    assert_eq!(found(&index, "x"), ["a", "before"]);
    assert_eq!(found(&index, "y"), [""; 0]);
    assert_eq!(found(&index, "z"), ["b"]);
    cache.take(Event::Delete(owned("b", 5, &["z"])));
    assert_eq!(found(&index, "z"), [""; 0]);
}

#[tokio::test]
async fn who_follows_later_finds_what_it_is_told_of() {
    let cache = Cache::new(Clock::system());
    let index = Index::new(&cache, owners);
    let looked = index.clone();
    let (told, heard) = std::sync::mpsc::sync_channel(9);
    cache.follow(move |_| told.send(found(&looked, "x")).unwrap());
    cache.take(Event::Apply(owned("a", 1, &["x"])));
    cache.take(Event::Delete(owned("a", 2, &["x"])));
    let heard: Vec<_> = heard.try_iter().collect();
    assert_eq!(heard, [vec!["a".to_owned()], vec![]]);
}

#[tokio::test]
async fn who_followed_before_the_index_was_made_finds_it_too() {
    let cache = Cache::new(Clock::system());
    let index = std::sync::Arc::new(std::sync::OnceLock::<Index<ConfigMap>>::new());
    let looked = index.clone();
    let (told, heard) = std::sync::mpsc::sync_channel(9);
    cache.follow(move |_| told.send(found(looked.get().unwrap(), "x")).unwrap());
    index.set(Index::new(&cache, owners)).unwrap();
    cache.take(Event::Apply(owned("a", 1, &["x"])));
    cache.take(Event::Delete(owned("a", 2, &["x"])));
    let heard: Vec<_> = heard.try_iter().collect();
    assert_eq!(heard, [vec!["a".to_owned()], vec![]]);
}
