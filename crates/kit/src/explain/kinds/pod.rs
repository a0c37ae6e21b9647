//! Pods.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use serde_json::Value;

use super::{Assessment, claim, count_of, name, same_namespace};
use crate::explain::{
    Facts, Verdict,
    text::{duration_text, last_seen},
};

const COVERS: &[&str] = &[
    "Ready",
    "ContainersReady",
    "Initialized",
    "PodScheduled",
    "PodReadyToStartContainers",
];

/// The reasons of Events with which a node reports why it cannot start the containers of a pod.
const START_FAILURES: &[&str] = &[
    "FailedMount",
    "FailedAttachVolume",
    "FailedMapVolume",
    "FailedCreatePodSandBox",
    "FailedCreatePodContainer",
];

/// What is known about a pod besides the object.
#[derive(Clone, Copy)]
struct PodFacts<'a> {
    /// The message of the last Event about a failed start.
    start_failure: Option<&'a str>,
    /// All Events about the pod.
    events: &'a [Event],
    now: Option<Timestamp>,
}

impl PodFacts<'_> {
    /// The message of the last failed probe of a container. Left out without `now`, because it differs
    /// between similar pods.
    fn failed_probe(&self, container: &str) -> Option<&str> {
        self.now?;
        let path = format!("{{{container}}}");
        let failed = self.events.iter().filter(|event| {
            let field = event.involved_object.field_path.as_deref();
            event.reason.as_deref() == Some("Unhealthy")
                && field.is_none_or(|field| field.ends_with(&path))
        });
        let last = failed.max_by_key(|event| last_seen(event))?;
        last.message.as_deref()
    }
}

/// Assesses a pod by its status and the `events` about it. Without `now`, the reasons contain neither
/// times nor counts, in which similar pods differ.
pub(super) fn assess(
    facts: &Facts,
    pod: &Value,
    events: &[Event],
    now: Option<Timestamp>,
) -> Assessment {
    let failures = events.iter().filter(|event| {
        let reason = event.reason.as_deref().unwrap_or_default();
        event.type_.as_deref() == Some("Warning") && START_FAILURES.contains(&reason)
    });
    let start_failure = failures.max_by_key(|event| last_seen(event));
    let pod_facts = PodFacts {
        start_failure: start_failure.and_then(|event| event.message.as_deref()),
        events,
        now,
    };
    let mut assessment = Assessment::new(COVERS);
    let status = &pod["status"];
    match status["phase"].as_str().unwrap_or("Pending") {
        "Succeeded" => assessment.add_reason(Verdict::Healthy, "it has completed"),
        phase => {
            if phase == "Failed" {
                failed(status, &mut assessment);
            }
            if phase == "Pending" {
                claims(facts, pod, &mut assessment);
            }
            let before = assessment.why.len();
            containers(pod, pod_facts, &mut assessment);
            if assessment.why.len() == before {
                placement(pod, &mut assessment);
            }
        }
    }
    assessment
}

fn failed(status: &Value, assessment: &mut Assessment) {
    let text = |field: &str| status[field].as_str().unwrap_or_default();
    assessment.verdict = Verdict::Degraded;
    if !text("reason").is_empty() {
        let why = format!("it failed ({}) {}", text("reason"), text("message"));
        assessment.add_reason(Verdict::Degraded, why.trim_end());
    }
}

/// Adds the problems of the claims that the pod waits for.
fn claims(facts: &Facts, pod: &Value, assessment: &mut Assessment) {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    for wanted in volumes.filter_map(|one| one["persistentVolumeClaim"]["claimName"].as_str()) {
        let mut claims = facts.related.iter();
        let claim = claims.find(|one| {
            let is_claim = one["kind"] == "PersistentVolumeClaim";
            is_claim && same_namespace(one, pod) && name(one) == wanted
        });
        let Some(claim) = claim else { continue };
        let of_claim = claim::assess(facts, claim);
        if of_claim.verdict == Verdict::Degraded {
            for why in of_claim.why {
                assessment.add_reason(Verdict::Degraded, format!("its claim {wanted}: {why}"));
            }
            for advice in of_claim.advice {
                assessment.add_advice(advice);
            }
        }
    }
}

/// Adds the state of scheduling, if no container has a problem.
fn placement(pod: &Value, assessment: &mut Assessment) {
    let conditions = pod["status"]["conditions"].as_array();
    let condition = |kind: &str| {
        let mut all = conditions.into_iter().flatten();
        all.find(|one| one["type"] == kind && one["status"] != "True")
    };
    let message = |one: &Value| one["message"].as_str().unwrap_or_default().to_owned();
    if let Some(unscheduled) = condition("PodScheduled") {
        let why = format!("it cannot be scheduled: {}", message(unscheduled));
        assessment.add_reason(Verdict::Degraded, why.trim_end_matches(": "));
        scheduling_advice(&message(unscheduled), assessment);
        return;
    }
    match pod["spec"]["nodeName"].as_str() {
        None => assessment.add_reason(Verdict::Progressing, "it waits to be scheduled"),
        Some(node) if pod["status"]["phase"] != "Running" => {
            let why = format!("the node {node} has not started its containers yet");
            assessment.add_reason(Verdict::Progressing, why);
        }
        Some(_) => {
            if let Some(unready) = condition("Ready") {
                let why = format!("it is running but not ready: {}", message(unready));
                assessment.add_reason(Verdict::Progressing, why.trim_end_matches(": "));
            }
        }
    }
}

/// Adds advice for the message of a scheduler, such as `0/2 nodes are available: 1 Insufficient cpu, 1
/// node(s) were unschedulable.` and further sentences.
fn scheduling_advice(message: &str, assessment: &mut Assessment) {
    let causes = message.split_once(": ").map_or(message, |(_, after)| after);
    let causes = causes.split(". ").next().unwrap_or_default().split(", ");
    let (cordoned, others): (Vec<_>, Vec<_>) =
        causes.partition(|cause| cause.contains("unschedulable"));
    if !cordoned.is_empty() {
        assessment.add_advice("Make the node schedulable again: kubectl uncordon NODE");
    }
    if !others.is_empty() {
        assessment.add_advice(
            "Free resources on a node, request less, or fix what the message names: selectors, taints, claims.",
        );
    }
}

fn containers(pod: &Value, pod_facts: PodFacts<'_>, assessment: &mut Assessment) {
    let of = |field: &str| pod["status"][field].as_array().into_iter().flatten();
    for container in of("initContainerStatuses") {
        // Skip init containers that have completed.
        if container["state"]["terminated"]["exitCode"] != 0 && container["ready"] != true {
            container_state(pod, container, pod_facts, assessment);
        }
    }
    let never = pod["spec"]["restartPolicy"] == "Never";
    for container in of("containerStatuses") {
        let completed = container["state"]["terminated"]["exitCode"] == 0;
        if !(completed && (never || pod["spec"]["restartPolicy"] == "OnFailure")) {
            container_state(pod, container, pod_facts, assessment);
        }
    }
}

fn container_state(
    pod: &Value,
    container: &Value,
    pod_facts: PodFacts<'_>,
    assessment: &mut Assessment,
) {
    let now = pod_facts.now;
    let (state, called) = (&container["state"], name_of(container));
    if state["waiting"].is_object() {
        waiting(pod, container, pod_facts, assessment);
    } else if state["terminated"].is_object() {
        let exit = exit_text(&state["terminated"], now);
        assessment.add_reason(Verdict::Degraded, format!("the container {called} {exit}"));
        assessment.add_advice(logs(pod, called, false));
    } else if state["running"].is_object() && container["ready"] == false {
        let before = &container["lastState"]["terminated"];
        let before = if before.is_object() {
            format!("; previously it {}", exit_text(before, now))
        } else {
            String::new()
        };
        let probe = pod_facts.failed_probe(called);
        let probe = probe.map_or(String::new(), |message| format!(": {message}"));
        let why = format!("the container {called} is running but not ready{before}{probe}");
        assessment.add_reason(Verdict::Progressing, why);
        assessment.add_advice(logs(pod, called, false));
    }
}

fn waiting(pod: &Value, container: &Value, pod_facts: PodFacts<'_>, assessment: &mut Assessment) {
    let PodFacts {
        start_failure, now, ..
    } = pod_facts;
    let called = name_of(container);
    let text = |field: &str| {
        container["state"]["waiting"][field]
            .as_str()
            .unwrap_or_default()
    };
    let image = container["image"].as_str().unwrap_or_default();
    let (reason, detail) = (text("reason"), text("message"));
    let message = if detail.is_empty() { reason } else { detail };
    match reason {
        "CrashLoopBackOff" => {
            let restarts = container["restartCount"].as_i64().unwrap_or(0);
            let exit = exit_text(&container["lastState"]["terminated"], now);
            let restarts = now.map_or(String::new(), |_| {
                format!(" ({})", count_of(restarts, "restart"))
            });
            let why = format!("the container {called} keeps crashing{restarts}: it {exit}");
            assessment.add_reason(Verdict::Degraded, why);
            assessment.add_advice(logs(pod, called, true));
        }
        "ImagePullBackOff" | "ErrImagePull" | "InvalidImageName" | "ErrImageNeverPull" => {
            let why = if message.contains(image) {
                format!("the image of the container {called} cannot be pulled: {message}")
            } else {
                format!("the image {image} of the container {called} cannot be pulled: {message}")
            };
            assessment.add_reason(Verdict::Degraded, why);
            assessment.add_advice(image_advice(image, message));
        }
        "CreateContainerConfigError" => {
            let why = format!("the container {called} cannot be created: {message}");
            assessment.add_reason(Verdict::Degraded, why);
            assessment.add_advice(
                "Create the ConfigMap, Secret or key that is named, or correct the reference to it.",
            );
        }
        "" | "ContainerCreating" | "PodInitializing" => {
            let detail = Some(detail).filter(|detail| !detail.is_empty());
            let failure = detail.or(start_failure.filter(|_| reason != "PodInitializing"));
            creating(called, failure, assessment);
        }
        _ => {
            let why = format!("the container {called} cannot be started ({reason}): {message}");
            assessment.add_reason(Verdict::Degraded, why);
        }
    }
}

fn creating(called: &str, failure: Option<&str>, assessment: &mut Assessment) {
    if let Some(failure) = failure {
        let why = format!("the container {called} cannot be created: {failure}");
        assessment.add_reason(Verdict::Degraded, why);
        assessment.add_advice("Create what is missing, such as a ConfigMap, a Secret or a claim, or correct the reference to it.");
    } else {
        let why = format!("the container {called} is being created");
        assessment.add_reason(Verdict::Progressing, why);
    }
}

/// The node of `neap up` has no registry: its messages name the table of images.
fn image_advice(image: &str, message: &str) -> String {
    if message.contains("--images") {
        return "Add the image to the table of `neap up --images FILE` (docs/platform/node.md shows one), or use an image of that table.".to_owned();
    }
    format!(
        "Check that the image {image} exists, that its name is correct, and that it can be pulled from here."
    )
}

fn name_of(container: &Value) -> &str {
    container["name"].as_str().unwrap_or_default()
}

/// How a container exited.
fn exit_text(state: &Value, now: Option<Timestamp>) -> String {
    let code = state["exitCode"].as_i64().unwrap_or(0);
    let meaning = match (state["reason"].as_str(), code) {
        (Some("OOMKilled"), _) => " (it exceeded its memory limit)",
        (_, 126) => " (its command cannot be executed)",
        (_, 127) => " (its command was not found)",
        (_, 137) => " (killed: it did not stop in time, or the machine was out of memory)",
        (_, 139) => " (segmentation fault)",
        (_, 143) => " (terminated on request)",
        _ => "",
    };
    let ago = state["finishedAt"].as_str();
    let ago = ago.and_then(|time| time.parse().ok()).zip(now);
    let ago = ago.map_or(String::new(), |(time, now)| {
        format!(" {} ago", duration_text(time, now))
    });
    let message = state["message"]
        .as_str()
        .map(str::trim)
        .filter(|text| !text.is_empty());
    let message = message.map_or(String::new(), |text| format!(": {text}"));
    format!("exited with code {code}{ago}{meaning}{message}")
}

fn logs(pod: &Value, container: &str, previous: bool) -> String {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or("default");
    let previous = if previous { " --previous" } else { "" };
    let pod = name(pod);
    format!("Read its log: kubectl logs -n {namespace} {pod} -c {container}{previous}")
}
