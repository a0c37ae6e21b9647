//! Pods.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use serde_json::Value;

use super::{Judgement, claim, many, name, same_namespace};
use crate::explain::{
    Facts, Verdict,
    words::{last_seen, span},
};

const COVERS: &[&str] = &[
    "Ready",
    "ContainersReady",
    "Initialized",
    "PodScheduled",
    "PodReadyToStartContainers",
];

/// The reasons with which a node tells why it does not get as far as starting containers.
const OBSTACLES: &[&str] = &[
    "FailedMount",
    "FailedAttachVolume",
    "FailedMapVolume",
    "FailedCreatePodSandBox",
    "FailedCreatePodContainer",
];

/// What is known beside a pod.
#[derive(Clone, Copy)]
struct Beside<'a> {
    /// What keeps the node from starting containers.
    obstacle: Option<&'a str>,
    /// All that was said of it.
    events: &'a [Event],
    now: Option<Timestamp>,
}

impl Beside<'_> {
    /// What the last probe of a container that failed said; pods alike differ in it.
    fn probe(&self, container: &str) -> Option<&str> {
        self.now?;
        let place = format!("{{{container}}}");
        let failed = self.events.iter().filter(|event| {
            let field = event.involved_object.field_path.as_deref();
            event.reason.as_deref() == Some("Unhealthy")
                && field.is_none_or(|field| field.ends_with(&place))
        });
        let last = failed.max_by_key(|event| last_seen(event))?;
        last.message.as_deref()
    }
}

/// What keeps the pod, which `events` are about; without `now`, neither times nor counts are told, by
/// which pods alike differ.
pub(super) fn judge(
    facts: &Facts,
    pod: &Value,
    events: &[Event],
    now: Option<Timestamp>,
) -> Judgement {
    let obstacles = events.iter().filter(|event| {
        let reason = event.reason.as_deref().unwrap_or_default();
        event.type_.as_deref() == Some("Warning") && OBSTACLES.contains(&reason)
    });
    let obstacle = obstacles.max_by_key(|event| last_seen(event));
    let beside = Beside {
        obstacle: obstacle.and_then(|event| event.message.as_deref()),
        events,
        now,
    };
    let mut judgement = Judgement::new(COVERS);
    let status = &pod["status"];
    match status["phase"].as_str().unwrap_or("Pending") {
        "Succeeded" => judgement.say(Verdict::Well, "it ran to its end"),
        phase => {
            if phase == "Failed" {
                failed(status, &mut judgement);
            }
            if phase == "Pending" {
                claims(facts, pod, &mut judgement);
            }
            let before = judgement.why.len();
            containers(pod, beside, &mut judgement);
            if judgement.why.len() == before {
                place(pod, &mut judgement);
            }
        }
    }
    judgement
}

fn failed(status: &Value, judgement: &mut Judgement) {
    let text = |field: &str| status[field].as_str().unwrap_or_default();
    judgement.verdict = Verdict::Troubled;
    if !text("reason").is_empty() {
        let why = format!("it failed ({}) {}", text("reason"), text("message"));
        judgement.say(Verdict::Troubled, why.trim_end());
    }
}

/// Claims that it waits for and that wait in vain.
fn claims(facts: &Facts, pod: &Value, judgement: &mut Judgement) {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    for wanted in volumes.filter_map(|one| one["persistentVolumeClaim"]["claimName"].as_str()) {
        let mut claims = facts.around.iter();
        let claim = claims.find(|one| {
            let is_claim = one["kind"] == "PersistentVolumeClaim";
            is_claim && same_namespace(one, pod) && name(one) == wanted
        });
        let Some(claim) = claim else { continue };
        let of_claim = claim::judge(facts, claim);
        if of_claim.verdict == Verdict::Troubled {
            for why in of_claim.why {
                judgement.say(Verdict::Troubled, format!("its claim {wanted}: {why}"));
            }
            for advice in of_claim.advice {
                judgement.advise(advice);
            }
        }
    }
}

/// Where it is, if no container has anything to say.
fn place(pod: &Value, judgement: &mut Judgement) {
    let conditions = pod["status"]["conditions"].as_array();
    let condition = |kind: &str| {
        let mut all = conditions.into_iter().flatten();
        all.find(|one| one["type"] == kind && one["status"] != "True")
    };
    let message = |one: &Value| one["message"].as_str().unwrap_or_default().to_owned();
    if let Some(unscheduled) = condition("PodScheduled") {
        let why = format!("no node takes it: {}", message(unscheduled));
        judgement.say(Verdict::Troubled, why.trim_end_matches(": "));
        judgement.advise(if message(unscheduled).contains("unschedulable") {
            "Let the node take pods again: kubectl uncordon NODE"
        } else {
            "Make room on a node, ask for less, or mend what the message names: selectors, taints, claims."
        });
        return;
    }
    match pod["spec"]["nodeName"].as_str() {
        None => judgement.say(
            Verdict::OnItsWay,
            "it waits for a scheduler to choose its node",
        ),
        Some(node) if pod["status"]["phase"] != "Running" => {
            let why = format!("the node {node} has not started its containers yet");
            judgement.say(Verdict::OnItsWay, why);
        }
        Some(_) => {
            if let Some(unready) = condition("Ready") {
                let why = format!("it runs and is not ready: {}", message(unready));
                judgement.say(Verdict::OnItsWay, why.trim_end_matches(": "));
            }
        }
    }
}

fn containers(pod: &Value, beside: Beside<'_>, judgement: &mut Judgement) {
    let of = |field: &str| pod["status"][field].as_array().into_iter().flatten();
    for container in of("initContainerStatuses") {
        // One that is over has done its part.
        if container["state"]["terminated"]["exitCode"] != 0 && container["ready"] != true {
            one(pod, container, beside, judgement);
        }
    }
    let never = pod["spec"]["restartPolicy"] == "Never";
    for container in of("containerStatuses") {
        let over = container["state"]["terminated"]["exitCode"] == 0;
        if !(over && (never || pod["spec"]["restartPolicy"] == "OnFailure")) {
            one(pod, container, beside, judgement);
        }
    }
}

fn one(pod: &Value, container: &Value, beside: Beside<'_>, judgement: &mut Judgement) {
    let now = beside.now;
    let (state, called) = (&container["state"], name_of(container));
    if state["waiting"].is_object() {
        waiting(pod, container, beside, judgement);
    } else if state["terminated"].is_object() {
        let ended = ended(&state["terminated"], now);
        judgement.say(Verdict::Troubled, format!("the container {called} {ended}"));
        judgement.advise(logs(pod, called, false));
    } else if state["running"].is_object() && container["ready"] == false {
        let before = &container["lastState"]["terminated"];
        let before = if before.is_object() {
            format!("; before, it {}", ended(before, now))
        } else {
            String::new()
        };
        let probe = beside.probe(called);
        let probe = probe.map_or(String::new(), |said| format!(": {said}"));
        let why = format!("the container {called} runs and is not ready{before}{probe}");
        judgement.say(Verdict::OnItsWay, why);
        judgement.advise(logs(pod, called, false));
    }
}

fn waiting(pod: &Value, container: &Value, beside: Beside<'_>, judgement: &mut Judgement) {
    let Beside { obstacle, now, .. } = beside;
    let called = name_of(container);
    let text = |field: &str| {
        container["state"]["waiting"][field]
            .as_str()
            .unwrap_or_default()
    };
    let image = container["image"].as_str().unwrap_or_default();
    let (reason, told) = (text("reason"), text("message"));
    let message = if told.is_empty() { reason } else { told };
    match reason {
        "CrashLoopBackOff" => {
            let restarts = container["restartCount"].as_i64().unwrap_or(0);
            let ended = ended(&container["lastState"]["terminated"], now);
            let restarts = now.map_or(String::new(), |_| {
                format!(" ({})", many(restarts, "restart"))
            });
            let why = format!("the container {called} ends again and again{restarts}: it {ended}");
            judgement.say(Verdict::Troubled, why);
            judgement.advise(logs(pod, called, true));
        }
        "ImagePullBackOff" | "ErrImagePull" | "InvalidImageName" | "ErrImageNeverPull" => {
            let why = if message.contains(image) {
                format!("the container {called} has no image: {message}")
            } else {
                format!("the container {called} has no image {image}: {message}")
            };
            judgement.say(Verdict::Troubled, why);
            judgement.advise(image_advice(image, message));
        }
        "CreateContainerConfigError" => {
            let why = format!("the container {called} cannot be made: {message}");
            judgement.say(Verdict::Troubled, why);
            judgement.advise(
                "Make the ConfigMap, Secret or key that is named, or correct the reference to it.",
            );
        }
        "" | "ContainerCreating" | "PodInitializing" => {
            let told = Some(told).filter(|told| !told.is_empty());
            let obstacle = told.or(obstacle.filter(|_| reason != "PodInitializing"));
            being_made(called, obstacle, judgement);
        }
        _ => {
            let why = format!("the container {called} cannot be started ({reason}): {message}");
            judgement.say(Verdict::Troubled, why);
        }
    }
}

fn being_made(called: &str, obstacle: Option<&str>, judgement: &mut Judgement) {
    if let Some(obstacle) = obstacle {
        let why = format!("the container {called} cannot be made: {obstacle}");
        judgement.say(Verdict::Troubled, why);
        judgement.advise("Make what is named, such as a ConfigMap, a Secret or a claim, or correct the reference to it.");
    } else {
        let why = format!("the container {called} is being made ready");
        judgement.say(Verdict::OnItsWay, why);
    }
}

/// A node without a registry says where its images come from.
fn image_advice(image: &str, message: &str) -> String {
    if message.contains("--images") {
        return "Give `neap up` a table that has the image, with --images FILE (docs/node.md shows one), or name an image that its table has.".to_owned();
    }
    format!("See whether the image {image} is there, is spelled so, and may be read from here.")
}

fn name_of(container: &Value) -> &str {
    container["name"].as_str().unwrap_or_default()
}

/// How a container ended.
fn ended(state: &Value, now: Option<Timestamp>) -> String {
    let code = state["exitCode"].as_i64().unwrap_or(0);
    let means = match (state["reason"].as_str(), code) {
        (Some("OOMKilled"), _) => ", for it used more memory than its limit",
        (_, 126) => ", for its command cannot be executed",
        (_, 127) => ", for its command was not found",
        (_, 137) => ", killed: it did not end when told to, or the machine was out of memory",
        (_, 139) => ", by an access to memory that is not there",
        (_, 143) => ", because it was told to",
        _ => "",
    };
    let ago = state["finishedAt"].as_str();
    let ago = ago.and_then(|time| time.parse().ok()).zip(now);
    let ago = ago.map_or(String::new(), |(time, now)| {
        format!(" {} ago", span(time, now))
    });
    let message = state["message"]
        .as_str()
        .map(str::trim)
        .filter(|text| !text.is_empty());
    let message = message.map_or(String::new(), |text| format!(": {text}"));
    format!("ended with code {code}{ago}{means}{message}")
}

fn logs(pod: &Value, container: &str, previous: bool) -> String {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or("default");
    let previous = if previous { " --previous" } else { "" };
    let pod = name(pod);
    format!("See what it printed: kubectl logs -n {namespace} {pod} -c {container}{previous}")
}
