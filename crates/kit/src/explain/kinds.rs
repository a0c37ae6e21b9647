//! Assessment of the built-in kinds: their pods, their counts, their failures.

mod claim;
mod job;
mod operation;
mod pod;
mod service;
mod workload;

use std::cmp::Reverse;

use k8s_openapi::api::core::v1::Event;
use serde_json::Value;

use super::{Facts, Verdict};

/// The assessment of an object by the rules of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment {
    /// The health of the object.
    pub verdict: Verdict,
    /// The reasons, the most important first.
    pub why: Vec<String>,
    /// What to do.
    pub advice: Vec<String>,
    /// Types of conditions that this assessment already covers.
    pub covers: &'static [&'static str],
}

impl Assessment {
    fn new(covers: &'static [&'static str]) -> Self {
        Self {
            verdict: Verdict::Healthy,
            why: Vec::new(),
            advice: Vec::new(),
            covers,
        }
    }

    fn add_reason(&mut self, verdict: Verdict, why: impl Into<String>) {
        self.verdict = self.verdict.or_worse(verdict);
        self.why.push(why.into());
    }

    fn add_advice(&mut self, advice: impl Into<String>) {
        let advice = advice.into();
        if !self.advice.contains(&advice) {
            self.advice.push(advice);
        }
    }
}

/// Assesses `object`; none if its kind is not built in.
pub(super) fn assess(facts: &Facts, object: &Value) -> Option<Assessment> {
    let assessment = match facts.kind.as_str() {
        "Pod" => pod::assess(facts, object, &facts.events, Some(facts.now)),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "ReplicationController" => {
            workload::assess(facts, object)
        }
        "Job" => job::assess(facts, object),
        "CronJob" => job::assess_cron(object),
        "Service" => service::assess(facts, object),
        "PersistentVolumeClaim" => claim::assess(facts, object),
        "Operation" => operation::assess(object, facts.now)?,
        _ => return None,
    };
    Some(assessment)
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn same_namespace(one: &Value, other: &Value) -> bool {
    one["metadata"]["namespace"] == other["metadata"]["namespace"]
}

fn count(object: &Value, field: &str) -> i64 {
    object["status"][field].as_i64().unwrap_or(0)
}

/// A count with the singular or plural of the noun.
fn count_of(count: i64, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{s}")
}

/// The pods that `object` owns, directly or through objects that it owns.
fn pods_of<'a>(object: &Value, related: &'a [Value]) -> Vec<&'a Value> {
    let mut owners = vec![object["metadata"]["uid"].as_str().unwrap_or_default()];
    let owned_by = |one: &Value, owners: &[&str]| {
        let references = one["metadata"]["ownerReferences"].as_array();
        let mut references = references.into_iter().flatten();
        references.any(|owner| {
            owner["uid"]
                .as_str()
                .is_some_and(|uid| owners.contains(&uid))
        })
    };
    let owned = related.iter().filter(|one| one["kind"] != "Pod");
    let owned: Vec<_> = owned.filter(|one| owned_by(one, &owners)).collect();
    owners.extend(
        owned
            .iter()
            .filter_map(|object| object["metadata"]["uid"].as_str()),
    );
    let pods = related.iter().filter(|one| one["kind"] == "Pod");
    pods.filter(|pod| owned_by(pod, &owners)).collect()
}

/// The maximum number of pods that are named.
const MAX_NAMED_PODS: usize = 3;

/// Adds the problems of these pods, the worst first, and equal problems of several pods as one. Call it
/// before adding what the problems lead to.
fn assess_pods(facts: &Facts, pods: &[&Value], assessment: &mut Assessment) {
    let mut problems: Vec<PodProblem> = Vec::new();
    for pod in pods {
        let events = events_about(&facts.related_events, pod);
        let of_pod = pod::assess(facts, pod, &events, None);
        let Some(first) = of_pod.why.into_iter().next() else {
            continue;
        };
        if of_pod.verdict == Verdict::Healthy {
            continue;
        }
        assessment.verdict = assessment.verdict.or_worse(of_pod.verdict);
        match problems.iter_mut().find(|problem| problem.why == first) {
            Some(problem) => problem.others += 1,
            None => problems.push(PodProblem {
                why: first,
                verdict: of_pod.verdict,
                pod,
                events,
                others: 0,
            }),
        }
    }
    problems.sort_by_key(|problem| Reverse(problem.verdict));
    for problem in problems.iter().take(MAX_NAMED_PODS) {
        problem.report(facts, assessment);
    }
}

/// The events that are about this pod.
fn events_about(events: &[Event], pod: &Value) -> Vec<Event> {
    let is = |field: &Option<String>, value: &Value| {
        field.as_deref().unwrap_or_default() == value.as_str().unwrap_or_default()
    };
    let metadata = &pod["metadata"];
    let about = |event: &&Event| {
        let object = &event.involved_object;
        object.kind.as_deref() == Some("Pod")
            && is(&object.namespace, &metadata["namespace"])
            && is(&object.name, &metadata["name"])
    };
    events.iter().filter(about).cloned().collect()
}

/// A problem of a pod, and of others like it.
struct PodProblem<'a> {
    /// The reason without times and counts, in which similar pods differ.
    why: String,
    verdict: Verdict,
    pod: &'a Value,
    events: Vec<Event>,
    others: i64,
}

impl PodProblem<'_> {
    fn report(&self, facts: &Facts, assessment: &mut Assessment) {
        let of_pod = pod::assess(facts, self.pod, &self.events, Some(facts.now));
        let why = of_pod.why.first().unwrap_or(&self.why);
        let others = match self.others {
            0 => String::new(),
            others => format!(" (and {})", count_of(others, "other")),
        };
        let pod = name(self.pod);
        assessment.why.push(format!("pod {pod}{others}: {why}"));
        for advice in of_pod.advice {
            assessment.add_advice(advice);
        }
    }
}
