//! Rows of pods: the status is the reason that best explains the pod's state.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    age::since,
    read::{self, NONE, flag, is_true, list, number, text, text_or},
};

/// READY, STATUS, RESTARTS and, wide, address and node.
pub(super) fn pod(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = PodSummary::of(pod);
    let ip = match text(pod, "/status/podIPs/0/ip") {
        "" => text_or(pod, "/status/podIP", NONE),
        ip => ip,
    };
    vec![
        read::name(pod),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.reason.as_str().into(),
        summary.restarts_cell(now).into(),
        read::age(pod, now),
        ip.into(),
        text_or(pod, "/spec/nodeName", NONE).into(),
        text_or(pod, "/status/nominatedNodeName", NONE).into(),
        readiness_gates(pod).into(),
    ]
}

/// The row condition of a pod that will not run again.
pub(super) fn completion(pod: &Value) -> Option<Value> {
    let message = match text(pod, "/status/phase") {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!({
        "type": "Completed",
        "status": "True",
        "reason": text(pod, "/status/phase"),
        "message": message,
    }))
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return NONE.into();
    }
    let open = gates
        .iter()
        .filter(|gate| is_true(pod, text(gate, "/conditionType")));
    format!("{}/{}", open.count(), gates.len())
}

/// The summary of a pod's container statuses.
#[derive(Debug, Default)]
struct PodSummary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    /// When a container was last restarted; RFC 3339 in UTC compares as text.
    restarted: String,
}

impl PodSummary {
    fn of(pod: &Value) -> Self {
        let mut summary = Self {
            reason: text_or(pod, "/status/reason", text(pod, "/status/phase")).into(),
            total: list(pod, "/spec/containers").len() + sidecars(pod).count(),
            ..Self::default()
        };
        if let Some(scheduled) = read::condition(pod, "PodScheduled")
            && scheduled["reason"] == "SchedulingGated"
        {
            summary.reason = "SchedulingGated".into();
        }
        let initializing = summary.add_init_containers(pod);
        if !initializing || is_true(pod, "Initialized") {
            summary.add_containers(pod);
        }
        summary.add_deletion(pod);
        summary
    }

    /// Whether an init container still has to finish.
    fn add_init_containers(&mut self, pod: &Value) -> bool {
        let total = list(pod, "/spec/initContainers").len();
        for (index, status) in list(pod, "/status/initContainerStatuses")
            .iter()
            .enumerate()
        {
            self.add_restarts(status);
            if status.pointer("/state/terminated").is_some()
                && number(status, "/state/terminated/exitCode") == 0
            {
                continue;
            }
            if is_sidecar(pod, text(status, "/name")) && flag(status, "/started") {
                self.ready += usize::from(flag(status, "/ready"));
                continue;
            }
            self.reason = match state_reason(status) {
                Some(reason) if reason != "PodInitializing" => format!("Init:{reason}"),
                _ => format!("Init:{index}/{total}"),
            };
            return true;
        }
        false
    }

    fn add_containers(&mut self, pod: &Value) {
        self.keep_sidecar_restarts(pod);
        let mut running = false;
        // The first container with a reason wins, so it is visited last.
        for status in list(pod, "/status/containerStatuses").iter().rev() {
            self.add_restarts(status);
            if let Some(reason) = state_reason(status) {
                self.reason = reason;
            } else if flag(status, "/ready") && status.pointer("/state/running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        // Some containers are done while others run.
        if self.reason == "Completed" && running {
            let ready = is_true(pod, "Ready");
            self.reason = if ready { "Running" } else { "NotReady" }.into();
        }
    }

    /// Drops restarts of finished init containers once the pod runs.
    fn keep_sidecar_restarts(&mut self, pod: &Value) {
        (self.restarts, self.restarted) = (0, String::new());
        for status in list(pod, "/status/initContainerStatuses") {
            if is_sidecar(pod, text(status, "/name")) {
                self.add_restarts(status);
            }
        }
    }

    fn add_restarts(&mut self, status: &Value) {
        self.restarts += number(status, "/restartCount");
        let finished = text(status, "/lastState/terminated/finishedAt");
        if finished > self.restarted.as_str() {
            self.restarted = finished.into();
        }
    }

    fn add_deletion(&mut self, pod: &Value) {
        if text(pod, "/metadata/deletionTimestamp").is_empty() {
            return;
        }
        let done = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
        if text(pod, "/status/reason") == "NodeLost" {
            self.reason = "Unknown".into();
        } else if !done {
            self.reason = "Terminating".into();
        }
    }

    fn restarts_cell(&self, now: Timestamp) -> String {
        if self.restarts == 0 || self.restarted.is_empty() {
            return self.restarts.to_string();
        }
        format!("{} ({} ago)", self.restarts, since(&self.restarted, now))
    }
}

/// Why a container waits or has ended; `None` while it runs or is unknown.
fn state_reason(status: &Value) -> Option<String> {
    let said = |pointer| Some(text(status, pointer)).filter(|reason| !reason.is_empty());
    if let Some(reason) = said("/state/waiting/reason").or(said("/state/terminated/reason")) {
        return Some(reason.into());
    }
    let terminated = status.pointer("/state/terminated")?;
    Some(match number(terminated, "/signal") {
        0 => format!("ExitCode:{}", number(terminated, "/exitCode")),
        signal => format!("Signal:{signal}"),
    })
}

fn sidecars(pod: &Value) -> impl Iterator<Item = &Value> {
    let init = list(pod, "/spec/initContainers").iter();
    init.filter(|container| container["restartPolicy"] == "Always")
}

fn is_sidecar(pod: &Value, name: &str) -> bool {
    sidecars(pod).any(|container| container["name"] == name)
}
