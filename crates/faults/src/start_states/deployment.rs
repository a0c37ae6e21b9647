//! ReplicaSets and pods of a Deployment: of this template and older ones, lost, too many, another's.

use neap_trial::{
    Workload,
    generate::Chance,
    starts::{Start, Starts},
};
use serde_json::{Value, json};

use super::parts::{
    counted, failed, going, happens, is, is_failed, of_stranger, owner, path, pod, said, stale,
    stranger,
};
use crate::world::web;

pub(super) fn starts(workload: Workload) -> Starts {
    Starts::new(workload, make).counting(counts)
}

fn make(chance: &mut Chance) -> Start {
    let mut deployment = web("Deployment", chance.below(4) as u32);
    if happens(chance, 20) {
        deployment["spec"]["strategy"] = json!({"type": "Recreate"});
    }
    let declared = vec![deployment];
    let mut remains = vec![stranger()];
    if happens(chance, 50) {
        let counts = [
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
        ];
        remains.push(said(&declared[0], &stale(chance, &counts)));
    }
    for number in 0..chance.below(4) {
        let image = ["app:1", "app:0", "app:00"][number.min(2)];
        set(chance, number, image, &mut remains);
    }
    if happens(chance, 20) {
        let mut foreign = web("ReplicaSet", 0);
        foreign["metadata"]["name"] = "foreign-set".into();
        foreign["metadata"]["labels"] = json!({"app": "web"});
        foreign["metadata"]["ownerReferences"] = json!([of_stranger()]);
        remains.push(foreign);
    }
    Start { declared, remains }
}

fn set(chance: &mut Chance, number: usize, image: &str, remains: &mut Vec<Value>) {
    let name = format!("web-{number}");
    let labels = json!({"app": "web", "pod-template-hash": number.to_string()});
    let mut set = web("ReplicaSet", chance.below(4) as u32);
    set["metadata"]["name"] = name.clone().into();
    set["metadata"]["labels"] = labels.clone();
    set["spec"]["selector"]["matchLabels"] = labels.clone();
    set["spec"]["template"]["metadata"]["labels"] = labels.clone();
    set["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
    if happens(chance, 70) {
        let deployment = path("apps/v1", "deployments", "web");
        let mine = owner("apps/v1", "Deployment", "web", &deployment);
        set["metadata"]["ownerReferences"] = json!([mine]);
    }
    if happens(chance, 50) {
        let number = chance.below(9).to_string();
        set["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": number});
    }
    if happens(chance, 50) {
        set["status"] = stale(chance, &["replicas", "readyReplicas", "availableReplicas"]);
    }
    remains.push(set);
    let mine = owner(
        "apps/v1",
        "ReplicaSet",
        &name,
        &path("apps/v1", "replicasets", &name),
    );
    for part in 0..chance.below(4) {
        let own = happens(chance, 80).then(|| mine.clone());
        let mut pod = pod(&format!("{name}-{part}"), "web", image, own);
        pod["metadata"]["labels"] = labels.clone();
        remains.push(match chance.below(6) {
            0 => going(pod),
            1 => failed(pod),
            _ => pod,
        });
    }
}

/// Which ReplicaSet it is does not matter, nor what is said of how it came about.
fn counts(place: &str, object: &mut Value) -> Option<String> {
    if is(place, "/configmaps") || is(place, "/pods") && is_failed(object) {
        return None;
    }
    if is(place, "/pods") {
        *object = counted(object);
        return Some("/pods".to_owned());
    }
    if is(place, "apps/replicasets") {
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
