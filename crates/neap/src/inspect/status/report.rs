//! Derives the status report from a snapshot. Pure.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use neap_kit::{
    area::AreaKind,
    explain::{Facts, Verdict, explain},
    key::Key,
    operation::{Operation, Phase},
};
use neap_release::area::Superseded;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::ClusterSnapshot;
use crate::areas::{self, kind_of};

/// The kinds of each section of the report.
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
pub(crate) const CLAIMS: &[&str] = &["PersistentVolumeClaim"];

/// Time after the deletion deadline of a pod before it counts as stuck.
const TERMINATION_TOLERANCE: SignedDuration = SignedDuration::from_secs(30);

/// The state of the cluster.
#[derive(Debug, Serialize)]
pub(crate) struct StatusReport {
    pub(crate) address: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    /// Kinds that the user may not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) hidden: Vec<&'static str>,
    pub(crate) nodes: Vec<ObjectStatus>,
    pub(crate) workloads: Vec<ObjectStatus>,
    /// Only pods with problems.
    pub(crate) pods: Vec<ObjectStatus>,
    pub(crate) services: Vec<ObjectStatus>,
    /// Objects of the areas, by kind.
    #[serde(flatten)]
    pub(crate) areas: AreaSections,
    /// Claims that are not bound.
    pub(crate) claims: Vec<ObjectStatus>,
    /// Operations that have not finished.
    pub(crate) operations: Vec<ObjectStatus>,
}

/// Objects of the areas, by kind. In JSON, each kind has its key.
#[derive(Debug)]
pub(crate) struct AreaSections(pub(crate) Vec<(AreaKind, Vec<ObjectStatus>)>);

impl Serialize for AreaSections {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(kind, objects)| (kind.key, objects)))
    }
}

/// The state of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ObjectStatus {
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
    /// Counts, addresses or a phase, shown even without problems.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) detail: String,
    /// Reasons of a problem, the most relevant first. Without a problem: notes of a Service, advice about an
    /// object of an area.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) why: Vec<String>,
    /// Whether a newer object has replaced what it belongs to: its problem needs no action any more.
    #[serde(skip)]
    pub(crate) is_superseded: bool,
}

impl ObjectStatus {
    /// Whether there is neither a problem nor a note.
    pub(crate) fn is_fine(&self) -> bool {
        self.verdict == Verdict::Healthy && self.why.is_empty()
    }

    /// Whether there is a problem that needs no action any more.
    pub(crate) fn is_replaced(&self) -> bool {
        self.is_superseded && self.verdict != Verdict::Healthy
    }
}

/// Derives the report.
pub(crate) fn report(snapshot: &ClusterSnapshot, now: Timestamp) -> StatusReport {
    let superseded = Superseded::among(&snapshot.objects);
    let of = |kinds: &[&str], detail: &dyn Fn(&Value) -> String| -> Vec<ObjectStatus> {
        let of_kinds = snapshot
            .objects
            .iter()
            .filter(|one| kinds.iter().any(|kind| one["kind"] == **kind));
        let free = of_kinds.filter(|one| {
            let is_pod = one["kind"] == "Pod";
            // The owners of these do not report their state.
            let listed_itself = is_pod || kind_of(&text(&one["kind"]), one).is_some();
            (listed_itself || !is_owned(one)) && !(is_pod && terminates_in_time(one, now))
        });
        free.map(|one| ObjectStatus {
            is_superseded: superseded.covers(one),
            ..object_status(snapshot, one, detail(one), now)
        })
        .collect()
    };
    let with_problems = |lines: Vec<ObjectStatus>| -> Vec<ObjectStatus> {
        lines
            .into_iter()
            .filter(|line| line.verdict != Verdict::Healthy)
            .collect()
    };
    let phase = |one: &Value| text(&one["status"]["phase"]);
    let area = |kind: AreaKind| {
        let lines = of(&[kind.resource.name], &|one| (kind.summary)(one, now));
        (kind, lines)
    };
    StatusReport {
        address: snapshot.address.clone(),
        version: snapshot.version.clone(),
        namespace: snapshot.namespace.clone(),
        hidden: snapshot.hidden.clone(),
        nodes: of(NODES, &ready),
        workloads: of(WORKLOADS, &counts),
        pods: with_problems(of(PODS, &phase)),
        services: of(SERVICES, &addresses),
        areas: AreaSections(areas::kinds().map(area).collect()),
        claims: with_problems(of(CLAIMS, &phase)),
        operations: unfinished_operations(snapshot, now),
    }
}

impl StatusReport {
    /// Those of `kinds` that the user may not read.
    pub(crate) fn hidden(&self, kinds: &[&str]) -> Vec<&'static str> {
        let hidden = self.hidden.iter().copied();
        hidden.filter(|kind| kinds.contains(kind)).collect()
    }

    /// All objects of the report, without operations.
    pub(crate) fn objects_listed(&self) -> impl Iterator<Item = &ObjectStatus> {
        let core = [&self.nodes, &self.workloads, &self.pods, &self.services];
        let areas = self.areas.0.iter().map(|(_, objects)| objects);
        core.into_iter()
            .chain(areas)
            .chain([&self.claims])
            .flatten()
    }
}

fn object_status(
    snapshot: &ClusterSnapshot,
    object: &Value,
    detail: String,
    now: Timestamp,
) -> ObjectStatus {
    let kind = text(&object["kind"]);
    let metadata = &object["metadata"];
    let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
    let about = |event: &&Event| {
        let object = &event.involved_object;
        let is =
            |field: &Option<String>, value: &str| field.as_deref().unwrap_or_default() == value;
        is(&object.kind, &kind) && is(&object.namespace, &namespace) && is(&object.name, &name)
    };
    let area = kind_of(&kind, object);
    let explanation = explain(&Facts {
        kind: kind.clone(),
        key: Key::new(&namespace, &name),
        object: Some(object.clone()),
        assessment: area.and_then(|area| (area.assess)(object, now)),
        related: snapshot.objects.clone(),
        unreadable: snapshot.hidden.iter().map(ToString::to_string).collect(),
        related_events: snapshot.events.clone(),
        events: snapshot.events.iter().filter(about).cloned().collect(),
        operations: snapshot.operations.clone(),
        catalogue: areas::catalogue(),
        now,
    });
    let why = match (explanation.verdict, &*kind) {
        // A healthy object may still have advice, for example about an invalid reference.
        (Verdict::Healthy, _) if area.is_some() => explanation.advice,
        (Verdict::Healthy, other) if other != "Service" => Vec::new(),
        _ => explanation.why,
    };
    ObjectStatus {
        kind,
        namespace,
        name,
        verdict: explanation.verdict,
        detail,
        why,
        is_superseded: false,
    }
}

/// Whether a controller owns the object, which then reports its state.
fn is_owned(object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners
        .into_iter()
        .flatten()
        .any(|owner| owner["controller"] == true)
}

/// Whether the pod is being deleted and within its deadline, or only just past it.
fn terminates_in_time(object: &Value, now: Timestamp) -> bool {
    let due = object["metadata"]["deletionTimestamp"].as_str();
    let due = due.and_then(|due| due.parse::<Timestamp>().ok());
    due.is_some_and(|due| now.duration_since(due) <= TERMINATION_TOLERANCE)
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
        _ => "unknown",
    };
    let apart = if node["spec"]["unschedulable"] == true {
        ", unschedulable"
    } else {
        ""
    };
    format!("{ready}{apart}")
}

fn counts(workload: &Value) -> String {
    let status = |field: &str| workload["status"][field].as_i64().unwrap_or(0);
    let (done, desired) = match workload["kind"].as_str() {
        Some("DaemonSet") => (status("numberReady"), status("desiredNumberScheduled")),
        Some("Job") => {
            let desired = workload["spec"]["completions"].as_i64().unwrap_or(1);
            return format!("{}/{desired} done", status("succeeded"));
        }
        _ => (
            status("readyReplicas"),
            workload["spec"]["replicas"].as_i64().unwrap_or(1),
        ),
    };
    format!("{done}/{desired} ready")
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
        return "headless".to_owned();
    }
    let all: Vec<_> = ports.into_iter().flatten().map(port).collect();
    all.join(", ")
}

fn unfinished_operations(snapshot: &ClusterSnapshot, now: Timestamp) -> Vec<ObjectStatus> {
    let phase = |one: &Operation| {
        one.status
            .as_ref()
            .map(|status| status.phase)
            .unwrap_or_default()
    };
    let open = snapshot
        .operations
        .iter()
        .filter(|one| matches!(phase(one), Phase::Pending | Phase::Running));
    open.filter_map(|one| serde_json::to_value(one).ok())
        .map(|mut object| {
            object["kind"] = "Operation".into();
            let progress = text(&object["status"]["progress"]);
            object_status(snapshot, &object, progress, now)
        })
        .collect()
}
