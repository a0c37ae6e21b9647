//! The state of pods that only the node has.

use std::{
    collections::{BTreeMap, HashMap},
    net::Ipv4Addr,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStateTerminated, ContainerStatus, Pod};
use kube::ResourceExt;
use neap_kit::key::Key;
use nix::sys::signal::Signal;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::hooks::post_start;
use crate::node::{
    pod::{ContainerFacts, EndedProcess, NODE_STOPPED, ProcessState, START_ERROR, WaitingReason},
    process::RunningProcess,
};

/// The local state of one pod.
#[derive(Debug, Clone)]
pub(super) struct PodState {
    pub(super) uid: String,
    pub(super) address: Ipv4Addr,
    pub(super) accepted: Timestamp,
    pub(super) ending_since: Option<Timestamp>,
    pub(super) containers: BTreeMap<String, ContainerFacts>,
    /// Why its volumes are not mounted, if they are not.
    pub(super) volumes: Result<(), WaitingReason>,
    running: BTreeMap<String, (u64, RunningProcess)>,
    /// The number of started processes.
    turns: u64,
}

/// The local state of all pods of the node.
#[derive(Debug, Default)]
pub(super) struct PodStates {
    all: Mutex<HashMap<Key, PodState>>,
    /// Notified whenever a process has ended.
    ended: Notify,
}

impl PodStates {
    fn update<T>(&self, key: &Key, change: impl FnOnce(&mut PodState) -> T) -> Option<T> {
        self.all.lock().get_mut(key).map(change)
    }

    /// Whether the state is that of another pod of that name.
    pub(super) fn belongs_to_another(&self, key: &Key, pod: &Pod) -> bool {
        let uid = pod.uid().unwrap_or_default();
        self.all
            .lock()
            .get(key)
            .is_some_and(|state| state.uid != uid)
    }

    /// Adds a pod, with an address that `choose` finds beside the existing ones, and returns its
    /// address.
    pub(super) fn admit<E>(
        &self,
        key: &Key,
        pod: &Pod,
        now: Timestamp,
        choose: impl FnOnce(&HashMap<Key, PodState>) -> Result<Ipv4Addr, E>,
    ) -> Result<Ipv4Addr, E> {
        let mut all = self.all.lock();
        if let Some(state) = all.get(key) {
            return Ok(state.address);
        }
        let address = choose(&all)?;
        let started = pod
            .status
            .as_ref()
            .and_then(|status| status.start_time.as_ref());
        let state = PodState {
            uid: pod.uid().unwrap_or_default(),
            address,
            accepted: started.map_or(now, |time| time.0),
            ending_since: None,
            containers: restored(pod, now),
            volumes: Ok(()),
            running: BTreeMap::new(),
            turns: 0,
        };
        all.insert(key.clone(), state);
        Ok(address)
    }

    /// The state of an admitted pod. Its grace period begins when its deletion is first seen: the
    /// API server's clock may differ.
    pub(super) fn get(&self, key: &Key, pod: &Pod, now: Timestamp) -> PodState {
        let mut all = self.all.lock();
        let state = all.entry(key.clone()).or_insert_with(|| PodState {
            uid: pod.uid().unwrap_or_default(),
            address: Ipv4Addr::LOCALHOST,
            accepted: now,
            ending_since: None,
            containers: BTreeMap::new(),
            volumes: Ok(()),
            running: BTreeMap::new(),
            turns: 0,
        });
        if pod.metadata.deletion_timestamp.is_some() {
            state.ending_since.get_or_insert(now);
        }
        state.clone()
    }

    /// Records whether the volumes of a pod are mounted, and returns the error if it is new.
    pub(super) fn record_volumes(
        &self,
        key: &Key,
        found: Result<(), WaitingReason>,
    ) -> Option<WaitingReason> {
        self.update(key, |state| {
            let is_new = state.volumes != found;
            state.volumes.clone_from(&found);
            found.err().filter(|_| is_new)
        })?
    }

    /// Clears the start errors: their causes may be gone.
    pub(super) fn clear_wait_reasons(&self, key: &Key) {
        self.update(key, |state| {
            state
                .containers
                .values_mut()
                .for_each(|observed| observed.wait_reason = None);
        });
    }

    pub(super) fn has_wait_reason(&self, key: &Key) -> bool {
        let found = self.update(key, |state| {
            state
                .containers
                .values()
                .any(|observed| observed.wait_reason.is_some())
        });
        found == Some(true)
    }

    pub(super) fn set_wait_reason(&self, key: &Key, container: &str, wait_reason: WaitingReason) {
        self.update(key, |state| {
            let observed = state.containers.entry(container.to_owned()).or_default();
            observed.wait_reason = Some(wait_reason);
        });
    }

    /// Records a process, and returns its turn number, which identifies it in later calls.
    pub(super) fn record_start(
        &self,
        key: &Key,
        container: &Container,
        running: RunningProcess,
        now: Timestamp,
    ) -> u64 {
        let turn = self.update(key, |state| {
            state.turns += 1;
            let observed = state.containers.entry(container.name.clone()).or_default();
            let id = format!("{}-{}-{}", state.uid, container.name, state.turns);
            let is_slow = container.startup_probe.is_some() || post_start(container).is_some();
            observed.record_start(id, now, is_slow);
            observed.ready = container.readiness_probe.is_none();
            state
                .running
                .insert(container.name.clone(), (state.turns, running));
            state.turns
        });
        turn.unwrap_or(0)
    }

    /// Records a process that could not be started.
    pub(super) fn record_start_failure(
        &self,
        key: &Key,
        container: &Container,
        why: &str,
        now: Timestamp,
    ) {
        self.update(key, |state| {
            state.turns += 1;
            let observed = state.containers.entry(container.name.clone()).or_default();
            let id = format!("{}-{}-{}", state.uid, container.name, state.turns);
            observed.record_start_failure(id, why, now);
        });
    }

    pub(super) fn record_end(
        &self,
        key: &Key,
        container: &str,
        turn: u64,
        code: i32,
        now: Timestamp,
    ) {
        self.update(key, |state| {
            if state
                .running
                .get(container)
                .is_some_and(|(at, _)| *at == turn)
            {
                state.running.remove(container);
                if let Some(observed) = state.containers.get_mut(container) {
                    observed.record_end(code, now);
                }
            }
        });
        self.ended.notify_waiters();
    }

    /// Changes the state of a container if the process of that turn still runs; true if it changed.
    pub(super) fn update_running(
        &self,
        key: &Key,
        container: &str,
        turn: u64,
        change: impl FnOnce(&mut ContainerFacts),
    ) -> bool {
        let changed = self.update(key, |state| {
            let is_on = state
                .running
                .get(container)
                .is_some_and(|(at, _)| *at == turn);
            let observed = state.containers.get_mut(container).filter(|_| is_on)?;
            let before = observed.clone();
            change(observed);
            Some(*observed != before)
        });
        changed.flatten() == Some(true)
    }

    /// Records the request to end a container; returns its turn and process, if it runs.
    pub(super) fn request_stop(
        &self,
        key: &Key,
        container: &str,
        now: Timestamp,
    ) -> Option<(u64, RunningProcess)> {
        let running = self.update(key, |state| {
            if let Some(observed) = state.containers.get_mut(container) {
                observed.stop_requested_at.get_or_insert(now);
            }
            state.running.get(container).cloned()
        });
        running.flatten()
    }

    /// Kills the process of a container, if it runs.
    pub(super) fn kill(&self, key: &Key, container: &str, now: Timestamp) {
        if let Some((_, running)) = self.request_stop(key, container, now) {
            running.signal(Signal::SIGKILL);
        }
    }

    /// The process of a container of the pod with that uid, if one runs.
    pub(super) fn running(&self, key: &Key, uid: &str, container: &str) -> Option<RunningProcess> {
        let all = self.all.lock();
        let state = all.get(key).filter(|state| state.uid == uid)?;
        state
            .running
            .get(container)
            .map(|(_, running)| running.clone())
    }

    /// Whether there is state of a pod of that name.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.all.lock().contains_key(key)
    }

    /// Kills the remaining processes of a pod, and drops its state once there are none.
    pub(super) fn remove(&self, key: &Key) -> Option<PodState> {
        let mut all = self.all.lock();
        let running = &all.get(key)?.running;
        for (_, running) in running.values() {
            running.signal(Signal::SIGKILL);
        }
        if running.is_empty() {
            all.remove(key)
        } else {
            None
        }
    }

    /// Marks all processes as stopped by the node, and returns the keys of all pods.
    pub(super) fn mark_stopped_with_node(&self) -> Vec<Key> {
        let mut all = self.all.lock();
        for observed in all
            .values_mut()
            .flat_map(|state| state.containers.values_mut())
        {
            observed.stopped_with_node = true;
        }
        all.keys().cloned().collect()
    }

    /// Sends a signal to all processes.
    pub(super) fn signal_all(&self, signal: Signal) {
        for state in self.all.lock().values() {
            for (_, running) in state.running.values() {
                running.signal(signal);
            }
        }
    }

    /// Resolves once no process runs.
    pub(super) async fn all_ended(&self) {
        loop {
            let ended = self.ended.notified();
            if self
                .all
                .lock()
                .values()
                .all(|state| state.running.is_empty())
            {
                return;
            }
            ended.await;
        }
    }
}

/// The state of a pod that ran under a former node process, from its status. Its processes ended
/// with that node.
fn restored(pod: &Pod, now: Timestamp) -> BTreeMap<String, ContainerFacts> {
    let statuses = pod.status.iter().flat_map(|status| {
        let init = status.init_container_statuses.iter().flatten();
        init.chain(status.container_statuses.iter().flatten())
    });
    let observed = statuses.map(|status| (status.name.clone(), restored_container(status, now)));
    observed.collect()
}

fn restored_container(status: &ContainerStatus, now: Timestamp) -> ContainerFacts {
    let state = status.state.clone().unwrap_or_default();
    let id = status.container_id.as_deref().unwrap_or_default();
    let id = id.trim_start_matches("process://").to_owned();
    let last = status.last_state.clone().and_then(|state| state.terminated);
    let ended = match (state.running, state.terminated) {
        (Some(running), _) => Some(ContainerStateTerminated {
            exit_code: 137,
            message: Some(NODE_STOPPED.to_owned()),
            started_at: running.started_at,
            ..ContainerStateTerminated::default()
        }),
        (None, Some(end)) => Some(end),
        (None, None) => last,
    };
    let process = ended.map_or(ProcessState::NotStarted, |end| {
        let ended = end.finished_at.map_or(now, |time| time.0);
        ProcessState::Ended(EndedProcess {
            id,
            began: end.started_at.map_or(ended, |time| time.0),
            ended,
            code: end.exit_code,
            never_ran: end.reason.as_deref() == Some(START_ERROR),
            message: end.message,
        })
    });
    ContainerFacts {
        process,
        restarts: status.restart_count,
        ..ContainerFacts::default()
    }
}
