//! Writes that lose a race between reading and storing.

use std::sync::Arc;

use http::StatusCode;
use neap_oracles::{ObservedService, Observer};
use neap_pocket::{
    Options, Pocket, Storage,
    environment::Environment,
    status::ApiError,
    store::{Access, HookFuture, Hooks, Store, journal::FolderDisk},
    wire::Service,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::support::chronicle::chronicle;
use crate::support::raw::{map, send};
use crate::support::slow_disk::{Permit, SlowDisk};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const X: &str = "/api/v1/namespaces/default/configmaps/x";

/// Holds each write back until it is let through.
struct Gate {
    arrived: Semaphore,
    open: Semaphore,
}

impl Hooks for Gate {
    fn before_write<'a>(&'a self, _: Access<'a>) -> HookFuture<'a, Result<(), ApiError>> {
        Box::pin(async {
            self.arrived.add_permits(1);
            self.open.acquire().await.unwrap().forget();
            Ok(())
        })
    }
}

/// The response to a request that read its object, and then was overtaken by another.
async fn overtaken(
    (method, body): (&str, fn(Value) -> Value),
    by: (&str, Option<Value>),
) -> (StatusCode, Value) {
    let options = Options::new(Environment::simulated(9));
    let pocket = Pocket::open(options).await.unwrap();
    let observer = Observer::new();
    let gate = Arc::new(Gate {
        arrived: Semaphore::new(0),
        open: Semaphore::new(0),
    });
    let slow = pocket.service_over(pocket.view(Some(gate.clone())));
    let slow = ObservedService::new(slow, &observer, "slow");
    let fast = ObservedService::new(pocket.service(), &observer, "fast");
    let (_, seen) = send(&fast, "POST", MAPS, Some(map("x"))).await;
    let race = async {
        gate.arrived.acquire().await.unwrap().forget();
        let (status, body) = send(&fast, by.0, X, by.1).await;
        assert!(status.is_success(), "{body}");
        gate.open.add_permits(9);
    };
    let (answer, ()) = tokio::join!(send(&slow, method, X, Some(body(seen))), race);
    let _ = observer.finish(&chronicle(&pocket));
    answer
}

fn other_patch() -> (&'static str, Option<Value>) {
    ("PATCH", Some(json!({"data": {"other": "1"}})))
}

#[tokio::test(start_paused = true)]
async fn an_update_of_an_object_that_vanished_meanwhile_finds_nothing() {
    let change = |mut seen: Value| {
        seen["data"] = json!({"mine": "1"});
        seen
    };
    let (status, _) = overtaken(("PUT", change), ("DELETE", None)).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = overtaken(("PUT", change), other_patch()).await;
    assert_eq!(status, StatusCode::CONFLICT);
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_names_no_state_is_applied_to_whatever_is_there() {
    let patch = |_| json!({"data": {"mine": "1"}});
    let (status, object) = overtaken(("PATCH", patch), other_patch()).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(object["data"], json!({"mine": "1", "other": "1"}));
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_names_a_state_holds_to_it() {
    let patch = |seen: Value| {
        let revision = &seen["metadata"]["resourceVersion"];
        json!({"metadata": {"resourceVersion": revision}, "data": {"mine": "1"}})
    };
    let (status, _) = overtaken(("PATCH", patch), other_patch()).await;
    assert_eq!(status, StatusCode::CONFLICT);
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEFINED: &str = "apiextensions.k8s.io/customresourcedefinitions";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// A server on a disk that syncs when it is allowed to, and a client of it.
struct SlowServer {
    pocket: Pocket,
    client: ObservedService<Service>,
    permit: Permit,
    _folder: tempfile::TempDir,
}

impl SlowServer {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let permit = Permit::default();
        permit.set(true);
        let mut options = Options::new(Environment::simulated(9));
        options.storage = Storage::Disk(Box::new(SlowDisk {
            folder: FolderDisk::open(folder.path()).unwrap(),
            permit: permit.clone(),
        }));
        let pocket = Pocket::open(options).await.unwrap();
        let client = ObservedService::new(pocket.service(), &Observer::new(), "one");
        Self {
            pocket,
            client,
            permit,
            _folder: folder,
        }
    }

    fn store(&self) -> &Store {
        self.pocket.store()
    }

    /// Sends a request and cancels it as soon as its write has a revision.
    async fn abandon(
        &self,
        (bucket, path): (&str, &str),
        method: &str,
        uri: &str,
        body: Option<Value>,
    ) {
        let newest = || self.store().head(bucket, path).map(|head| head.revision);
        let before = newest();
        let mut request = Box::pin(send(&self.client, method, uri, body));
        while newest() == before {
            assert!(futures::poll!(&mut request).is_pending());
            tokio::task::yield_now().await;
        }
    }

    async fn settle(&self) {
        let store = self.store();
        store.settled(store.sequenced()).await.unwrap();
    }

    async fn get(&self, uri: &str) -> Value {
        send(&self.client, "GET", uri, None).await.1
    }

    /// The served custom resources.
    async fn served(&self) -> Vec<String> {
        let list = self.get("/apis/example.com/v1").await;
        let names = list["resources"].as_array().into_iter().flatten();
        names
            .map(|resource| resource["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com",
            "names": {"plural": plural, "kind": kind},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    })
}

fn service(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}})
}

#[tokio::test]
async fn what_is_served_follows_definitions_whose_clients_went_away() {
    let slow = SlowServer::open().await;
    let old = definition("gadgets", "Gadget");
    let (status, _) = send(&slow.client, "POST", DEFINITIONS, Some(old)).await;
    assert_eq!(status, StatusCode::CREATED);
    assert_eq!(slow.served().await, ["gadgets"]);
    slow.permit.set(false);
    for (plural, kind) in [("widgets", "Widget"), ("wigs", "Widget")] {
        let path = format!("{plural}.example.com");
        let body = Some(definition(plural, kind));
        slow.abandon((DEFINED, &path), "POST", DEFINITIONS, body)
            .await;
    }
    let gadgets = format!("{DEFINITIONS}/gadgets.example.com");
    let place = (DEFINED, "gadgets.example.com");
    slow.abandon(place, "DELETE", &gadgets, None).await;
    assert_eq!(slow.served().await, ["gadgets"]);
    slow.permit.set(true);
    slow.settle().await;
    let mut committed = slow.store().committed();
    while slow.store().head(place.0, place.1).is_some() {
        committed.changed().await.unwrap();
    }
    assert_eq!(slow.served().await, ["widgets"]);
    // The second definition wanted a kind that the first was about to have.
    let wigs = slow.get(&format!("{DEFINITIONS}/wigs.example.com")).await;
    let conditions = wigs["status"]["conditions"].as_array().unwrap();
    let accepted = conditions.iter().find(|c| c["type"] == "NamesAccepted");
    assert_eq!(accepted.unwrap()["status"], "False");
    slow.pocket.close();
}

#[tokio::test]
async fn services_whose_clients_went_away_have_different_addresses() {
    let slow = SlowServer::open().await;
    slow.permit.set(false);
    for name in ["a", "b"] {
        let path = format!("default/{name}");
        slow.abandon(("/services", &path), "POST", SERVICES, Some(service(name)))
            .await;
    }
    slow.permit.set(true);
    slow.settle().await;
    let a = slow.get(&format!("{SERVICES}/a")).await;
    let b = slow.get(&format!("{SERVICES}/b")).await;
    assert!(a["spec"]["clusterIP"].is_string(), "{a}");
    assert_ne!(a["spec"]["clusterIP"], b["spec"]["clusterIP"]);
    slow.pocket.close();
}

#[tokio::test]
async fn writes_that_hand_nothing_out_share_a_sync() {
    const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";
    let slow = SlowServer::open().await;
    slow.permit.set(false);
    let mut writes: Vec<_> = ["a", "b", "c"]
        .map(|name| Box::pin(send(&slow.client, "POST", ENDPOINTS, Some(map(name)))))
        .into();
    let sequenced = |name| {
        let head = slow.store().head("/endpoints", &format!("default/{name}"));
        head.is_some()
    };
    while !["a", "b", "c"].into_iter().all(sequenced) {
        for write in &mut writes {
            assert!(futures::poll!(write).is_pending());
        }
        tokio::task::yield_now().await;
    }
    slow.permit.set(true);
    for (status, body) in futures::future::join_all(writes).await {
        assert_eq!(status, StatusCode::CREATED, "{body}");
    }
    slow.pocket.close();
}

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(name: &str) -> Value {
    let container = json!({"name": "c", "image": "i"});
    json!({"metadata": {"name": name}, "spec": {"containers": [container]}})
}

#[tokio::test]
async fn a_refusal_waits_for_the_object_it_rests_on() {
    let slow = SlowServer::open().await;
    slow.permit.set(false);
    let mut first = service("a");
    first["spec"]["clusterIP"] = json!("10.0.0.77");
    let mut second = first.clone();
    second["metadata"]["name"] = json!("b");
    slow.abandon(("/services", "default/a"), "POST", SERVICES, Some(first))
        .await;
    let mut refused = Box::pin(send(&slow.client, "POST", SERVICES, Some(second)));
    // Long enough for everything but the disk.
    for _ in 0..100 {
        assert!(futures::poll!(&mut refused).is_pending());
        tokio::task::yield_now().await;
    }
    slow.permit.set(true);
    let (status, body) = refused.await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    let first = slow.get(&format!("{SERVICES}/a")).await;
    assert_eq!(first["spec"]["clusterIP"], "10.0.0.77");
    slow.pocket.close();
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_names_a_state_holds_to_it() {
    let options = Options::new(Environment::simulated(9));
    let pocket = Pocket::open(options).await.unwrap();
    let client = ObservedService::new(pocket.service(), &Observer::new(), "one");
    let (_, seen) = send(&client, "POST", PODS, Some(pod("p"))).await;
    let bind = async |metadata: Value| {
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"kind": "Node", "name": "n"},
        });
        let uri = format!("{PODS}/p/binding");
        send(&client, "POST", &uri, Some(binding)).await
    };
    let uid = &seen["metadata"]["uid"];
    let revision = &seen["metadata"]["resourceVersion"];
    let others = [
        (
            json!({"name": "p", "uid": "another"}),
            format!(
                "UID in precondition: another, UID in object meta: {}",
                uid.as_str().unwrap()
            ),
        ),
        (
            json!({"name": "p", "resourceVersion": "1"}),
            format!(
                "ResourceVersion in precondition: 1, ResourceVersion in object meta: {}",
                revision.as_str().unwrap()
            ),
        ),
    ];
    for (other, why) in others {
        let (status, body) = bind(other.clone()).await;
        assert_eq!(status, StatusCode::CONFLICT, "{other}: {body}");
        assert_eq!(
            body["message"],
            format!(
                "Operation cannot be fulfilled on pods \"p\": StorageError: invalid object, Code: 4, \
                 Key: /registry/pods/default/p, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {why}"
            )
        );
    }
    let (status, body) = bind(json!({"name": "p", "uid": uid, "resourceVersion": revision})).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_grew_too_large_is_refused_with_its_size() {
    let options = Options::new(Environment::simulated(9));
    let pocket = Pocket::open(options).await.unwrap();
    let client = ObservedService::new(pocket.service(), &Observer::new(), "one");
    let mut custom = definition("widgets", "Widget");
    let schema = &mut custom["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    send(&client, "POST", DEFINITIONS, Some(custom)).await;
    let uri = "/apis/example.com/v1/namespaces/default/widgets";
    let half = "x".repeat(2 << 20);
    let body = json!({
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "a": half,
    });
    let (status, _) = send(&client, "POST", uri, Some(body)).await;
    assert_eq!(status, StatusCode::CREATED);
    for query in ["", "?dryRun=All"] {
        let uri = format!("{uri}/w{query}");
        let (status, body) = send(&client, "PATCH", &uri, Some(json!({"b": half}))).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{query}");
        assert_eq!(body["reason"], "RequestEntityTooLarge");
        let message = body["message"].as_str().unwrap();
        assert!(message.contains("3145728"), "{message}");
    }
}
