//! ReplicaSets and pods of a Deployment: of this template and older ones, orphaned, surplus,
//! foreign.

use neap_trial::{
    Workload,
    generate::SeededRng,
    start_states::{StartState, StartStates},
};
use serde_json::{Value, json};

use super::parts::{
    compared_pod, deleting, failed, foreign_owner, foreign_owner_ref, happens, is_failed, is_kind,
    owner, path, pod, stale, with_status,
};
use crate::world::web;

pub(super) fn start_states(workload: Workload) -> StartStates {
    StartStates::new(workload, make).counting(counts)
}

fn make(rng: &mut SeededRng) -> StartState {
    let mut deployment = web("Deployment", rng.below(4) as u32);
    if happens(rng, 20) {
        deployment["spec"]["strategy"] = json!({"type": "Recreate"});
    }
    let declared = vec![deployment];
    let mut leftovers = vec![foreign_owner()];
    if happens(rng, 50) {
        let counts = [
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
        ];
        leftovers.push(with_status(&declared[0], &stale(rng, &counts)));
    }
    for number in 0..rng.below(4) {
        let image = ["app:1", "app:0", "app:00"][number.min(2)];
        set(rng, number, image, &mut leftovers);
    }
    if happens(rng, 20) {
        let mut foreign = web("ReplicaSet", 0);
        foreign["metadata"]["name"] = "foreign-set".into();
        foreign["metadata"]["labels"] = json!({"app": "web"});
        foreign["metadata"]["ownerReferences"] = json!([foreign_owner_ref()]);
        leftovers.push(foreign);
    }
    StartState {
        declared,
        leftovers,
    }
}

fn set(rng: &mut SeededRng, number: usize, image: &str, leftovers: &mut Vec<Value>) {
    let name = format!("web-{number}");
    let labels = json!({"app": "web", "pod-template-hash": number.to_string()});
    let mut set = web("ReplicaSet", rng.below(4) as u32);
    set["metadata"]["name"] = name.clone().into();
    set["metadata"]["labels"] = labels.clone();
    set["spec"]["selector"]["matchLabels"] = labels.clone();
    set["spec"]["template"]["metadata"]["labels"] = labels.clone();
    set["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
    if happens(rng, 70) {
        let deployment = path("apps/v1", "deployments", "web");
        let mine = owner("apps/v1", "Deployment", "web", &deployment);
        set["metadata"]["ownerReferences"] = json!([mine]);
    }
    if happens(rng, 50) {
        let number = rng.below(9).to_string();
        set["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": number});
    }
    if happens(rng, 50) {
        set["status"] = stale(rng, &["replicas", "readyReplicas", "availableReplicas"]);
    }
    leftovers.push(set);
    let mine = owner(
        "apps/v1",
        "ReplicaSet",
        &name,
        &path("apps/v1", "replicasets", &name),
    );
    for part in 0..rng.below(4) {
        let own = happens(rng, 80).then(|| mine.clone());
        let mut pod = pod(&format!("{name}-{part}"), "web", image, own);
        pod["metadata"]["labels"] = labels.clone();
        leftovers.push(match rng.below(6) {
            0 => deleting(pod),
            1 => failed(pod),
            _ => pod,
        });
    }
}

/// Neither the name of a ReplicaSet matters, nor the messages of conditions.
fn counts(place: &str, object: &mut Value) -> Option<String> {
    if is_kind(place, "/configmaps") || is_kind(place, "/pods") && is_failed(object) {
        return None;
    }
    if is_kind(place, "/pods") {
        *object = compared_pod(object);
        return Some("/pods".to_owned());
    }
    if is_kind(place, "apps/replicasets") {
        let image = &object["spec"]["template"]["spec"]["containers"][0]["image"];
        *object = json!({"replicas": object["spec"]["replicas"], "image": image, "status": object["status"]});
        return Some("apps/replicasets".to_owned());
    }
    let conditions = object.pointer_mut("/status/conditions");
    for condition in conditions
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        condition["message"] = Value::Null;
    }
    Some(place.to_owned())
}
