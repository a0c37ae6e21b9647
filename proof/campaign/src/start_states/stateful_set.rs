//! Members of a StatefulSet: missing, of an older revision, orphaned, beyond its size, being
//! deleted.

use neap_trial::{
    Workload,
    generate::SeededRng,
    start_states::{StartState, StartStates},
};
use serde_json::{Value, json};

use super::parts::{deleting, failed, happens, is_kind, owner, path, pod, stale, with_status};
use crate::world::stateful_set::store;

pub(super) fn start_states(workload: Workload) -> StartStates {
    StartStates::new(workload, make).counting(|place, object| {
        if is_kind(place, "/persistentvolumeclaims") {
            forget_owner(object);
        }
        Some(place.to_owned())
    })
}

fn make(rng: &mut SeededRng) -> StartState {
    let replicas = rng.below(4);
    let mut store = store();
    store["spec"]["replicas"] = replicas.into();
    if happens(rng, 30) {
        store["spec"]["podManagementPolicy"] = "Parallel".into();
    }
    let declared = vec![store];
    let mut leftovers = Vec::new();
    let mine = owner(
        "apps/v1",
        "StatefulSet",
        "store",
        &path("apps/v1", "statefulsets", "store"),
    );
    for number in 0..4 {
        let within = number < replicas;
        if within && happens(rng, 50) {
            leftovers.push(claim(number, happens(rng, 50).then(|| mine.clone())));
        }
        if happens(rng, if within { 60 } else { 30 }) {
            let own = happens(rng, 80).then(|| mine.clone());
            leftovers.push(member(rng, number, own));
        }
    }
    if happens(rng, 40) {
        leftovers.push(revision(rng, &declared[0], &mine));
    }
    if happens(rng, 50) {
        let counts = ["replicas", "readyReplicas", "availableReplicas"];
        let mut status = stale(rng, &counts);
        status["currentRevision"] = "store-old".into();
        status["updateRevision"] = ["store-old", "store-other"][rng.below(2)].into();
        status["observedGeneration"] = rng.below(2).into();
        leftovers.push(with_status(&declared[0], &status));
    }
    StartState {
        declared,
        leftovers,
    }
}

/// A revision of an older template, or of this one under another name.
fn revision(rng: &mut SeededRng, store: &Value, owner: &Value) -> Value {
    let mut template = store["spec"]["template"].clone();
    if happens(rng, 60) {
        template["spec"]["containers"][0]["image"] = "app:0".into();
    }
    let owners: Vec<_> = happens(rng, 70).then_some(owner).into_iter().collect();
    json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {
            "name": "store-old", "namespace": "default", "ownerReferences": owners,
            "labels": {"app": "store", "controller.kubernetes.io/hash": "old"},
        },
        "revision": 1 + rng.below(3),
        "data": {"spec": {"template": template}},
    })
}

fn claim(number: usize, owner: Option<Value>) -> Value {
    let owners: Vec<_> = owner.into_iter().collect();
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": format!("data-store-{number}"), "namespace": "default",
            "labels": {"app": "store"}, "ownerReferences": owners,
        },
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    })
}

fn member(rng: &mut SeededRng, number: usize, owner: Option<Value>) -> Value {
    let name = format!("store-{number}");
    let mut member = pod(&name, "store", "app:0", owner);
    member["metadata"]["labels"] = json!({
        "app": "store", "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": number.to_string(),
        "controller-revision-hash": "store-old",
    });
    member["spec"]["hostname"] = name.into();
    let claim = json!({"claimName": format!("data-store-{number}")});
    member["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": claim}]);
    match rng.below(6) {
        0 => deleting(member),
        1 => failed(member),
        _ => member,
    }
}

/// The owner of a claim depends on who created it.
fn forget_owner(claim: &mut Value) {
    *claim = json!({"spec": claim["spec"]});
}
