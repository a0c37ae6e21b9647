mod compact;
mod index;
mod server;

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher::Event;
use serde_json::json;

use super::{
    contents::Contents,
    decoded::Decoded,
    raw::{RawObject, decode},
    *,
};
use crate::{clock::Clock, key::Key};

fn map(name: &str, version: u64) -> Decoded<ConfigMap> {
    let metadata =
        json!({"namespace": "d", "name": name, "uid": "u", "resourceVersion": version.to_string()});
    read(&json!({"metadata": metadata}))
}

fn read(object: &serde_json::Value) -> Decoded<ConfigMap> {
    let object: RawObject<false> = serde_json::from_str(&object.to_string()).unwrap();
    decode(object)
}

/// The changes that an event causes, as text.
fn changes(contents: &mut Contents<ConfigMap>, event: Event<Decoded<ConfigMap>>) -> Vec<String> {
    let caused = contents.apply_event(event);
    let texts = caused.iter().map(|change| {
        let verb = match change {
            Change::Added(_) => "added",
            Change::Modified { .. } => "modified",
            Change::Deleted(_) => "deleted",
        };
        format!("{verb} {}", change.key().name())
    });
    texts.collect()
}

/// Contents after a listing of these objects.
fn listed(objects: &[(&str, u64)]) -> Contents<ConfigMap> {
    let mut contents = Contents::default();
    relist(&mut contents, objects);
    contents
}

fn relist(contents: &mut Contents<ConfigMap>, objects: &[(&str, u64)]) -> Vec<String> {
    let mut all = changes(contents, Event::Init);
    for &(name, version) in objects {
        all.extend(changes(contents, Event::InitApply(map(name, version))));
    }
    all.extend(changes(contents, Event::InitDone));
    all
}

#[test]
fn events_are_applied_as_changes() {
    let mut contents = listed(&[("a", 1)]);
    assert!(contents.is_synced());
    assert_eq!(
        changes(&mut contents, Event::Apply(map("b", 2))),
        ["added b"]
    );
    assert_eq!(
        changes(&mut contents, Event::Apply(map("a", 3))),
        ["modified a"]
    );
    assert_eq!(
        changes(&mut contents, Event::Delete(map("a", 4))),
        ["deleted a"]
    );
    assert_eq!(contents.len(), 1);
}

#[test]
fn a_listing_reports_only_new_changed_and_deleted_objects() {
    let mut contents = listed(&[("a", 1), ("b", 2), ("c", 3)]);
    let caused = relist(&mut contents, &[("a", 1), ("c", 5), ("d", 4)]);
    assert_eq!(caused, ["modified c", "added d", "deleted b"]);
}

#[test]
fn an_incomplete_listing_removes_no_object() {
    let mut contents = listed(&[("a", 1), ("b", 2)]);
    changes(&mut contents, Event::Init);
    changes(&mut contents, Event::InitApply(map("a", 1)));
    assert_eq!(relist(&mut contents, &[("a", 1), ("b", 2)]), [""; 0]);
    assert_eq!(contents.len(), 2);
}

#[test]
fn an_object_does_not_go_back_to_an_earlier_version() {
    let mut contents = listed(&[("a", 5)]);
    assert_eq!(changes(&mut contents, Event::Apply(map("a", 4))), [""; 0]);
    let again =
        json!({"metadata": {"namespace": "d", "name": "a", "uid": "v", "resourceVersion": "3"}});
    let another = changes(&mut contents, Event::Apply(read(&again)));
    assert_eq!(
        another,
        ["deleted a", "added a"],
        "another object of that name has its own versions"
    );
}

#[test]
fn an_undecodable_object_stays_as_it_was_and_affects_no_other() {
    let mut contents = listed(&[("a", 1)]);
    let bad = json!({
        "metadata": {"namespace": "d", "name": "a", "uid": "u", "resourceVersion": "2"},
        "data": "no map",
    });
    assert_eq!(changes(&mut contents, Event::Apply(read(&bad))), [""; 0]);
    assert_eq!(
        changes(&mut contents, Event::Apply(map("b", 3))),
        ["added b"]
    );
    let key = Key::new("d", "a");
    let cached = contents.get(&key).unwrap();
    assert_eq!(cached.metadata.resource_version.as_deref(), Some("1"));
    let report = &contents.undecodable()[&key];
    assert_eq!(report.version, "2");
    assert!(report.problem.contains("expected"), "{}", report.problem);
    assert_eq!(
        changes(&mut contents, Event::Apply(map("a", 4))),
        ["modified a"]
    );
    assert!(contents.undecodable().is_empty());
}

#[test]
fn a_listing_keeps_objects_that_it_contains_but_cannot_decode() {
    let mut contents = listed(&[("a", 1), ("b", 1)]);
    let bad = json!({"metadata": {"namespace": "d", "name": "a", "uid": "u"}, "data": "no map"});
    changes(&mut contents, Event::Init);
    changes(&mut contents, Event::InitApply(read(&bad)));
    assert_eq!(changes(&mut contents, Event::InitDone), ["deleted b"]);
    let known: Vec<_> = contents.undecodable().keys().cloned().collect();
    assert_eq!(known, [Key::new("d", "a")]);
    assert_eq!(relist(&mut contents, &[("c", 2)]), ["added c", "deleted a"]);
    assert!(contents.undecodable().is_empty());
}

#[test]
fn managed_fields_are_dropped() {
    let mut contents = Contents::default();
    let object = json!({"metadata": {"name": "a", "managedFields": [{"manager": "m"}]}});
    contents.apply_event(Event::Apply(read(&object)));
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
fn a_write_is_reached_by_a_later_event_or_a_later_listing() {
    let mut contents = listed(&[("a", 5)]);
    let listings = contents.listings_begun();
    assert!(contents.has_reached(5, listings) && !contents.has_reached(6, listings));
    changes(&mut contents, Event::Delete(map("a", 6)));
    assert!(contents.has_reached(6, listings) && !contents.has_reached(9, listings));
    relist(&mut contents, &[]);
    assert!(contents.has_reached(9, listings));
}

#[test]
fn a_write_is_not_reached_while_a_listing_may_still_contain_it() {
    let mut contents = listed(&[("z", 5)]);
    let listings = contents.listings_begun();
    changes(&mut contents, Event::Init);
    changes(&mut contents, Event::InitApply(map("a", 8)));
    assert!(
        !contents.has_reached(7, listings),
        "z may have this version"
    );
    changes(&mut contents, Event::InitApply(map("z", 7)));
    changes(&mut contents, Event::InitDone);
    assert!(contents.has_reached(7, listings));
    assert!(contents.has_reached(8, contents.listings_begun()));
}

#[test]
fn objects_of_a_namespace_are_listed_separately() {
    let mut contents = Contents::default();
    for (namespace, name) in [("a", "x"), ("a-b", "x"), ("b", "y"), ("b", "x")] {
        let object = json!({"metadata": {"namespace": namespace, "name": name}});
        contents.apply_event(Event::Apply(read(&object)));
    }
    let names = |namespace| -> Vec<_> {
        let within = contents.list(namespace);
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
async fn a_union_shows_a_write_once_the_cache_of_its_namespace_does() {
    let clock = Clock::system();
    let limit = Duration::from_secs(1);
    let (one, other) = (Cache::new(clock, None), Cache::new(clock, None));
    let parts = [
        ("d".to_owned(), one.clone()),
        ("e".to_owned(), other.clone()),
    ];
    let whole = Cache::union(clock, parts.into());
    let elsewhere = json!({"namespace": "e", "name": "b", "resourceVersion": "9"});
    other.apply_event(Event::Apply(read(&json!({"metadata": elsewhere}))));
    let written = |version| map("a", version).0.unwrap();
    assert!(whole.wait_for_write(&written(5), limit).await.is_err());
    assert!(whole.wait_for_version("5", limit).await.is_err());
    one.apply_event(Event::Apply(map("a", 5)));
    whole.wait_for_write(&written(5), limit).await.unwrap();
    assert!(whole.get(&Key::new("d", "a")).is_some());
    one.apply_event(Event::Delete(map("a", 10)));
    whole.wait_for_write(&written(10), limit).await.unwrap();
    assert!(whole.get(&Key::new("d", "a")).is_none());
    assert!(
        whole.wait_for_version("10", limit).await.is_err(),
        "the other part may be behind"
    );
}
