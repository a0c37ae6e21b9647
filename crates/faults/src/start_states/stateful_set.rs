//! Members of a StatefulSet: missing, of an older revision, lost, beyond its size, on their way out.

use neap_trial::{
    Workload,
    generate::Chance,
    starts::{Start, Starts},
};
use serde_json::{Value, json};

use super::parts::{failed, going, happens, is, owner, path, pod, said, stale};
use crate::world::stateful_set::store;

pub(super) fn starts(workload: Workload) -> Starts {
    Starts::new(workload, make).counting(|place, object| {
        if is(place, "/persistentvolumeclaims") {
            forget_owner(object);
        }
        Some(place.to_owned())
    })
}

fn make(chance: &mut Chance) -> Start {
    let replicas = chance.below(4);
    let mut store = store();
    store["spec"]["replicas"] = replicas.into();
    if happens(chance, 30) {
        store["spec"]["podManagementPolicy"] = "Parallel".into();
    }
    let declared = vec![store];
    let mut remains = Vec::new();
    let mine = owner(
        "apps/v1",
        "StatefulSet",
        "store",
        &path("apps/v1", "statefulsets", "store"),
    );
    for number in 0..4 {
        let within = number < replicas;
        if within && happens(chance, 50) {
            remains.push(claim(number, happens(chance, 50).then(|| mine.clone())));
        }
        if happens(chance, if within { 60 } else { 30 }) {
            let own = happens(chance, 80).then(|| mine.clone());
            remains.push(member(chance, number, own));
        }
    }
    if happens(chance, 40) {
        remains.push(revision(chance, &declared[0], &mine));
    }
    if happens(chance, 50) {
        let counts = ["replicas", "readyReplicas", "availableReplicas"];
        let mut status = stale(chance, &counts);
        status["currentRevision"] = "store-old".into();
        status["updateRevision"] = ["store-old", "store-other"][chance.below(2)].into();
        status["observedGeneration"] = chance.below(2).into();
        remains.push(said(&declared[0], &status));
    }
    Start { declared, remains }
}

/// A revision of an older template, or of this one under another name.
fn revision(chance: &mut Chance, store: &Value, owner: &Value) -> Value {
    let mut template = store["spec"]["template"].clone();
    if happens(chance, 60) {
        template["spec"]["containers"][0]["image"] = "app:0".into();
    }
    let owners: Vec<_> = happens(chance, 70).then_some(owner).into_iter().collect();
    json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {
            "name": "store-old", "namespace": "default", "ownerReferences": owners,
            "labels": {"app": "store", "controller.kubernetes.io/hash": "old"},
        },
        "revision": 1 + chance.below(3),
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

fn member(chance: &mut Chance, number: usize, owner: Option<Value>) -> Value {
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
    match chance.below(6) {
        0 => going(member),
        1 => failed(member),
        _ => member,
    }
}

/// Whose a claim is depends on who made it.
fn forget_owner(claim: &mut Value) {
    *claim = json!({"spec": claim["spec"]});
}
