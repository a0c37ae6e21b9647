//! The facts about a pod.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

/// The backoff of a container that ended soon after its first restart.
const INITIAL_BACKOFF: Duration = Duration::from_secs(10);
/// The maximum backoff.
const MAX_BACKOFF: Duration = Duration::from_mins(5);
/// A container that ran for this long resets its backoff.
const BACKOFF_RESET_AFTER: Duration = Duration::from_mins(10);

/// The message of a process that was stopped with its node.
pub const NODE_STOPPED: &str = "the node was stopped";

/// The reason of a container whose command could not be started.
pub const START_ERROR: &str = "StartError";
/// Its exit code.
const START_ERROR_CODE: i32 = 128;

/// Everything that the decision for a pod depends on.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The pod object.
    pub pod: Pod,
    /// Its containers by name.
    pub containers: BTreeMap<String, ContainerFacts>,
    /// Its own address.
    pub address: IpAddr,
    /// The node's address.
    pub node_address: IpAddr,
    /// When the node accepted the pod.
    pub accepted: Timestamp,
    /// Why its volumes are not mounted, if they are not.
    pub volumes: Result<(), WaitingReason>,
    /// When its deletion was first seen.
    pub ending_since: Option<Timestamp>,
    /// The current time.
    pub now: Timestamp,
}

/// Why something cannot be started, as a waiting state reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingReason {
    /// The reason, a word of the API.
    pub reason: &'static str,
    /// The message.
    pub message: String,
}

/// The facts about a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerFacts {
    /// Its process.
    pub process: ProcessState,
    /// How the previous process ended.
    pub previous: Option<EndedProcess>,
    /// The number of restarts.
    pub restarts: i32,
    /// The number of consecutive quick ends; each doubles the backoff.
    pub quick_ends: u32,
    /// Whether its postStart hook and its startup probe have succeeded, or it has none.
    pub started: bool,
    /// Whether its readiness probe succeeds, or it has none.
    pub ready: bool,
    /// Why it is unhealthy: a liveness or startup probe has failed.
    pub unhealthy: Option<String>,
    /// Why it cannot be started.
    pub wait_reason: Option<WaitingReason>,
    /// When its termination was requested.
    pub stop_requested_at: Option<Timestamp>,
    /// Whether it is stopped because the node stops.
    pub stopped_with_node: bool,
}

/// The process of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ProcessState {
    /// It was never started.
    #[default]
    NotStarted,
    /// It runs.
    Running {
        /// Its container id.
        id: String,
        /// When it started.
        since: Timestamp,
    },
    /// It has ended.
    Ended(EndedProcess),
}

/// A process that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedProcess {
    /// Its container id.
    pub id: String,
    /// When it started.
    pub began: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// Its exit code.
    pub code: i32,
    /// Whether its command could not be started.
    pub never_ran: bool,
    /// Why it was stopped, if it did not end by itself.
    pub message: Option<String>,
}

impl ContainerFacts {
    /// Whether the process runs.
    pub fn is_running(&self) -> bool {
        matches!(self.process, ProcessState::Running { .. })
    }

    /// Whether the container is ready.
    pub fn is_ready(&self) -> bool {
        self.started && self.ready
    }

    /// How its process ended, if it did.
    pub fn end(&self) -> Option<&EndedProcess> {
        match &self.process {
            ProcessState::Ended(end) => Some(end),
            ProcessState::NotStarted | ProcessState::Running { .. } => None,
        }
    }

    /// The end of its backoff: none before the first restart, then growing.
    pub(super) fn backoff_until(&self) -> Option<Timestamp> {
        let end = self.end()?;
        let Some(doublings) = self.quick_ends.checked_sub(1) else {
            return Some(end.ended);
        };
        let wait = INITIAL_BACKOFF.saturating_mul(1 << doublings.min(10));
        end.ended.checked_add(wait.min(MAX_BACKOFF)).ok()
    }

    /// Records that a process was started. A slow one counts as started only after its startup
    /// probe or postStart hook.
    pub fn record_start(&mut self, id: String, now: Timestamp, is_slow: bool) {
        let before = std::mem::replace(&mut self.process, ProcessState::Running { id, since: now });
        if let ProcessState::Ended(end) = before {
            let ran = end.ended.duration_since(end.began).unsigned_abs();
            self.quick_ends = if ran >= BACKOFF_RESET_AFTER {
                0
            } else {
                self.quick_ends + 1
            };
            self.restarts += 1;
            self.previous = Some(end);
        }
        self.started = !is_slow;
        self.ready = false;
        (self.unhealthy, self.wait_reason, self.stop_requested_at) = (None, None, None);
    }

    /// Records that a process could not be started, and why.
    pub fn record_start_failure(&mut self, id: String, why: &str, now: Timestamp) {
        self.record_start(id.clone(), now, false);
        self.process = ProcessState::Ended(EndedProcess {
            id,
            began: now,
            ended: now,
            code: START_ERROR_CODE,
            never_ran: true,
            message: Some(why.to_owned()),
        });
        self.started = false;
    }

    /// Records that the process ended.
    pub fn record_end(&mut self, code: i32, now: Timestamp) {
        // A process that succeeded needs no message.
        let cut_short = || (self.stopped_with_node && code != 0).then(|| NODE_STOPPED.to_owned());
        if let ProcessState::Running { id, since } = &self.process {
            self.process = ProcessState::Ended(EndedProcess {
                id: id.clone(),
                began: *since,
                ended: now,
                code,
                never_ran: false,
                message: self.unhealthy.clone().or_else(cut_short),
            });
        }
        (self.started, self.ready) = (false, false);
    }
}

impl Facts {
    pub(super) fn spec(&self) -> Option<&PodSpec> {
        self.pod.spec.as_ref()
    }

    pub(super) fn main(&self) -> &[Container] {
        self.spec().map_or(&[], |spec| &spec.containers)
    }

    pub(super) fn init(&self) -> &[Container] {
        self.spec()
            .and_then(|spec| spec.init_containers.as_deref())
            .unwrap_or_default()
    }

    pub(super) fn container(&self, container: &Container) -> ContainerFacts {
        self.containers
            .get(&container.name)
            .cloned()
            .unwrap_or_default()
    }

    pub(super) fn restart_policy(&self) -> &str {
        let policy = self.spec().and_then(|spec| spec.restart_policy.as_deref());
        policy.unwrap_or("Always")
    }

    /// The grace period of its processes.
    pub(super) fn grace(&self) -> Duration {
        let of_deletion = self.pod.metadata.deletion_grace_period_seconds;
        let own = self
            .spec()
            .and_then(|spec| spec.termination_grace_period_seconds);
        let seconds = of_deletion.or(own).unwrap_or(30);
        Duration::from_secs(seconds.max(0).unsigned_abs())
    }
}

/// Whether an init container is a sidecar.
pub(super) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}
