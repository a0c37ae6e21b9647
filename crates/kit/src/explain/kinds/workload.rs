//! Workloads: their counts, by the rules of kstatus, and the problems of their pods.

use serde_json::Value;

use super::{Assessment, assess_pods, count, pods_of};
use crate::explain::{Facts, Verdict, conditions::ConditionSummary};

pub(super) fn assess(facts: &Facts, object: &Value) -> Assessment {
    let mut assessment = Assessment::new(&["Available", "ReplicaFailure"]);
    if object["status"]["observedGeneration"].is_null() {
        let why = "no controller has observed it yet";
        assessment.add_reason(Verdict::Progressing, why);
        assessment
            .add_advice("Wait a moment. If this persists, no controller for this kind is running.");
        return assessment;
    }
    if object["spec"]["paused"] == true {
        assessment.add_reason(
            Verdict::Healthy,
            "its rollout is paused: changes wait until it is resumed",
        );
    }
    let counts = Counts::of(&facts.kind, object);
    let shortfalls = counts.shortfalls();
    if !shortfalls.is_empty() {
        add_causes(facts, object, counts.wanted, &mut assessment);
    }
    for why in shortfalls {
        assessment.add_reason(Verdict::Progressing, why);
    }
    assessment
}

/// Adds the reasons why it does not have its pods.
fn add_causes(facts: &Facts, object: &Value, wanted: i64, assessment: &mut Assessment) {
    let conditions = ConditionSummary::of(object);
    let refused = |condition: &&ConditionSummary| {
        condition.type_ == "ReplicaFailure" && condition.status == "True"
    };
    if let Some(refused) = conditions.iter().find(refused) {
        let why = format!("its pods cannot be created: {}", refused.message);
        assessment.add_reason(Verdict::Degraded, why);
    }
    let unreadable = ["ReplicaSet", "Pod"].into_iter().find(|kind| {
        let is_needed = *kind == "Pod" || facts.kind == "Deployment";
        is_needed && !facts.can_read(kind)
    });
    if let Some(unreadable) = unreadable {
        let why = format!("the state of its pods is unknown: you may not read {unreadable}s");
        assessment.add_reason(Verdict::Progressing, why);
        assessment.add_advice("Request a role that may read them, such as view.");
        return;
    }
    let pods = pods_of(object, &facts.related);
    let alive: Vec<_> = pods.into_iter().filter(|pod| is_alive(pod)).collect();
    assess_pods(facts, &alive, assessment);
    if alive.is_empty() && wanted > 0 {
        assessment.add_reason(Verdict::Progressing, "none of its pods exists");
    }
}

/// Whether a pod is neither finished nor being deleted; others are replaced.
fn is_alive(pod: &Value) -> bool {
    let finished = matches!(
        pod["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    );
    pod["metadata"]["deletionTimestamp"].is_null() && !finished
}

struct Counts {
    wanted: i64,
    existing: i64,
    /// Pods of the newest revision; none for kinds without revisions.
    updated: Option<i64>,
    ready: i64,
    /// Pods that have been ready for `minReadySeconds`.
    available: i64,
}

impl Counts {
    fn of(kind: &str, object: &Value) -> Self {
        let count = |field| count(object, field);
        if kind == "DaemonSet" {
            return Self {
                wanted: count("desiredNumberScheduled"),
                existing: count("currentNumberScheduled"),
                updated: Some(count("updatedNumberScheduled")),
                ready: count("numberReady"),
                available: count("numberAvailable"),
            };
        }
        let has_revisions = matches!(kind, "Deployment" | "StatefulSet");
        Self {
            wanted: object["spec"]["replicas"].as_i64().unwrap_or(1),
            existing: count("replicas"),
            updated: (has_revisions && !keeps_old_pods(object)).then(|| count("updatedReplicas")),
            ready: count("readyReplicas"),
            available: count("availableReplicas"),
        }
    }

    /// The counts that differ from the desired ones.
    fn shortfalls(&self) -> Vec<String> {
        let mut shortfalls = Vec::new();
        let wanted = self.wanted;
        if let Some(updated) = self.updated.filter(|updated| *updated < wanted) {
            shortfalls.push(format!("{updated} of {wanted} pods are up to date"));
        }
        if self.existing > wanted {
            shortfalls.push(format!(
                "{} pods exist, and {wanted} are desired",
                self.existing
            ));
        }
        if self.ready < wanted {
            shortfalls.push(format!("{} of {wanted} pods are ready", self.ready));
        } else if self.available < wanted {
            let available = self.available;
            shortfalls.push(format!("{available} of {wanted} pods are available"));
        }
        shortfalls
    }
}

/// Whether old pods stay on purpose: until a user deletes them, or below a partition.
fn keeps_old_pods(object: &Value) -> bool {
    let strategy = &object["spec"]["updateStrategy"];
    let partition = &strategy["rollingUpdate"]["partition"];
    strategy["type"] == "OnDelete" || partition.as_i64().is_some_and(|from| from > 0)
}
