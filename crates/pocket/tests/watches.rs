//! Watches on a busy server: what is due comes in time.

#![expect(clippy::unwrap_used, reason = "a test ends where it is surprised")]

#[path = "support/chronicle.rs"]
mod chronicle;
#[path = "support/raw.rs"]
mod raw;
#[path = "support/stream.rs"]
mod stream;

use std::time::Duration;

use http_body_util::BodyExt;
use neap_oracle::{Observer, Watched};
use neap_pocket::{Options, Pocket, environment::Environment, wire::Service};
use serde_json::{Value, json};

use chronicle::chronicle;
use raw::{map, send};
use stream::{lines, open};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn server() -> (Pocket, Observer, Watched<Service>) {
    let options = Options::new(Environment::rehearsal(5));
    let pocket = Pocket::open(options).await.unwrap();
    let observer = Observer::new();
    let client = Watched::new(pocket.service(), &observer, "client");
    (pocket, observer, client)
}

/// Changes one object all the time, for ever.
async fn bustle(client: &Watched<Service>) {
    send(client, "POST", MAPS, Some(map("busy"))).await;
    for i in 0u64.. {
        let patch = json!({"data": {"i": i.to_string()}});
        send(client, "PATCH", &format!("{MAPS}/busy"), Some(patch)).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The types of all lines until the stream ends, each reader waiting a little with every chunk, so
/// that there is always more to read.
async fn read_slowly(client: &Watched<Service>, uri: &str) -> Vec<String> {
    let mut stream = open(client, uri).await;
    let mut types = Vec::new();
    while let Some(frame) = stream.frame().await {
        let data = frame.unwrap().into_data().unwrap();
        for line in data.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
            let line: Value = serde_json::from_slice(line).unwrap();
            types.push(line["type"].as_str().unwrap().to_owned());
        }
        tokio::time::sleep(Duration::from_millis(120)).await;
    }
    types
}

#[tokio::test(start_paused = true)]
async fn a_watch_on_a_busy_resource_ends_in_time_and_gets_its_bookmarks() {
    let (pocket, observer, client) = server().await;
    let uri = format!("{MAPS}?watch=true&allowWatchBookmarks=true&timeoutSeconds=65");
    let started = tokio::time::Instant::now();
    let types = tokio::select! {
        types = read_slowly(&client, &uri) => types,
        () = bustle(&client) => unreachable!("it is for ever"),
    };
    let lasted = started.elapsed();
    assert!(
        lasted >= Duration::from_secs(65) && lasted < Duration::from_secs(66),
        "{lasted:?}"
    );
    let marks = types.iter().filter(|kind| *kind == "BOOKMARK").count();
    assert_eq!(marks, 2, "one a minute, and one at the end");
    assert_eq!(types.last().map(String::as_str), Some("BOOKMARK"));
    let _ = observer.finish(&chronicle(&pocket));
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_something_quiet_on_a_busy_resource_is_told_how_far_it_has_come() {
    let (pocket, observer, client) = server().await;
    let quiet = "fieldSelector=metadata.name%3Dquiet";
    let uri = format!("{MAPS}?watch=true&allowWatchBookmarks=true&timeoutSeconds=70&{quiet}");
    let types = tokio::select! {
        types = read_slowly(&client, &uri) => types,
        () = bustle(&client) => unreachable!("it is for ever"),
    };
    assert_eq!(types, ["BOOKMARK", "BOOKMARK"]);
    let _ = observer.finish(&chronicle(&pocket));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_wants_no_state_and_names_no_revision_begins_now() {
    let (pocket, observer, client) = server().await;
    send(&client, "POST", MAPS, Some(map("before"))).await;
    pocket.store().compact(pocket.store().revision());
    for revision in ["", "&resourceVersion=0"] {
        let name = format!("after{}", revision.len());
        let uri = format!(
            "{MAPS}?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan{revision}"
        );
        let mut stream = open(&client, &uri).await;
        send(&client, "POST", MAPS, Some(map(&name))).await;
        let seen = lines(&mut stream).await;
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert_eq!(seen[0]["object"]["metadata"]["name"], name.as_str());
    }
    let _ = observer.finish(&chronicle(&pocket));
}
