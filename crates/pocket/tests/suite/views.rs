//! Views that lag and hooks that interfere: what their clients see is still a past state.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use neap_oracles::{ObservedService, Observer, Violation, watch::Guarantee};
use neap_pocket::{
    Options, Pocket,
    environment::Environment,
    store::{Event, Flow, HookFuture, Hooks, View},
    wire::Service,
};
use serde_json::{Value, json};

use crate::support::chronicle::chronicle;
use crate::support::raw::{map, send};
use crate::support::stream::{lines, open};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// A server, its clients with a direct view, and those with a view of their own.
struct World {
    pocket: Pocket,
    observer: Observer,
    now: ObservedService<Service>,
    view: View,
    late: ObservedService<Service>,
}

async fn world(hooks: Option<Arc<dyn Hooks>>) -> World {
    let options = Options::new(Environment::simulated(3));
    let pocket = Pocket::open(options).await.unwrap();
    // The server creates the standard objects of its namespaces by itself; after that it is quiet.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let observer = Observer::new();
    let view = pocket.view(hooks);
    let late = pocket.service_over(view.clone());
    World {
        now: ObservedService::new(pocket.service(), &observer, "now"),
        late: ObservedService::new(late, &observer.of_streams_only(), "late"),
        pocket,
        observer,
        view,
    }
}

impl World {
    async fn put(&self, collection: &str, name: &str, value: u64) {
        let uri = format!("{collection}/{name}");
        let patch = json!({"data": {"value": "MQ==", "n": "MQ==".repeat(value as usize % 7)}});
        let (status, _) = send(&self.now, "PATCH", &uri, Some(patch)).await;
        if status == StatusCode::NOT_FOUND {
            let (status, body) = send(&self.now, "POST", collection, Some(map(name))).await;
            assert!(status.is_success(), "{body}");
        }
    }
}

/// The names on a list, in its order.
fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_client_that_lags_sees_one_past_and_it_moves_forward() {
    let world = world(None).await;
    world.view.set_lag(5);
    let watch = format!("{MAPS}?watch=true");
    let mut stream = open(&world.late, &watch).await;
    let mut last = 0;
    for i in 0..120 {
        world.put(MAPS, &format!("x{}", i * 7 % 11), i).await;
        if i % 5 == 0 {
            let uri = format!("{MAPS}/x{}", i * 3 % 11);
            send(&world.now, "DELETE", &uri, None).await;
        }
        let (_, list) = send(&world.late, "GET", &format!("{MAPS}?limit=500"), None).await;
        let revision: u64 = list["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        assert_eq!(revision, world.view.revision());
        assert!(revision < world.pocket.store().revision() && revision >= last);
        last = revision;
        for name in names(&list) {
            let (_, object) = send(&world.late, "GET", &format!("{MAPS}/{name}"), None).await;
            let items = list["items"].as_array().unwrap();
            let listed = items.iter().find(|item| item["metadata"]["name"] == name);
            assert_eq!(object["metadata"], listed.unwrap()["metadata"]);
        }
    }
    lines(&mut stream).await;
    world.observer.had_time_for(world.view.revision());
    let _ = world.observer.finish(&chronicle(&world.pocket));
    world.view.set_lag(0);
    assert!(!lines(&mut stream).await.is_empty());
    world.observer.had_time_for(world.pocket.store().revision());
    let verdict = world.observer.finish(&chronicle(&world.pocket));
    assert!(verdict.events > 100 && verdict.pages == 120, "{verdict}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_lags_is_woken_by_changes_of_other_resources() {
    let world = world(None).await;
    world.view.set_lag(2);
    let mut stream = open(&world.late, &format!("{MAPS}?watch=true")).await;
    lines(&mut stream).await;
    world.put(MAPS, "x", 1).await;
    world.put(SECRETS, "a", 1).await;
    assert_eq!(lines(&mut stream).await.len(), 0);
    world.put(SECRETS, "b", 1).await;
    assert_eq!(lines(&mut stream).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_a_view_does_not_show_yet_is_waited_for_and_then_refused() {
    let world = world(None).await;
    world.view.set_lag(1);
    world.put(MAPS, "x", 1).await;
    let newest = world.pocket.store().revision();
    let list = format!("{MAPS}?resourceVersion={newest}");
    let get = format!("{MAPS}/x?resourceVersion={newest}");
    for uri in [&list, &get] {
        let (status, body) = send(&world.late, "GET", uri, None).await;
        assert_eq!(status, StatusCode::GATEWAY_TIMEOUT, "{body}");
    }
    let catch_up = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.view.set_lag(0);
    };
    let ((status, found), ()) = tokio::join!(send(&world.late, "GET", &list, None), catch_up);
    assert_eq!(status, StatusCode::OK);
    assert_eq!(names(&found).last().map(String::as_str), Some("x"));
    let _ = world.observer.finish(&chronicle(&world.pocket));
}

#[tokio::test(start_paused = true)]
async fn a_view_that_lags_behind_compaction_shows_the_oldest_state_there_is() {
    let world = world(None).await;
    world.view.set_lag(4);
    for i in 0..10 {
        world.put(MAPS, "x", i).await;
    }
    let all = chronicle(&world.pocket);
    world
        .pocket
        .store()
        .compact(world.pocket.store().revision());
    let (_, list) = send(&world.late, "GET", MAPS, None).await;
    let newest = world.pocket.store().revision().to_string();
    assert_eq!(list["metadata"]["resourceVersion"], newest);
    let _ = world.observer.finish(&all);
}

/// Applies this flow to the events of one name.
struct Meddle(&'static str, Flow);

impl Hooks for Meddle {
    fn before_event<'a>(&'a self, event: &'a Event) -> HookFuture<'a, Flow> {
        let meant = event.path.ends_with(self.0);
        Box::pin(async move { if meant { self.1 } else { Flow::Deliver } })
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_a_hook_loses_is_missed_by_the_oracle() {
    let world = world(Some(Arc::new(Meddle("/lost", Flow::Skip)))).await;
    let mut stream = open(&world.late, &format!("{MAPS}?watch=true")).await;
    for name in ["a", "lost", "b"] {
        world.put(MAPS, name, 1).await;
    }
    lines(&mut stream).await;
    let verdict = world.observer.judge(&chronicle(&world.pocket));
    let [Violation::Watch(violation)] = verdict.violations.as_slice() else {
        panic!("{verdict}");
    };
    assert_eq!(violation.guarantee, Guarantee::Reliable);
    let lost = violation.first.as_ref().map(|seen| seen.path.as_str());
    assert_eq!(lost, Some("default/lost"));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_a_hook_cuts_can_be_resumed() {
    let world = world(Some(Arc::new(Meddle("/cut", Flow::Cut)))).await;
    let start = world.pocket.store().revision();
    let watch = format!("{MAPS}?watch=true&resourceVersion={start}");
    let mut stream = open(&world.late, &watch).await;
    for name in ["a", "cut", "b"] {
        world.put(MAPS, name, 1).await;
    }
    let seen = lines(&mut stream).await;
    assert_eq!(seen.len(), 1);
    let place = &seen[0]["object"]["metadata"]["resourceVersion"];
    let watch = format!(
        "{MAPS}?watch=true&resourceVersion={}",
        place.as_str().unwrap()
    );
    let mut stream = open(&world.now, &watch).await;
    assert_eq!(lines(&mut stream).await.len(), 2);
    world.observer.had_time_for(world.pocket.store().revision());
    let _ = world.observer.finish(&chronicle(&world.pocket));
}
