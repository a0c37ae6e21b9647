//! Objects that are kept without the metadata of a resource.

use serde::Deserialize;

use super::{super::index::Index, *};

/// A ConfigMap of which the hue is kept.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "Whole")]
struct Color {
    key: (Box<str>, Box<str>),
    uid: Box<str>,
    version: u64,
    hue: Box<str>,
}

#[derive(Deserialize)]
struct Whole {
    metadata: kube::api::ObjectMeta,
    data: std::collections::BTreeMap<String, Box<str>>,
}

impl From<Whole> for Color {
    fn from(mut whole: Whole) -> Self {
        let text = |text: Option<String>| text.unwrap_or_default().into_boxed_str();
        let metadata = whole.metadata;
        Self {
            key: (text(metadata.namespace), text(metadata.name)),
            uid: text(metadata.uid),
            version: text(metadata.resource_version).parse().unwrap(),
            hue: whole.data.remove("color").unwrap_or_default(),
        }
    }
}

impl CachedObject for Color {
    fn cached_key(&self) -> (&str, &str) {
        (&self.key.0, &self.key.1)
    }

    fn has_uid(&self, uid: &str) -> bool {
        *self.uid == *uid
    }

    fn has_uid_of(&self, other: &Self) -> bool {
        self.uid == other.uid
    }

    fn version_number(&self) -> u64 {
        self.version
    }

    fn is_terminating(&self) -> bool {
        false
    }

    fn strip(&mut self) {}
}

fn color(name: &str, uid: &str, version: u64, color: &str) -> Decoded<Color> {
    let metadata = json!({
        "namespace": "d", "name": name, "uid": uid, "resourceVersion": version.to_string(),
        "managedFields": [{"manager": "m"}],
    });
    let object = json!({"metadata": metadata, "data": {"color": color, "other": "thing"}});
    let object: RawObject<false> = serde_json::from_str(&object.to_string()).unwrap();
    decode(object)
}

#[test]
fn they_change_and_are_replaced_as_others() {
    let cache: Cache<Color> = Cache::new(Clock::system(), None);
    let by_color = Index::new(&cache, |it| vec![it.hue.to_string()]);
    let seen = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let log = seen.clone();
    cache.subscribe(move |change| {
        let what = match change {
            Change::Added(new) => format!("+{}", new.hue),
            Change::Modified { old, new } => format!("{}>{}", old.hue, new.hue),
            Change::Deleted(old) => format!("-{}", old.hue),
        };
        log.lock().push(format!("{} {what}", change.key()));
    });
    cache.apply_event(Event::Init);
    cache.apply_event(Event::InitApply(color("a", "1", 5, "red")));
    cache.apply_event(Event::InitApply(color("b", "2", 4, "red")));
    cache.apply_event(Event::InitDone);
    assert_eq!(by_color.get("red").len(), 2);
    cache.apply_event(Event::Apply(color("a", "1", 6, "blue")));
    cache.apply_event(Event::Apply(color("a", "1", 5, "old")));
    // Another object has the name by now, and the deletion was missed.
    cache.apply_event(Event::Apply(color("b", "3", 7, "green")));
    cache.apply_event(Event::Delete(color("a", "1", 8, "blue")));
    assert_eq!(
        *seen.lock(),
        [
            "d/a +red",
            "d/b +red",
            "d/a red>blue",
            "d/b -red",
            "d/b +green",
            "d/a -blue"
        ]
    );
    assert!(by_color.get("red").is_empty() && by_color.get("blue").is_empty());
    assert_eq!(by_color.get("green").len(), 1);
    assert_eq!(cache.get(&Key::new("d", "b")).unwrap().version, 7);
    assert_eq!(cache.list("d").len(), 1);
}

#[test]
fn one_that_cannot_be_decoded_is_reported_and_affects_no_other() {
    let cache: Cache<Color> = Cache::new(Clock::system(), None);
    let broken =
        json!({"metadata": {"namespace": "d", "name": "x", "uid": "9", "resourceVersion": "9"}});
    let broken: RawObject<false> = serde_json::from_str(&broken.to_string()).unwrap();
    cache.apply_event(Event::Init);
    cache.apply_event(Event::InitApply(decode(broken)));
    cache.apply_event(Event::InitApply(color("a", "1", 5, "red")));
    cache.apply_event(Event::InitDone);
    assert_eq!(cache.len(), 1);
    let key = Key::new("d", "x");
    assert_eq!(cache.undecodable()[&key].version, "9");
}

#[tokio::test(start_paused = true)]
async fn a_server_is_asked_for_whole_objects_of_the_other_kind() {
    let bench = server::WatchBench::new().await;
    let api: kube::Api<ConfigMap> = kube::Api::default_namespaced(bench.server.client.clone());
    let cache: Cache<Color> = bench
        .watches
        .compact_cache(api, Selection::default())
        .unwrap();
    let object = json!({"metadata": {"name": "sky"}, "data": {"color": "blue"}});
    let object: ConfigMap = serde_json::from_value(object).unwrap();
    let parameters = kube::api::PostParams::default();
    let made = bench.maps.create(&parameters, &object).await.unwrap();
    cache.synced().await;
    let waited = cache.wait_for_write(&made, Duration::from_secs(5)).await;
    waited.unwrap();
    let found = cache.get(&bench.key("sky")).unwrap();
    assert_eq!(*found.hue, *"blue");
    assert!(found.has_uid(made.metadata.uid.as_deref().unwrap()));
}
