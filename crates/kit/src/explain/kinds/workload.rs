//! What keeps pods: their counts, by the rules of kstatus, and what ails those pods.

use jiff::Timestamp;
use serde_json::Value;

use super::{Judgement, ailing, count, pods_of};
use crate::explain::Verdict;

pub(super) fn judge(kind: &str, object: &Value, around: &[Value], now: Timestamp) -> Judgement {
    let mut judgement = Judgement::new(&["Available"]);
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
    let counts = Counts::of(kind, object);
    let short = counts.say(&mut judgement);
    if short {
        let pods = pods_of(object, around);
        let alive: Vec<_> = pods.into_iter().filter(|pod| is_meant(pod)).collect();
        if alive.is_empty() && counts.wanted > 0 {
            judgement.say(Verdict::OnItsWay, "none of its pods is there");
        }
        ailing(&alive, now, &mut judgement);
    }
    judgement
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

    /// Says what is short; whether something is.
    fn say(&self, judgement: &mut Judgement) -> bool {
        let before = judgement.why.len();
        let wanted = self.wanted;
        if let Some(updated) = self.updated.filter(|updated| *updated < wanted) {
            let why = format!("{updated} of {wanted} pods are of the newest version");
            judgement.say(Verdict::OnItsWay, why);
        }
        if self.there > wanted {
            let why = format!("{} pods are there, and {wanted} shall be", self.there);
            judgement.say(Verdict::OnItsWay, why);
        }
        if self.ready < wanted {
            let why = format!("{} of {wanted} pods are ready", self.ready);
            judgement.say(Verdict::OnItsWay, why);
        } else if self.available < wanted {
            let available = self.available;
            let why = format!("{available} of {wanted} pods have been ready for long enough");
            judgement.say(Verdict::OnItsWay, why);
        }
        judgement.why.len() > before
    }
}

/// Whether old pods are meant to stay until somebody deletes them, or below a partition.
fn holds_back(object: &Value) -> bool {
    let strategy = &object["spec"]["updateStrategy"];
    let partition = &strategy["rollingUpdate"]["partition"];
    strategy["type"] == "OnDelete" || partition.as_i64().is_some_and(|from| from > 0)
}
