//! What the node knows of its pods and the server does not.

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

use super::hook::post_start;
use crate::node::{
    pod::{Ended, NODE_STOPPED, Obstacle, Process, START_ERROR, Seen},
    process::Running,
};

/// One pod.
#[derive(Debug, Clone)]
pub(super) struct Local {
    pub(super) uid: String,
    pub(super) address: Ipv4Addr,
    pub(super) accepted: Timestamp,
    pub(super) ending_since: Option<Timestamp>,
    pub(super) containers: BTreeMap<String, Seen>,
    /// Why its volumes are not in place, if they are not.
    pub(super) volumes: Result<(), Obstacle>,
    running: BTreeMap<String, (u64, Running)>,
    /// Counts what was started.
    turns: u64,
}

/// All pods of the node.
#[derive(Debug, Default)]
pub(super) struct Locals {
    all: Mutex<HashMap<Key, Local>>,
    /// Told of whenever a process has ended.
    ended: Notify,
}

impl Locals {
    fn with<T>(&self, key: &Key, change: impl FnOnce(&mut Local) -> T) -> Option<T> {
        self.all.lock().get_mut(key).map(change)
    }

    /// Whether another pod of that name is known.
    pub(super) fn is_of_another(&self, key: &Key, pod: &Pod) -> bool {
        let uid = pod.uid().unwrap_or_default();
        self.all
            .lock()
            .get(key)
            .is_some_and(|local| local.uid != uid)
    }

    /// Takes a pod in, with an address that `choose` finds beside those that are there already, and
    /// says which it has.
    pub(super) fn accept<E>(
        &self,
        key: &Key,
        pod: &Pod,
        now: Timestamp,
        choose: impl FnOnce(&HashMap<Key, Local>) -> Result<Ipv4Addr, E>,
    ) -> Result<Ipv4Addr, E> {
        let mut all = self.all.lock();
        if let Some(local) = all.get(key) {
            return Ok(local.address);
        }
        let address = choose(&all)?;
        let started = pod
            .status
            .as_ref()
            .and_then(|status| status.start_time.as_ref());
        let local = Local {
            uid: pod.uid().unwrap_or_default(),
            address,
            accepted: started.map_or(now, |time| time.0),
            ending_since: None,
            containers: remembered(pod, now),
            volumes: Ok(()),
            running: BTreeMap::new(),
            turns: 0,
        };
        all.insert(key.clone(), local);
        Ok(address)
    }

    /// What is known of a pod that was taken in. The time it has to end begins when that is seen
    /// first: the server's clock is another.
    pub(super) fn get(&self, key: &Key, pod: &Pod, now: Timestamp) -> Local {
        let mut all = self.all.lock();
        let local = all.entry(key.clone()).or_insert_with(|| Local {
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
            local.ending_since.get_or_insert(now);
        }
        local.clone()
    }

    /// Notes whether the volumes of a pod are in place, and returns what stands in the way if that
    /// is new.
    pub(super) fn note_volumes(&self, key: &Key, found: Result<(), Obstacle>) -> Option<Obstacle> {
        self.with(key, |local| {
            let is_new = local.volumes != found;
            local.volumes.clone_from(&found);
            found.err().filter(|_| is_new)
        })?
    }

    /// What stood in the way may be gone.
    pub(super) fn try_again(&self, key: &Key) {
        self.with(key, |local| {
            local
                .containers
                .values_mut()
                .for_each(|seen| seen.obstacle = None);
        });
    }

    pub(super) fn is_obstructed(&self, key: &Key) -> bool {
        let found = self.with(key, |local| {
            local
                .containers
                .values()
                .any(|seen| seen.obstacle.is_some())
        });
        found == Some(true)
    }

    pub(super) fn obstruct(&self, key: &Key, container: &str, obstacle: Obstacle) {
        self.with(key, |local| {
            let seen = local.containers.entry(container.to_owned()).or_default();
            seen.obstacle = Some(obstacle);
        });
    }

    /// Notes a process, and returns its turn, by which its end is told from that of another.
    pub(super) fn begin(
        &self,
        key: &Key,
        container: &Container,
        running: Running,
        now: Timestamp,
    ) -> u64 {
        let turn = self.with(key, |local| {
            local.turns += 1;
            let seen = local.containers.entry(container.name.clone()).or_default();
            let id = format!("{}-{}-{}", local.uid, container.name, local.turns);
            let is_slow = container.startup_probe.is_some() || post_start(container).is_some();
            seen.begin(id, now, is_slow);
            seen.ready = container.readiness_probe.is_none();
            local
                .running
                .insert(container.name.clone(), (local.turns, running));
            local.turns
        });
        turn.unwrap_or(0)
    }

    /// Notes a process that came to nothing.
    pub(super) fn fail(&self, key: &Key, container: &Container, why: &str, now: Timestamp) {
        self.with(key, |local| {
            local.turns += 1;
            let seen = local.containers.entry(container.name.clone()).or_default();
            let id = format!("{}-{}-{}", local.uid, container.name, local.turns);
            seen.fail(id, why, now);
        });
    }

    pub(super) fn end(&self, key: &Key, container: &str, turn: u64, code: i32, now: Timestamp) {
        self.with(key, |local| {
            if local
                .running
                .get(container)
                .is_some_and(|(at, _)| *at == turn)
            {
                local.running.remove(container);
                if let Some(seen) = local.containers.get_mut(container) {
                    seen.note_end(code, now);
                }
            }
        });
        self.ended.notify_waiters();
    }

    /// Notes how a container is while a process of that turn runs; whether that is new.
    pub(super) fn note(
        &self,
        key: &Key,
        container: &str,
        turn: u64,
        change: impl FnOnce(&mut Seen),
    ) -> bool {
        let changed = self.with(key, |local| {
            let is_on = local
                .running
                .get(container)
                .is_some_and(|(at, _)| *at == turn);
            let seen = local.containers.get_mut(container).filter(|_| is_on)?;
            let before = seen.clone();
            change(seen);
            Some(*seen != before)
        });
        changed.flatten() == Some(true)
    }

    /// Notes that a container is asked to end; the turn of its process and that itself, if it runs.
    pub(super) fn ask_to_end(
        &self,
        key: &Key,
        container: &str,
        now: Timestamp,
    ) -> Option<(u64, Running)> {
        let asked = self.with(key, |local| {
            if let Some(seen) = local.containers.get_mut(container) {
                seen.asked_to_end.get_or_insert(now);
            }
            local.running.get(container).cloned()
        });
        asked.flatten()
    }

    /// Kills the process of a container, if it runs.
    pub(super) fn kill(&self, key: &Key, container: &str, now: Timestamp) {
        if let Some((_, running)) = self.ask_to_end(key, container, now) {
            running.signal(Signal::SIGKILL);
        }
    }

    /// The process of a container of the pod with that uid, if one runs.
    pub(super) fn running(&self, key: &Key, uid: &str, container: &str) -> Option<Running> {
        let all = self.all.lock();
        let local = all.get(key).filter(|local| local.uid == uid)?;
        local
            .running
            .get(container)
            .map(|(_, running)| running.clone())
    }

    /// Whether anything of a pod of that name is left.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.all.lock().contains_key(key)
    }

    /// Kills what is left of a pod, and forgets it once nothing is.
    pub(super) fn leave(&self, key: &Key) -> Option<Local> {
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

    /// Notes of all processes that they end because the node does, and says which pods there are.
    pub(super) fn stop_with_node(&self) -> Vec<Key> {
        let mut all = self.all.lock();
        for seen in all
            .values_mut()
            .flat_map(|local| local.containers.values_mut())
        {
            seen.with_node = true;
        }
        all.keys().cloned().collect()
    }

    /// Sends a signal to all processes.
    pub(super) fn signal_all(&self, signal: Signal) {
        for local in self.all.lock().values() {
            for (_, running) in local.running.values() {
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
                .all(|local| local.running.is_empty())
            {
                return;
            }
            ended.await;
        }
    }
}

/// What the status says of a pod that ran under a node before this one. Its processes went with
/// that node.
fn remembered(pod: &Pod, now: Timestamp) -> BTreeMap<String, Seen> {
    let statuses = pod.status.iter().flat_map(|status| {
        let init = status.init_container_statuses.iter().flatten();
        init.chain(status.container_statuses.iter().flatten())
    });
    let seen = statuses.map(|status| (status.name.clone(), of_status(status, now)));
    seen.collect()
}

fn of_status(status: &ContainerStatus, now: Timestamp) -> Seen {
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
    let process = ended.map_or(Process::Never, |end| {
        let ended = end.finished_at.map_or(now, |time| time.0);
        Process::Ended(Ended {
            id,
            began: end.started_at.map_or(ended, |time| time.0),
            ended,
            code: end.exit_code,
            never_ran: end.reason.as_deref() == Some(START_ERROR),
            message: end.message,
        })
    });
    Seen {
        process,
        restarts: status.restart_count,
        ..Seen::default()
    }
}
