//! What the node knows of a pod.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

/// How long a container waits that ended soon after it was started again.
const FIRST_WAIT: Duration = Duration::from_secs(10);
/// And at most.
const LONGEST_WAIT: Duration = Duration::from_mins(5);
/// One that ran for so long starts counting anew.
const LONG_ENOUGH: Duration = Duration::from_mins(10);

/// Why a process ended that was ended with its node.
pub const NODE_STOPPED: &str = "the node was stopped";

/// What a container has come to whose command cannot be started.
pub const START_ERROR: &str = "StartError";
/// What stands for its exit code.
const NEVER_RAN: i32 = 128;

/// Everything that is known of a pod.
#[derive(Debug, Clone)]
pub struct Facts {
    /// As the server has it.
    pub pod: Pod,
    /// Its containers by name.
    pub containers: BTreeMap<String, Seen>,
    /// Its own address.
    pub address: IpAddr,
    /// The node's address.
    pub node_address: IpAddr,
    /// Since when the node knows it.
    pub accepted: Timestamp,
    /// Why its volumes are not in place, if they are not.
    pub volumes: Result<(), Obstacle>,
    /// Since when it is being ended.
    pub ending_since: Option<Timestamp>,
    /// What is now.
    pub now: Timestamp,
}

/// Why something cannot be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// In one word, as the API has it.
    pub reason: &'static str,
    /// In a sentence.
    pub message: String,
}

/// What is known of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Its process.
    pub process: Process,
    /// How the process before that ended.
    pub before: Option<Ended>,
    /// How often it was started again.
    pub restarts: i32,
    /// How many ends in a row came soon; each doubles the wait.
    pub hasty: u32,
    /// Its postStart hook and its startup probe have succeeded, or it has none.
    pub started: bool,
    /// Its readiness probe succeeds, or it has none.
    pub ready: bool,
    /// Its liveness or startup probe has failed for good: in words.
    pub sick: Option<String>,
    /// Why it cannot be started.
    pub obstacle: Option<Obstacle>,
    /// When it was asked to end.
    pub asked_to_end: Option<Timestamp>,
    /// It ends because the node does.
    pub with_node: bool,
}

/// A process of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Process {
    /// There was none yet.
    #[default]
    Never,
    /// There is one.
    Running {
        /// Its name for people.
        id: String,
        /// Since when.
        since: Timestamp,
    },
    /// There was one.
    Ended(Ended),
}

/// A process that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its name for people.
    pub id: String,
    /// When it began.
    pub began: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// What it said at its end.
    pub code: i32,
    /// Its command could not be started.
    pub never_ran: bool,
    /// Why, if that was not its own idea.
    pub message: Option<String>,
}

impl Seen {
    /// The process runs.
    pub fn is_running(&self) -> bool {
        matches!(self.process, Process::Running { .. })
    }

    /// It may be given work.
    pub fn is_ready(&self) -> bool {
        self.started && self.ready
    }

    /// How its process ended, if it did.
    pub fn end(&self) -> Option<&Ended> {
        match &self.process {
            Process::Ended(end) => Some(end),
            Process::Never | Process::Running { .. } => None,
        }
    }

    /// Until when it waits before it is started again: the first time not at all, then longer and
    /// longer.
    pub(super) fn waits_until(&self) -> Option<Timestamp> {
        let end = self.end()?;
        let Some(doublings) = self.hasty.checked_sub(1) else {
            return Some(end.ended);
        };
        let wait = FIRST_WAIT.saturating_mul(1 << doublings.min(10));
        end.ended.checked_add(wait.min(LONGEST_WAIT)).ok()
    }

    /// Notes that a process was started; one that is slow has not started for those who ask it.
    pub fn begin(&mut self, id: String, now: Timestamp, is_slow: bool) {
        let before = std::mem::replace(&mut self.process, Process::Running { id, since: now });
        if let Process::Ended(end) = before {
            let ran = end.ended.duration_since(end.began).unsigned_abs();
            self.hasty = if ran >= LONG_ENOUGH {
                0
            } else {
                self.hasty + 1
            };
            self.restarts += 1;
            self.before = Some(end);
        }
        self.started = !is_slow;
        self.ready = false;
        (self.sick, self.obstacle, self.asked_to_end) = (None, None, None);
    }

    /// Notes that a process came to nothing, and why.
    pub fn fail(&mut self, id: String, why: &str, now: Timestamp) {
        self.begin(id.clone(), now, false);
        self.process = Process::Ended(Ended {
            id,
            began: now,
            ended: now,
            code: NEVER_RAN,
            never_ran: true,
            message: Some(why.to_owned()),
        });
        self.started = false;
    }

    /// Notes that the process ended.
    pub fn note_end(&mut self, code: i32, now: Timestamp) {
        // One that was done by then has nothing to explain.
        let cut_short = || (self.with_node && code != 0).then(|| NODE_STOPPED.to_owned());
        if let Process::Running { id, since } = &self.process {
            self.process = Process::Ended(Ended {
                id: id.clone(),
                began: *since,
                ended: now,
                code,
                never_ran: false,
                message: self.sick.clone().or_else(cut_short),
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

    pub(super) fn seen(&self, container: &Container) -> Seen {
        self.containers
            .get(&container.name)
            .cloned()
            .unwrap_or_default()
    }

    pub(super) fn restart_policy(&self) -> &str {
        let policy = self.spec().and_then(|spec| spec.restart_policy.as_deref());
        policy.unwrap_or("Always")
    }

    /// How long its processes have to end.
    pub(super) fn grace(&self) -> Duration {
        let asked = self.pod.metadata.deletion_grace_period_seconds;
        let own = self
            .spec()
            .and_then(|spec| spec.termination_grace_period_seconds);
        let seconds = asked.or(own).unwrap_or(30);
        Duration::from_secs(seconds.max(0).unsigned_abs())
    }
}

/// An init container that stays.
pub(super) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}
