//! Watches on a busy server: bookmarks and ends come in time.

use std::time::Duration;

use http_body_util::BodyExt;
use neap_oracles::{ObservedService, Observer};
use neap_pocket::{Options, Pocket, environment::Environment, wire::Service};
use serde_json::{Value, json};

use crate::support::chronicle::chronicle;
use crate::support::raw::{map, send};
use crate::support::stream::{lines, open};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn server() -> (Pocket, Observer, ObservedService<Service>) {
    let options = Options::new(Environment::simulated(5));
    let pocket = Pocket::open(options).await.unwrap();
    let observer = Observer::new();
    let client = ObservedService::new(pocket.service(), &observer, "client");
    (pocket, observer, client)
}

/// Changes one object all the time, for ever.
async fn bustle(client: &ObservedService<Service>) {
    send(client, "POST", MAPS, Some(map("busy"))).await;
    for i in 0u64.. {
        let patch = json!({"data": {"i": i.to_string()}});
        send(client, "PATCH", &format!("{MAPS}/busy"), Some(patch)).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The types of all lines until the stream ends; the reader waits a little with every chunk, so
/// that there is always more to read.
async fn read_slowly(client: &ObservedService<Service>, uri: &str) -> Vec<String> {
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

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

fn widget(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}})
}

fn types(lines: &[Value]) -> Vec<&str> {
    lines.iter().filter_map(|l| l["type"].as_str()).collect()
}

/// Whether a stream without further lines has ended.
async fn has_ended(stream: &mut neap_oracles::ObservedBody<neap_pocket::wire::Body>) -> bool {
    let next = tokio::time::timeout(Duration::from_millis(1), stream.frame()).await;
    matches!(next, Ok(None))
}

#[tokio::test(start_paused = true)]
async fn nothing_follows_an_error() {
    let (pocket, observer, client) = server().await;
    let revision = pocket.store().revision();
    let uri = format!(
        "{MAPS}?watch=true&allowWatchBookmarks=true&timeoutSeconds=5&resourceVersion={revision}"
    );
    // One is read to its end, one is in time for a bookmark, one is before either.
    for (seconds, timeout) in [(6, "5"), (61, "100"), (1, "5")] {
        let uri = uri.replace("Seconds=5", &format!("Seconds={timeout}"));
        let mut stream = open(&client, &uri).await;
        let (status, _) = send(&client, "POST", MAPS, Some(map(&format!("m{seconds}")))).await;
        assert_eq!(status, 201);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        pocket.store().compact(pocket.store().revision());
        let seen = lines(&mut stream).await;
        assert_eq!(types(&seen), ["ERROR"], "{seconds}");
        assert_eq!(seen[0]["object"]["code"], 410);
        assert!(has_ended(&mut stream).await);
    }
    let _ = observer.finish(&chronicle(&pocket));
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_with_its_definition_after_it_told_of_every_removal() {
    let (pocket, observer, client) = server().await;
    assert_eq!(
        send(&client, "POST", DEFINITIONS, Some(definition()))
            .await
            .0,
        201
    );
    assert_eq!(
        send(&client, "POST", WIDGETS, Some(widget("w"))).await.0,
        201
    );
    let mut stream = open(&client, &format!("{WIDGETS}?watch=true")).await;
    assert_eq!(types(&lines(&mut stream).await), ["ADDED"]);
    let place = format!("{DEFINITIONS}/widgets.example.com");
    assert_eq!(send(&client, "DELETE", &place, None).await.0, 200);
    assert_eq!(types(&lines(&mut stream).await), ["DELETED"]);
    assert!(has_ended(&mut stream).await, "the definition has gone");
    let _ = observer.finish(&chronicle(&pocket));
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_definition_changes_and_not_when_it_is_labelled() {
    let (pocket, observer, client) = server().await;
    assert_eq!(
        send(&client, "POST", DEFINITIONS, Some(definition()))
            .await
            .0,
        201
    );
    let mut stream = open(&client, &format!("{WIDGETS}?watch=true")).await;
    let place = format!("{DEFINITIONS}/widgets.example.com");
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(send(&client, "PATCH", &place, Some(label)).await.0, 200);
    assert!(lines(&mut stream).await.is_empty());
    assert!(!has_ended(&mut stream).await, "objects are shown as before");
    let mut changed = definition()["spec"]["versions"].clone();
    changed[0]["schema"]["openAPIV3Schema"]["properties"] = json!({"spec": {"type": "object"}});
    let change = json!({"spec": {"versions": changed}});
    assert_eq!(send(&client, "PATCH", &place, Some(change)).await.0, 200);
    assert!(lines(&mut stream).await.is_empty());
    assert!(
        has_ended(&mut stream).await,
        "objects are shown differently"
    );
    let _ = observer.finish(&chronicle(&pocket));
}
