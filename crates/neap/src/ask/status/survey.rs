//! From what the server has to what can be said of it. Pure.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use neap_idle::account::{State, span};
use neap_kit::{
    explain::{Facts, Verdict, explain},
    key::Key,
    operation::{Operation, Phase},
};
use serde::Serialize;
use serde_json::Value;

use super::Seen;
use crate::ask::explain::{accounted, judged};

/// What is in each group.
pub(crate) const NODES: &[&str] = &["Node"];
pub(crate) const WORKLOADS: &[&str] = &[
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "Job",
];
pub(crate) const PODS: &[&str] = &["Pod"];
pub(crate) const SERVICES: &[&str] = &["Service"];
pub(crate) const SLEEPERS: &[&str] = &["ElastiService"];
pub(crate) const CLAIMS: &[&str] = &["PersistentVolumeClaim"];

/// A pod that is to be gone for longer than this is stuck.
const LATE: SignedDuration = SignedDuration::from_secs(30);

/// What is there, and how it stands.
#[derive(Debug, Serialize)]
pub(crate) struct Survey {
    pub(crate) address: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    /// Kinds that whoever asks may not see.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) hidden: Vec<&'static str>,
    pub(crate) nodes: Vec<Line>,
    pub(crate) workloads: Vec<Line>,
    /// Pods that are not well, and those alone.
    pub(crate) pods: Vec<Line>,
    pub(crate) services: Vec<Line>,
    /// Services that may sleep.
    #[serde(rename = "elastiServices")]
    pub(crate) sleepers: Vec<Line>,
    /// Claims that are not bound.
    pub(crate) claims: Vec<Line>,
    /// Operations that are not over.
    pub(crate) operations: Vec<Line>,
}

/// One object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
    /// Counts, addresses, a phase: what is worth knowing even if all is well.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) detail: String,
    /// Why it is not well, the most telling first; of a service that is well, what is worth knowing, and
    /// of one that may sleep, what to do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) why: Vec<String>,
}

impl Line {
    /// Whether there is nothing to say of it.
    pub(crate) fn is_fine(&self) -> bool {
        self.verdict == Verdict::Well && self.why.is_empty()
    }
}

/// What can be said.
pub(crate) fn survey(seen: &Seen, now: Timestamp) -> Survey {
    let of = |kinds: &[&str], detail: &dyn Fn(&Value) -> String| -> Vec<Line> {
        let meant = seen
            .objects
            .iter()
            .filter(|one| kinds.iter().any(|kind| one["kind"] == **kind));
        let free = meant.filter(|one| {
            let is_pod = one["kind"] == "Pod";
            // Whoever owns one of those knows nothing of how it is.
            let speaks = is_pod || one["kind"] == "ElastiService";
            (speaks || !is_owned(one)) && !(is_pod && ends_in_time(one, now))
        });
        free.map(|one| line(seen, one, detail(one), now)).collect()
    };
    let unwell = |lines: Vec<Line>| -> Vec<Line> {
        lines
            .into_iter()
            .filter(|line| line.verdict != Verdict::Well)
            .collect()
    };
    let phase = |one: &Value| text(&one["status"]["phase"]);
    Survey {
        address: seen.address.clone(),
        version: seen.version.clone(),
        namespace: seen.namespace.clone(),
        hidden: seen.hidden.clone(),
        nodes: of(NODES, &ready),
        workloads: of(WORKLOADS, &counts),
        pods: unwell(of(PODS, &phase)),
        services: of(SERVICES, &addresses),
        sleepers: of(SLEEPERS, &|one| rest(one, now)),
        claims: unwell(of(CLAIMS, &phase)),
        operations: under_way(seen, now),
    }
}

impl Survey {
    /// Those of the kinds that may not be seen.
    pub(crate) fn hidden(&self, kinds: &[&str]) -> Vec<&'static str> {
        let hidden = self.hidden.iter().copied();
        hidden.filter(|kind| kinds.contains(kind)).collect()
    }

    /// Everything that is there.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &Line> {
        let groups = [
            &self.nodes,
            &self.workloads,
            &self.pods,
            &self.services,
            &self.sleepers,
            &self.claims,
        ];
        groups.into_iter().flatten()
    }
}

fn line(seen: &Seen, object: &Value, detail: String, now: Timestamp) -> Line {
    let kind = text(&object["kind"]);
    let metadata = &object["metadata"];
    let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
    let about = |event: &&Event| {
        let object = &event.involved_object;
        let is =
            |field: &Option<String>, value: &str| field.as_deref().unwrap_or_default() == value;
        is(&object.kind, &kind) && is(&object.namespace, &namespace) && is(&object.name, &name)
    };
    let said = explain(&Facts {
        kind: kind.clone(),
        key: Key::new(&namespace, &name),
        object: Some(object.clone()),
        known: judged(&kind, object, now),
        around: seen.objects.clone(),
        hidden: seen.hidden.iter().map(ToString::to_string).collect(),
        nearby: seen.events.clone(),
        events: seen.events.iter().filter(about).cloned().collect(),
        operations: seen.operations.clone(),
        now,
    });
    let why = match (said.verdict, &*kind) {
        // Whoever does what it should may be asked for something that it cannot do.
        (Verdict::Well, "ElastiService") => said.advice,
        (Verdict::Well, other) if other != "Service" => Vec::new(),
        _ => said.why,
    };
    Line {
        kind,
        namespace,
        name,
        verdict: said.verdict,
        detail,
        why,
    }
}

/// Whether something else of the list keeps it, and speaks for it.
fn is_owned(object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners
        .into_iter()
        .flatten()
        .any(|owner| owner["controller"] == true)
}

/// Whether it is being deleted and has still time for that, or had until a moment ago: pods come and
/// go.
fn ends_in_time(object: &Value, now: Timestamp) -> bool {
    let due = object["metadata"]["deletionTimestamp"].as_str();
    let due = due.and_then(|due| due.parse::<Timestamp>().ok());
    due.is_some_and(|due| now.duration_since(due) <= LATE)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn ready(node: &Value) -> String {
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|one| one["type"] == "Ready");
    let ready = match ready.and_then(|one| one["status"].as_str()) {
        Some("True") => "ready",
        Some("False") => "not ready",
        _ => "not heard of",
    };
    let apart = if node["spec"]["unschedulable"] == true {
        ", takes no new pods"
    } else {
        ""
    };
    format!("{ready}{apart}")
}

fn counts(workload: &Value) -> String {
    let status = |field: &str| workload["status"][field].as_i64().unwrap_or(0);
    let (done, wanted) = match workload["kind"].as_str() {
        Some("DaemonSet") => (status("numberReady"), status("desiredNumberScheduled")),
        Some("Job") => {
            let wanted = workload["spec"]["completions"].as_i64().unwrap_or(1);
            return format!("{}/{wanted} done", status("succeeded"));
        }
        _ => (
            status("readyReplicas"),
            workload["spec"]["replicas"].as_i64().unwrap_or(1),
        ),
    };
    format!("{done}/{wanted} ready")
}

fn addresses(service: &Value) -> String {
    let spec = &service["spec"];
    if spec["type"] == "ExternalName" {
        return text(&spec["externalName"]);
    }
    let address = text(&spec["clusterIP"]);
    let ports = spec["ports"].as_array();
    let port = |port: &Value| {
        let number = port["port"].as_i64().unwrap_or(0);
        let node = port["nodePort"].as_i64().filter(|node| *node > 0);
        let node = node.map_or(String::new(), |node| format!(" (node port {node})"));
        format!("{address}:{number}{node}")
    };
    if address == "None" {
        return "without an address of its own".to_owned();
    }
    let all: Vec<_> = ports.into_iter().flatten().map(port).collect();
    all.join(", ")
}

/// Whether it sleeps, and for how long.
fn rest(object: &Value, now: Timestamp) -> String {
    let Some(account) = accounted("ElastiService", object, now) else {
        return "not to be understood".to_owned();
    };
    let state = account.state.word();
    let since = account
        .asleep_since
        .filter(|_| account.state == State::Asleep);
    match since {
        Some(since) => {
            let seconds = now.duration_since(since).as_secs().max(0);
            format!("{state} for {}", span(seconds))
        }
        None => state.to_owned(),
    }
}

fn under_way(seen: &Seen, now: Timestamp) -> Vec<Line> {
    let phase = |one: &Operation| {
        one.status
            .as_ref()
            .map(|status| status.phase)
            .unwrap_or_default()
    };
    let open = seen
        .operations
        .iter()
        .filter(|one| matches!(phase(one), Phase::Pending | Phase::Running));
    open.filter_map(|one| serde_json::to_value(one).ok())
        .map(|mut object| {
            object["kind"] = "Operation".into();
            let progress = text(&object["status"]["progress"]);
            line(seen, &object, progress, now)
        })
        .collect()
}
