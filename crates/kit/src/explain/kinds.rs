//! What is known of kinds that everybody has: their pods, their counts, their ways to fail.

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

/// What can be said of an object because of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// How it stands.
    pub verdict: Verdict,
    /// Why, the most telling first.
    pub why: Vec<String>,
    /// What to do.
    pub advice: Vec<String>,
    /// Conditions about which everything is said herewith.
    pub covers: &'static [&'static str],
}

impl Judgement {
    fn new(covers: &'static [&'static str]) -> Self {
        Self {
            verdict: Verdict::Well,
            why: Vec::new(),
            advice: Vec::new(),
            covers,
        }
    }

    fn say(&mut self, verdict: Verdict, why: impl Into<String>) {
        self.verdict = self.verdict.or_worse(verdict);
        self.why.push(why.into());
    }

    fn advise(&mut self, advice: impl Into<String>) {
        let advice = advice.into();
        if !self.advice.contains(&advice) {
            self.advice.push(advice);
        }
    }
}

/// What the kind says of `object`; nothing if it is one that only its own controller knows.
pub(super) fn judge(facts: &Facts, object: &Value) -> Option<Judgement> {
    let judgement = match facts.kind.as_str() {
        "Pod" => pod::judge(facts, object, &facts.events, Some(facts.now)),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "ReplicationController" => {
            workload::judge(facts, object)
        }
        "Job" => job::judge(facts, object),
        "CronJob" => job::judge_cron(object),
        "Service" => service::judge(facts, object),
        "PersistentVolumeClaim" => claim::judge(facts, object),
        "Operation" => operation::judge(object, facts.now)?,
        _ => return None,
    };
    Some(judgement)
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

/// How many, with the right form of the noun.
fn many(count: i64, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{s}")
}

/// The pods that `object` owns, itself or by way of what it owns.
fn pods_of<'a>(object: &Value, around: &'a [Value]) -> Vec<&'a Value> {
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
    let sets = around.iter().filter(|one| one["kind"] != "Pod");
    let sets: Vec<_> = sets.filter(|one| owned_by(one, &owners)).collect();
    owners.extend(
        sets.iter()
            .filter_map(|set| set["metadata"]["uid"].as_str()),
    );
    let pods = around.iter().filter(|one| one["kind"] == "Pod");
    pods.filter(|pod| owned_by(pod, &owners)).collect()
}

/// So many pods are told of by name.
const TOLD: usize = 3;

/// What ails these pods, the worst first, and those with the same trouble together, whenever it
/// came. Told before what it leads to.
fn ailing(facts: &Facts, pods: &[&Value], judgement: &mut Judgement) {
    let mut told: Vec<Trouble> = Vec::new();
    for pod in pods {
        let events = about(&facts.nearby, pod);
        let of_pod = pod::judge(facts, pod, &events, None);
        let Some(first) = of_pod.why.into_iter().next() else {
            continue;
        };
        if of_pod.verdict == Verdict::Well {
            continue;
        }
        judgement.verdict = judgement.verdict.or_worse(of_pod.verdict);
        match told.iter_mut().find(|trouble| trouble.why == first) {
            Some(trouble) => trouble.others += 1,
            None => told.push(Trouble {
                why: first,
                verdict: of_pod.verdict,
                pod,
                events,
                others: 0,
            }),
        }
    }
    told.sort_by_key(|trouble| Reverse(trouble.verdict));
    for trouble in told.iter().take(TOLD) {
        trouble.tell(facts, judgement);
    }
}

/// Those of the events that are about this pod.
fn about(events: &[Event], pod: &Value) -> Vec<Event> {
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

/// What ails a pod, and others like it.
struct Trouble<'a> {
    /// Without times, by which alike ones would differ.
    why: String,
    verdict: Verdict,
    pod: &'a Value,
    events: Vec<Event>,
    others: i64,
}

impl Trouble<'_> {
    fn tell(&self, facts: &Facts, judgement: &mut Judgement) {
        let of_pod = pod::judge(facts, self.pod, &self.events, Some(facts.now));
        let why = of_pod.why.first().unwrap_or(&self.why);
        let others = match self.others {
            0 => String::new(),
            others => format!(" (and {} likewise)", many(others, "other")),
        };
        let pod = name(self.pod);
        judgement.why.push(format!("pod {pod}{others}: {why}"));
        for advice in of_pod.advice {
            judgement.advise(advice);
        }
    }
}
