//! The server's own controllers, under a paused clock.
//!
//! Time moves only when every task sleeps, so a wait that ends shows that housekeeping does too.

use std::time::Duration;

use crate::support::paused::time_passes;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use neap_pocket::{
    Options, Pocket, Storage,
    environment::Environment,
    store::{Expect, Put},
};
use serde_json::{Value, json};
use tower::Service;

async fn open(change: impl FnOnce(&mut Options)) -> Pocket {
    let mut options = Options::new(Environment::simulated(3));
    change(&mut options);
    Pocket::open(options).await.unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "answers in these tests are small"
)]
async fn ask(pocket: &Pocket, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
    let body = if body.is_null() {
        Bytes::new()
    } else {
        body.to_string().into()
    };
    let kind = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(Full::new(body))
        .unwrap();
    let response = pocket.service().call(request).await.unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

async fn get(pocket: &Pocket, path: &str) -> (StatusCode, Value) {
    ask(pocket, Method::GET, path, Value::Null).await
}

async fn create(pocket: &Pocket, path: &str, body: Value) -> Value {
    let (status, value) = ask(pocket, Method::POST, path, body).await;
    assert_eq!(status, StatusCode::CREATED, "{value}");
    value
}

async fn delete(pocket: &Pocket, path: &str) {
    let (status, value) = ask(pocket, Method::DELETE, path, Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{value}");
}

/// Waits for the write that removes the object.
async fn gone(pocket: &Pocket, path: &str) {
    let waiting = async {
        loop {
            let seen = pocket.store().revision();
            if get(pocket, path).await.0 == StatusCode::NOT_FOUND {
                return;
            }
            pocket.store().settled(seen + 1).await.unwrap();
        }
    };
    if tokio::time::timeout(Duration::from_secs(30), waiting)
        .await
        .is_err()
    {
        panic!("{path} is still there: {}", get(pocket, path).await.1);
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, owner: Option<&Value>) -> Value {
    let mut object = json!({"metadata": {"name": name}});
    if let Some(owner) = owner {
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "blockOwnerDeletion": true,
            "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        }]);
    }
    object
}

fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    })
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test(start_paused = true)]
async fn an_idle_server_writes_nothing() {
    let pocket = open(|_| {}).await;
    // An object that every controller waits for without end: a namespace, a definition, an owner,
    // an orphan with an unknown owner.
    create(
        &pocket,
        "/api/v1/namespaces",
        json!({"metadata": {"name": "n", "finalizers": ["a.io/b"]}}),
    )
    .await;
    create(
        &pocket,
        "/api/v1/namespaces/n/configmaps",
        json!({"metadata": {"name": "m", "finalizers": ["a.io/b"]}}),
    )
    .await;
    delete(&pocket, "/api/v1/namespaces/n").await;
    create(
        &pocket,
        "/api/v1/namespaces",
        json!({"metadata": {"name": "empty", "finalizers": ["a.io/b"]}}),
    )
    .await;
    delete(&pocket, "/api/v1/namespaces/empty").await;
    create(&pocket, DEFINITIONS, definition("widgets", "Widget")).await;
    create(&pocket, "/apis/example.com/v1/namespaces/default/widgets", json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "finalizers": ["a.io/b"]}
    })).await;
    create(&pocket, DEFINITIONS, definition("gadgets", "Widget")).await;
    delete(&pocket, &format!("{DEFINITIONS}/widgets.example.com")).await;
    let owner = create(&pocket, MAPS, map("owner", None)).await;
    let mut held = map("held", Some(&owner));
    held["metadata"]["finalizers"] = json!(["a.io/b"]);
    create(&pocket, MAPS, held).await;
    delete(
        &pocket,
        &format!("{MAPS}/owner?propagationPolicy=Foreground"),
    )
    .await;
    let mut puzzle = map("puzzle", Some(&owner));
    puzzle["metadata"]["ownerReferences"][0]["apiVersion"] = json!("nowhere.io/v1");
    create(&pocket, MAPS, puzzle).await;
    time_passes(Duration::from_mins(1)).await;

    let before = pocket.store().revision();
    time_passes(Duration::from_mins(10)).await;
    assert_eq!(pocket.store().revision(), before);
    assert_eq!(
        get(&pocket, &format!("{MAPS}/owner")).await.0,
        StatusCode::OK
    );
    assert_eq!(
        get(&pocket, &format!("{MAPS}/puzzle")).await.0,
        StatusCode::OK
    );
}

#[tokio::test(start_paused = true)]
async fn an_owner_in_a_namespace_takes_nothing_along_that_is_in_none() {
    let pocket = open(|_| {}).await;
    let owner = create(&pocket, MAPS, map("owner", None)).await;
    create(&pocket, MAPS, map("inside", Some(&owner))).await;
    create(&pocket, "/api/v1/namespaces", map("outside", Some(&owner))).await;
    delete(&pocket, &format!("{MAPS}/owner")).await;
    gone(&pocket, &format!("{MAPS}/inside")).await;
    time_passes(Duration::from_mins(1)).await;
    let (_, outside) = get(&pocket, "/api/v1/namespaces/outside").await;
    assert_eq!(outside["status"]["phase"], "Active", "{outside}");
}

#[tokio::test(start_paused = true)]
async fn lost_history_is_made_up_for() {
    let pocket = open(|_| {}).await;
    let owner = create(&pocket, MAPS, map("owner", None)).await;
    let middle = create(&pocket, MAPS, map("middle", Some(&owner))).await;
    for i in 0..50 {
        create(&pocket, MAPS, map(&format!("m{i}"), Some(&middle))).await;
        pocket.store().compact(pocket.store().revision());
    }
    delete(&pocket, &format!("{MAPS}/owner")).await;
    pocket.store().compact(pocket.store().revision());
    gone(&pocket, &format!("{MAPS}/middle")).await;
    pocket.store().compact(pocket.store().revision());
    for i in 0..50 {
        gone(&pocket, &format!("{MAPS}/m{i}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn lost_history_prolongs_no_life() {
    let pocket = open(|_| {}).await;
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}});
    create(&pocket, "/api/v1/namespaces/default/events", event).await;
    for i in 0..4 {
        time_passes(Duration::from_mins(15)).await;
        create(&pocket, MAPS, map(&format!("m{i}"), None)).await;
        pocket.store().compact(pocket.store().revision());
    }
    time_passes(Duration::from_mins(1)).await;
    let (status, _) = get(&pocket, "/api/v1/namespaces/default/events/e").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_a_restart_interrupted_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_owned();
    {
        let pocket = open(|options| options.storage = Storage::Folder(place.clone())).await;
        create(&pocket, DEFINITIONS, definition("widgets", "Widget")).await;
        let owner = create(&pocket, MAPS, map("owner", None)).await;
        create(&pocket, MAPS, map("child", Some(&owner))).await;
        create(
            &pocket,
            "/api/v1/namespaces",
            json!({"metadata": {"name": "n"}}),
        )
        .await;
        create(
            &pocket,
            "/apis/example.com/v1/namespaces/n/widgets",
            json!({
                "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}
            }),
        )
        .await;
        delete(&pocket, "/api/v1/namespaces/n").await;
        delete(&pocket, &format!("{MAPS}/owner")).await;
        pocket.close();
    }
    let pocket = open(|options| options.storage = Storage::Folder(place)).await;
    gone(&pocket, &format!("{MAPS}/child")).await;
    gone(&pocket, "/api/v1/namespaces/n").await;
    let (status, list) = get(&pocket, "/apis/example.com/v1/widgets").await;
    assert_eq!((status, &list["items"]), (StatusCode::OK, &json!([])));
    pocket.close();
}

#[tokio::test(start_paused = true)]
async fn every_namespace_is_told_of_the_root_ca() {
    let pocket = open(|options| options.root_ca = Some("-----BEGIN".into())).await;
    create(
        &pocket,
        "/api/v1/namespaces",
        json!({"metadata": {"name": "n"}}),
    )
    .await;
    let path = "/api/v1/namespaces/n/configmaps/kube-root-ca.crt";
    let (status, found) = get(&pocket, path).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(found["data"]["ca.crt"], "-----BEGIN");
    delete(&pocket, path).await;
    time_passes(Duration::from_secs(1)).await;
    assert_eq!(get(&pocket, path).await.0, StatusCode::OK);
    for first in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let path = format!("/api/v1/namespaces/{first}/serviceaccounts/default");
        assert_eq!(get(&pocket, &path).await.0, StatusCode::OK, "{first}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_a_root_ca_has_no_map_of_it() {
    let pocket = open(|_| {}).await;
    time_passes(Duration::from_secs(1)).await;
    let path = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";
    assert_eq!(get(&pocket, path).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn of_two_definitions_made_at_once_one_gets_the_name() {
    let pocket = open(|_| {}).await;
    futures::join!(
        create(&pocket, DEFINITIONS, definition("widgets", "Widget")),
        create(&pocket, DEFINITIONS, definition("gadgets", "Widget")),
    );
    let mut served = 0;
    for plural in ["widgets", "gadgets"] {
        let path = format!("/apis/example.com/v1/namespaces/default/{plural}");
        served += usize::from(get(&pocket, &path).await.0 == StatusCode::OK);
    }
    assert_eq!(served, 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_a_namespace_that_is_written_to_while_it_goes() {
    let pocket = open(|_| {}).await;
    create(
        &pocket,
        "/api/v1/namespaces",
        json!({"metadata": {"name": "n"}}),
    )
    .await;
    let write = async |i: usize| {
        if i == 20 {
            delete(&pocket, "/api/v1/namespaces/n").await;
        }
        let service =
            json!({"metadata": {"name": format!("s{i}")}, "spec": {"ports": [{"port": 80}]}});
        let _ = ask(
            &pocket,
            Method::POST,
            "/api/v1/namespaces/n/services",
            service,
        )
        .await;
        let object = json!({"metadata": {"name": format!("m{i}")}});
        let _ = ask(
            &pocket,
            Method::POST,
            "/api/v1/namespaces/n/configmaps",
            object,
        )
        .await;
    };
    futures::future::join_all((0..40).map(write)).await;
    gone(&pocket, "/api/v1/namespaces/n").await;
    time_passes(Duration::from_secs(1)).await;
    let (_, everything) = pocket.store().everything();
    let left: Vec<_> = everything
        .iter()
        .filter(|(_, path, _)| path.starts_with("n/"))
        .map(|(resource, path, _)| format!("{resource} {path}"))
        .collect();
    assert_eq!(left, [""; 0]);
}

fn gadget(name: &str) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Gadget",
        "metadata": {"name": name, "namespace": "default", "uid": name},
    })
}

#[tokio::test(start_paused = true)]
async fn an_object_that_nothing_defines_is_removed() {
    let pocket = open(|_| {}).await;
    // As by a create that was running while the definition was removed.
    let late = gadget("late");
    let written = pocket.store().write(
        "example.com/gadgets",
        "default/late",
        Expect::Absent,
        Put::Object(&late),
        jiff::Timestamp::UNIX_EPOCH,
    );
    written.await.unwrap();
    for _ in 0..200 {
        if pocket.store().count("example.com/gadgets") == 0 {
            return;
        }
        time_passes(Duration::from_millis(50)).await;
    }
    panic!("it is still there");
}

#[tokio::test(start_paused = true)]
async fn defined_objects_outlive_a_restart_of_housekeeping() {
    let pocket = open(|_| {}).await;
    create(&pocket, DEFINITIONS, definition("gadgets", "Gadget")).await;
    let path = "/apis/example.com/v1/namespaces/default/gadgets";
    create(&pocket, path, gadget("g")).await;
    let again = open(|options| options.storage = Storage::Store(pocket.store().fork())).await;
    time_passes(Duration::from_mins(1)).await;
    assert_eq!(get(&again, &format!("{path}/g")).await.0, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_definition_gets_the_names_that_another_let_go() {
    let pocket = open(|_| {}).await;
    let named = |plural: &str, kind: &str| {
        let mut definition = definition(plural, kind);
        definition["spec"]["names"]["shortNames"] = json!(["gd"]);
        definition
    };
    create(&pocket, DEFINITIONS, named("gadgets", "Gadget")).await;
    create(&pocket, DEFINITIONS, named("gizmos", "Gizmo")).await;
    let gizmos = "/apis/example.com/v1/namespaces/default/gizmos";
    assert_eq!(get(&pocket, gizmos).await.0, StatusCode::NOT_FOUND);
    let first = format!("{DEFINITIONS}/gadgets.example.com");
    let change = json!({"spec": {"names": {"shortNames": null}}});
    let (status, _) = ask(&pocket, Method::PATCH, &first, change).await;
    assert_eq!(status, StatusCode::OK);
    for _ in 0..200 {
        if get(&pocket, gizmos).await.0 == StatusCode::OK {
            return;
        }
        time_passes(Duration::from_millis(50)).await;
    }
    panic!("the second definition is not served");
}
