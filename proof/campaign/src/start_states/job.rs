//! Pods of a Job: finished and not counted, finished twice, failed, orphaned, without a finalizer,
//! or foreign.

use neap_trial::{
    Workload,
    generate::SeededRng,
    start_states::{StartState, StartStates},
};
use serde_json::{Value, json};

use super::parts::{
    foreign_owner, foreign_owner_ref, happens, is_kind, owner, path, pod, with_status,
};
use crate::world::job::indexed;

pub(super) fn start_states(workload: Workload) -> StartStates {
    StartStates::new(workload, make).counting(counts)
}

const TRACKING: &str = "batch.kubernetes.io/job-tracking";

fn make(rng: &mut SeededRng) -> StartState {
    let completions = 1 + rng.below(3);
    let spec = json!({"completions": completions, "parallelism": 1 + rng.below(2)});
    let declared = vec![indexed("good", spec)];
    let mut leftovers = vec![foreign_owner()];
    let mine = owner("batch/v1", "Job", "good", &path("batch/v1", "jobs", "good"));
    for number in 0..rng.below(5) {
        let index = rng.below(completions + 1).to_string();
        let mut pod = pod(
            &format!("good-{index}-{number}"),
            "good",
            "app",
            Some(mine.clone()),
        );
        pod["metadata"]["labels"] = json!({
            "fate": "good", "batch.kubernetes.io/job-name": "good", "job-name": "good",
            "batch.kubernetes.io/controller-uid": format!("@{}", path("batch/v1", "jobs", "good")),
            "batch.kubernetes.io/job-completion-index": index,
        });
        pod["metadata"]["annotations"] = json!({"batch.kubernetes.io/job-completion-index": index});
        pod["spec"]["restartPolicy"] = "Never".into();
        if happens(rng, 80) {
            pod["metadata"]["finalizers"] = json!([TRACKING]);
        }
        match rng.below(6) {
            0 => pod["status"] = json!({"phase": "Succeeded"}),
            1 if number < 2 => pod["status"] = json!({"phase": "Failed"}),
            2 => {
                pod["metadata"]["name"] = format!("foreign-{number}").into();
                pod["metadata"]["ownerReferences"] = json!([foreign_owner_ref()]);
                pod["metadata"]["finalizers"] = json!([]);
                pod["metadata"]["labels"] = json!({"fate": "good"});
            }
            3 => pod["metadata"]["deletionTimestamp"] = "now".into(),
            _ => {}
        }
        leftovers.push(pod);
    }
    if happens(rng, 50) {
        let status = json!({"startTime": "2026-01-01T00:00:00Z", "active": rng.below(3)});
        leftovers.push(with_status(&declared[0], &status));
    }
    StartState {
        declared,
        leftovers,
    }
}

/// A Job is compared by whether it is complete, and which indexes.
fn counts(place: &str, object: &mut Value) -> Option<String> {
    if !is_kind(place, "batch/jobs") {
        return None;
    }
    let status = &object["status"];
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let conditions: Vec<_> = conditions.map(|one| &one["type"]).collect();
    *object = json!({
        "succeeded": status["succeeded"], "completedIndexes": status["completedIndexes"],
        "conditions": conditions, "uncounted": status["uncountedTerminatedPods"],
        "active": status["active"],
    });
    Some(place.to_owned())
}
