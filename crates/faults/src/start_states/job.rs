//! Pods of a Job: done and not counted, done twice, failed, lost, without a mark, or another's.

use neap_trial::{
    Workload,
    generate::Chance,
    starts::{Start, Starts},
};
use serde_json::{Value, json};

use super::parts::{happens, is, of_stranger, owner, path, pod, said, stranger};
use crate::world::job::indexed;

pub(super) fn starts(workload: Workload) -> Starts {
    Starts::new(workload, make).counting(counts)
}

const TRACKING: &str = "batch.kubernetes.io/job-tracking";

fn make(chance: &mut Chance) -> Start {
    let completions = 1 + chance.below(3);
    let spec = json!({"completions": completions, "parallelism": 1 + chance.below(2)});
    let declared = vec![indexed("good", spec)];
    let mut remains = vec![stranger()];
    let mine = owner("batch/v1", "Job", "good", &path("batch/v1", "jobs", "good"));
    for number in 0..chance.below(5) {
        let index = chance.below(completions + 1).to_string();
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
        if happens(chance, 80) {
            pod["metadata"]["finalizers"] = json!([TRACKING]);
        }
        match chance.below(6) {
            0 => pod["status"] = json!({"phase": "Succeeded"}),
            1 if number < 2 => pod["status"] = json!({"phase": "Failed"}),
            2 => {
                pod["metadata"]["name"] = format!("foreign-{number}").into();
                pod["metadata"]["ownerReferences"] = json!([of_stranger()]);
                pod["metadata"]["finalizers"] = json!([]);
                pod["metadata"]["labels"] = json!({"fate": "good"});
            }
            3 => pod["metadata"]["deletionTimestamp"] = "now".into(),
            _ => {}
        }
        remains.push(pod);
    }
    if happens(chance, 50) {
        let status = json!({"startTime": "2026-01-01T00:00:00Z", "active": chance.below(3)});
        remains.push(said(&declared[0], &status));
    }
    Start { declared, remains }
}

/// What counts of a Job is that it is done, and which parts.
fn counts(place: &str, object: &mut Value) -> Option<String> {
    if !is(place, "batch/jobs") {
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
