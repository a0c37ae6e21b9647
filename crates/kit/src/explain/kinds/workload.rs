//! What keeps pods: their counts, by the rules of kstatus, and what ails those pods.

use serde_json::Value;

use super::{Judgement, ailing, count, pods_of};
use crate::explain::{Facts, Verdict, said::Said};

pub(super) fn judge(facts: &Facts, object: &Value) -> Judgement {
    let mut judgement = Judgement::new(&["Available", "ReplicaFailure"]);
    if object["status"]["observedGeneration"].is_null() {
        let why = "no controller has looked at it yet";
        judgement.say(Verdict::OnItsWay, why);
        judgement.advise("Wait a moment. If it stays so, no controller for this kind runs.");
        return judgement;
    }
    if object["spec"]["paused"] == true {
        judgement.say(
            Verdict::Well,
            "its rollout is paused: changes wait until it goes on",
        );
    }
    let counts = Counts::of(&facts.kind, object);
    let short = counts.short();
    if !short.is_empty() {
        cause(facts, object, counts.wanted, &mut judgement);
    }
    for why in short {
        judgement.say(Verdict::OnItsWay, why);
    }
    judgement
}

/// What keeps it from having its pods.
fn cause(facts: &Facts, object: &Value, wanted: i64, judgement: &mut Judgement) {
    let conditions = Said::of(object);
    let refused = |said: &&Said| said.kind == "ReplicaFailure" && said.status == "True";
    if let Some(refused) = conditions.iter().find(refused) {
        let why = format!("its pods cannot be made: {}", refused.message);
        judgement.say(Verdict::Troubled, why);
    }
    let unseen = ["ReplicaSet", "Pod"].into_iter().find(|kind| {
        let between = *kind == "Pod" || facts.kind == "Deployment";
        between && !facts.may_see(kind)
    });
    if let Some(unseen) = unseen {
        let why = format!("what its pods do cannot be told: you may not read {unseen}s");
        judgement.say(Verdict::OnItsWay, why);
        judgement.advise("Ask for a role that may read them, such as view.");
        return;
    }
    let pods = pods_of(object, &facts.around);
    let alive: Vec<_> = pods.into_iter().filter(|pod| is_meant(pod)).collect();
    ailing(facts, &alive, judgement);
    if alive.is_empty() && wanted > 0 {
        judgement.say(Verdict::OnItsWay, "none of its pods is there");
    }
}

/// Whether a pod counts: those on their way out are replaced.
fn is_meant(pod: &Value) -> bool {
    let over = matches!(
        pod["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    );
    pod["metadata"]["deletionTimestamp"].is_null() && !over
}

struct Counts {
    wanted: i64,
    there: i64,
    /// Of the newest version; nothing for kinds that have only one.
    updated: Option<i64>,
    ready: i64,
    /// Ready for as long as is asked for.
    available: i64,
}

impl Counts {
    fn of(kind: &str, object: &Value) -> Self {
        let count = |field| count(object, field);
        if kind == "DaemonSet" {
            return Self {
                wanted: count("desiredNumberScheduled"),
                there: count("currentNumberScheduled"),
                updated: Some(count("updatedNumberScheduled")),
                ready: count("numberReady"),
                available: count("numberAvailable"),
            };
        }
        let has_versions = matches!(kind, "Deployment" | "StatefulSet");
        Self {
            wanted: object["spec"]["replicas"].as_i64().unwrap_or(1),
            there: count("replicas"),
            updated: (has_versions && !holds_back(object)).then(|| count("updatedReplicas")),
            ready: count("readyReplicas"),
            available: count("availableReplicas"),
        }
    }

    /// What is not as it shall be.
    fn short(&self) -> Vec<String> {
        let mut short = Vec::new();
        let wanted = self.wanted;
        if let Some(updated) = self.updated.filter(|updated| *updated < wanted) {
            short.push(format!(
                "{updated} of {wanted} pods are of the newest version"
            ));
        }
        if self.there > wanted {
            short.push(format!(
                "{} pods are there, and {wanted} shall be",
                self.there
            ));
        }
        if self.ready < wanted {
            short.push(format!("{} of {wanted} pods are ready", self.ready));
        } else if self.available < wanted {
            let available = self.available;
            short.push(format!(
                "{available} of {wanted} pods have been ready for long enough"
            ));
        }
        short
    }
}

/// Whether old pods are meant to stay until somebody deletes them, or below a partition.
fn holds_back(object: &Value) -> bool {
    let strategy = &object["spec"]["updateStrategy"];
    let partition = &strategy["rollingUpdate"]["partition"];
    strategy["type"] == "OnDelete" || partition.as_i64().is_some_and(|from| from > 0)
}
