//! Pods of a DaemonSet: missing, two on a node, on deleted nodes, of an older template.

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
use crate::world::daemon_set::agent;

pub(super) fn start_states(workload: Workload) -> StartStates {
    StartStates::new(workload, make).counting(counts)
}

fn make(rng: &mut SeededRng) -> StartState {
    let mut agent = agent();
    if happens(rng, 30) {
        agent["spec"]["updateStrategy"] =
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}});
    }
    let declared = vec![agent];
    let mut leftovers = vec![foreign_owner()];
    if happens(rng, 50) {
        let mut status = stale(
            rng,
            &[
                "desiredNumberScheduled",
                "currentNumberScheduled",
                "numberReady",
            ],
        );
        status["numberMisscheduled"] = rng.below(3).into();
        status["observedGeneration"] = rng.below(2).into();
        leftovers.push(with_status(&declared[0], &status));
    }
    let mine = owner(
        "apps/v1",
        "DaemonSet",
        "agent",
        &path("apps/v1", "daemonsets", "agent"),
    );
    for number in 0..rng.below(6) {
        let own = happens(rng, 80).then(|| mine.clone());
        let mut pod = pod(&format!("agent-{number}"), "agent", "app:0", own);
        pod["metadata"]["labels"]["controller-revision-hash"] = "old".into();
        pod["spec"]["nodeName"] = ["one", "two", "gone"][rng.below(3)].into();
        pod["spec"]["nodeSelector"] = json!({"disk": "ssd"});
        if happens(rng, 15) {
            pod["metadata"]["name"] = format!("foreign-{number}").into();
            pod["metadata"]["ownerReferences"] = json!([foreign_owner_ref()]);
        }
        leftovers.push(match rng.below(6) {
            0 if pod["metadata"]["name"] == format!("agent-{number}") => {
                let node = pod["spec"]["nodeName"].clone();
                let mut pod = deleting(pod);
                pod["spec"]["nodeName"] = node;
                pod
            }
            1 => failed(pod),
            _ => pod,
        });
    }
    StartState {
        declared,
        leftovers,
    }
}

fn counts(place: &str, object: &mut Value) -> Option<String> {
    if is_kind(place, "/configmaps") {
        return None;
    }
    if is_kind(place, "/pods") && !is_failed(object) {
        *object = compared_pod(object);
    }
    Some(place.to_owned())
}
