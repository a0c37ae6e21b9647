mod index;
mod server;

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher::Event;
use serde_json::json;

use super::{contents::Contents, lenient::Lenient, *};
use crate::{clock::Clock, key::Key};

fn map(name: &str, version: u64) -> Lenient<ConfigMap> {
    let metadata =
        json!({"namespace": "d", "name": name, "uid": "u", "resourceVersion": version.to_string()});
    read(&json!({"metadata": metadata}))
}

fn read(object: &serde_json::Value) -> Lenient<ConfigMap> {
    serde_json::from_str(&object.to_string()).unwrap()
}

/// What an event changes, in words.
fn told(contents: &mut Contents<ConfigMap>, event: Event<Lenient<ConfigMap>>) -> Vec<String> {
    let changes = contents.take(event);
    let words = changes.iter().map(|change| {
        let verb = match change {
            Change::Added(_) => "added",
            Change::Modified { .. } => "modified",
            Change::Deleted(_) => "deleted",
        };
        format!("{verb} {}", change.key().name())
    });
    words.collect()
}

/// Contents after a listing of these objects.
fn listed(objects: &[(&str, u64)]) -> Contents<ConfigMap> {
    let mut contents = Contents::default();
    relist(&mut contents, objects);
    contents
}

fn relist(contents: &mut Contents<ConfigMap>, objects: &[(&str, u64)]) -> Vec<String> {
    let mut all = told(contents, Event::Init);
    for &(name, version) in objects {
        all.extend(told(contents, Event::InitApply(map(name, version))));
    }
    all.extend(told(contents, Event::InitDone));
    all
}

#[test]
fn followers_hear_what_happens() {
    let mut contents = listed(&[("a", 1)]);
    assert!(contents.is_synced());
    assert_eq!(told(&mut contents, Event::Apply(map("b", 2))), ["added b"]);
    assert_eq!(
        told(&mut contents, Event::Apply(map("a", 3))),
        ["modified a"]
    );
    assert_eq!(
        told(&mut contents, Event::Delete(map("a", 4))),
        ["deleted a"]
    );
    assert_eq!(contents.len(), 1);
}

#[test]
fn a_listing_tells_only_what_is_new_and_what_is_gone() {
    let mut contents = listed(&[("a", 1), ("b", 2), ("c", 3)]);
    let changes = relist(&mut contents, &[("a", 1), ("c", 5), ("d", 4)]);
    assert_eq!(changes, ["modified c", "added d", "deleted b"]);
}

#[test]
fn a_listing_that_breaks_off_removes_nobody() {
    let mut contents = listed(&[("a", 1), ("b", 2)]);
    told(&mut contents, Event::Init);
    told(&mut contents, Event::InitApply(map("a", 1)));
    assert_eq!(relist(&mut contents, &[("a", 1), ("b", 2)]), [""; 0]);
    assert_eq!(contents.len(), 2);
}

#[test]
fn an_object_does_not_go_back_in_time() {
    let mut contents = listed(&[("a", 5)]);
    assert_eq!(told(&mut contents, Event::Apply(map("a", 4))), [""; 0]);
    let again =
        json!({"metadata": {"namespace": "d", "name": "a", "uid": "v", "resourceVersion": "3"}});
    let another = told(&mut contents, Event::Apply(read(&again)));
    assert_eq!(
        another,
        ["deleted a", "added a"],
        "another object of that name has its own time"
    );
}

#[test]
fn an_unreadable_object_stays_as_it_was_and_hides_nobody() {
    let mut contents = listed(&[("a", 1)]);
    let bad = json!({
        "metadata": {"namespace": "d", "name": "a", "uid": "u", "resourceVersion": "2"},
        "data": "no map",
    });
    assert_eq!(told(&mut contents, Event::Apply(read(&bad))), [""; 0]);
    assert_eq!(told(&mut contents, Event::Apply(map("b", 3))), ["added b"]);
    let key = Key::new("d", "a");
    let kept = contents.get(&key).unwrap();
    assert_eq!(kept.metadata.resource_version.as_deref(), Some("1"));
    let report = &contents.unreadable()[&key];
    assert_eq!(report.version, "2");
    assert!(report.problem.contains("expected"), "{}", report.problem);
    assert_eq!(
        told(&mut contents, Event::Apply(map("a", 4))),
        ["modified a"]
    );
    assert!(contents.unreadable().is_empty());
}

#[test]
fn a_listing_keeps_what_it_has_though_it_cannot_be_read() {
    let mut contents = listed(&[("a", 1), ("b", 1)]);
    let bad = json!({"metadata": {"namespace": "d", "name": "a", "uid": "u"}, "data": "no map"});
    told(&mut contents, Event::Init);
    told(&mut contents, Event::InitApply(read(&bad)));
    assert_eq!(told(&mut contents, Event::InitDone), ["deleted b"]);
    let known: Vec<_> = contents.unreadable().keys().cloned().collect();
    assert_eq!(known, [Key::new("d", "a")]);
    assert_eq!(relist(&mut contents, &[("c", 2)]), ["added c", "deleted a"]);
    assert!(contents.unreadable().is_empty());
}

#[test]
fn managed_fields_are_not_kept() {
    let mut contents = Contents::default();
    let object = json!({"metadata": {"name": "a", "managedFields": [{"manager": "m"}]}});
    contents.take(Event::Apply(read(&object)));
    assert_eq!(
        contents
            .get(&Key::new("", "a"))
            .unwrap()
            .metadata
            .managed_fields,
        None
    );
}

#[test]
fn a_write_has_been_seen_once_a_later_event_or_a_later_listing_has() {
    let mut contents = listed(&[("a", 5)]);
    let listings = contents.listings();
    assert!(contents.has_reached(5, listings) && !contents.has_reached(6, listings));
    told(&mut contents, Event::Delete(map("a", 6)));
    assert!(contents.has_reached(6, listings) && !contents.has_reached(9, listings));
    relist(&mut contents, &[]);
    assert!(contents.has_reached(9, listings));
}

#[test]
fn a_write_has_not_been_seen_while_a_listing_may_still_tell_of_it() {
    let mut contents = listed(&[("z", 5)]);
    let listings = contents.listings();
    told(&mut contents, Event::Init);
    told(&mut contents, Event::InitApply(map("a", 8)));
    assert!(!contents.has_reached(7, listings), "z may have it");
    told(&mut contents, Event::InitApply(map("z", 7)));
    told(&mut contents, Event::InitDone);
    assert!(contents.has_reached(7, listings));
    assert!(contents.has_reached(8, contents.listings()));
}

#[test]
fn objects_of_a_namespace_are_listed_alone() {
    let mut contents = Contents::default();
    for (namespace, name) in [("a", "x"), ("a-b", "x"), ("b", "y"), ("b", "x")] {
        let object = json!({"metadata": {"namespace": namespace, "name": name}});
        contents.take(Event::Apply(read(&object)));
    }
    let names = |namespace| -> Vec<_> {
        let within = contents.within(namespace);
        within
            .iter()
            .map(|object| Key::of(&**object).to_string())
            .collect()
    };
    assert_eq!(names("a"), ["a/x"]);
    assert_eq!(names("b"), ["b/x", "b/y"]);
    assert_eq!(names("").len(), 4);
    assert_eq!(names("c"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_is_put_together_shows_a_write_once_its_namespace_does() {
    let clock = Clock::system();
    let limit = Duration::from_secs(1);
    let (one, other) = (Cache::new(clock), Cache::new(clock));
    let parts = [
        ("d".to_owned(), one.clone()),
        ("e".to_owned(), other.clone()),
    ];
    let whole = Cache::together(clock, parts.into());
    let elsewhere = json!({"namespace": "e", "name": "b", "resourceVersion": "9"});
    other.take(Event::Apply(read(&json!({"metadata": elsewhere}))));
    let written = |version| map("a", version).0.unwrap();
    assert!(whole.shows_written(&written(5), limit).await.is_err());
    assert!(whole.shows("5", limit).await.is_err());
    one.take(Event::Apply(map("a", 5)));
    whole.shows_written(&written(5), limit).await.unwrap();
    assert!(whole.get(&Key::new("d", "a")).is_some());
    one.take(Event::Delete(map("a", 10)));
    whole.shows_written(&written(10), limit).await.unwrap();
    assert!(whole.get(&Key::new("d", "a")).is_none());
    assert!(whole.shows("10", limit).await.is_err(), "the other may lag");
}
