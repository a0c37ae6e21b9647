//! Pods of a DaemonSet: missing, two on a node, on nodes that are gone, of an older template.

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
use crate::world::daemon_set::agent;

pub(super) fn starts(workload: Workload) -> Starts {
    Starts::new(workload, make).counting(counts)
}

fn make(chance: &mut Chance) -> Start {
    let mut agent = agent();
    if happens(chance, 30) {
        agent["spec"]["updateStrategy"] =
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}});
    }
    let declared = vec![agent];
    let mut remains = vec![stranger()];
    if happens(chance, 50) {
        let mut status = stale(
            chance,
            &[
                "desiredNumberScheduled",
                "currentNumberScheduled",
                "numberReady",
            ],
        );
        status["numberMisscheduled"] = chance.below(3).into();
        status["observedGeneration"] = chance.below(2).into();
        remains.push(said(&declared[0], &status));
    }
    let mine = owner(
        "apps/v1",
        "DaemonSet",
        "agent",
        &path("apps/v1", "daemonsets", "agent"),
    );
    for number in 0..chance.below(6) {
        let own = happens(chance, 80).then(|| mine.clone());
        let mut pod = pod(&format!("agent-{number}"), "agent", "app:0", own);
        pod["metadata"]["labels"]["controller-revision-hash"] = "old".into();
        pod["spec"]["nodeName"] = ["one", "two", "gone"][chance.below(3)].into();
        pod["spec"]["nodeSelector"] = json!({"disk": "ssd"});
        if happens(chance, 15) {
            pod["metadata"]["name"] = format!("foreign-{number}").into();
            pod["metadata"]["ownerReferences"] = json!([of_stranger()]);
        }
        remains.push(match chance.below(6) {
            0 if pod["metadata"]["name"] == format!("agent-{number}") => {
                let node = pod["spec"]["nodeName"].clone();
                let mut pod = going(pod);
                pod["spec"]["nodeName"] = node;
                pod
            }
            1 => failed(pod),
            _ => pod,
        });
    }
    Start { declared, remains }
}

fn counts(place: &str, object: &mut Value) -> Option<String> {
    if is(place, "/configmaps") {
        return None;
    }
    if is(place, "/pods") && !is_failed(object) {
        *object = counted(object);
    }
    Some(place.to_owned())
}
