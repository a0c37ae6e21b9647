//! Members of a StatefulSet: missing, of an older revision, lost, beyond its size, on their way out.

use neap_trial::{
    Workload,
    generate::Chance,
    starts::{Start, Starts},
};
use serde_json::{Value, json};

use super::parts::{failed, going, happens, is, owner, path, pod};
use crate::world::stateful_set::store;

pub(super) fn starts(workload: Workload) -> Starts {
    Starts {
        workload,
        make,
        counts,
        wrong: |_| None,
    }
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
    Start { declared, remains }
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

/// What is left of members that are too many is not looked at; neither is who counted what.
fn counts(place: &str, object: &mut Value) -> Option<String> {
    if is(place, "/persistentvolumeclaims") {
        *object = json!({"spec": object["spec"]});
    }
    Some(place.to_owned())
}
