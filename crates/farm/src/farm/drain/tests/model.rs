//! Pools that grow and shrink at random, with a scheduler that gives old answers, none, restarts at any
//! moment, or loses its drains, and a ReplicaSet that is slow and chooses at random among pods of equal rank.
//!
//! A pod that is deleted finishes its actions: its worker takes no further one, and its grace is longer than
//! any action. Checked: when the replicas are lowered, every pod that may be deleted for it is drained and
//! idle, or its bound has passed. A deleted pod has an action only if the scheduler restarted since, and
//! that action ends by itself.

use super::*;
use crate::queue::WorkerFacts;

/// No action takes longer.
const LONGEST: i64 = 60;
const TIMEOUT: i64 = 300;

/// Small and reproducible.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

struct Model {
    random: Random,
    pods: Vec<PodFacts>,
    /// Until when each worker is busy. Deleted pods stay until they are idle.
    busy: BTreeMap<String, i64>,
    /// When each pod was deleted.
    deleted: BTreeMap<String, i64>,
    /// The drains of the scheduler.
    scheduler: BTreeSet<String>,
    restarted_at: i64,
    lowered_at: i64,
    /// The recorded drains.
    drains: Vec<DrainStatus>,
    old: Option<QueueFacts>,
    live: i32,
    wanted: i32,
    created: u32,
    /// Pods that were deleted, and of these those that had an action before their bound.
    stopped: u32,
    interrupted: u32,
    /// Actions that ended by themselves.
    finished: usize,
}

impl Model {
    fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            pods: Vec::new(),
            busy: BTreeMap::new(),
            deleted: BTreeMap::new(),
            scheduler: BTreeSet::new(),
            restarted_at: -1,
            lowered_at: -1,
            drains: Vec::new(),
            old: None,
            live: 4,
            wanted: 4,
            created: 0,
            stopped: 0,
            interrupted: 0,
            finished: 0,
        }
    }

    fn truth(&self) -> QueueFacts {
        QueueFacts {
            drains: self.scheduler.iter().map(|name| pattern(name)).collect(),
            workers: self
                .pods
                .iter()
                .map(|pod| WorkerFacts {
                    id: pattern(&pod.name),
                    executing: self.busy.contains_key(&pod.name),
                    drained: self.scheduler.contains(&pod.name),
                })
                .collect(),
            ..QueueFacts::default()
        }
    }

    fn answer(&mut self) -> Option<QueueFacts> {
        let truth = self.truth();
        match self.random.below(10) {
            0 => None,
            1 => {
                // Workers as they were, with drains as they are.
                let old = self.old.clone().unwrap_or_else(|| truth.clone());
                Some(QueueFacts {
                    drains: truth.drains,
                    ..old
                })
            }
            _ => {
                if self.random.once_in(8) {
                    self.old = Some(truth.clone());
                }
                Some(truth)
            }
        }
    }

    fn restart_sometimes(&mut self, times: u64, now: i64) -> bool {
        let restarts = self.random.once_in(times);
        if restarts {
            // Drains and old lists are gone.
            self.scheduler.clear();
            self.old = None;
            self.restarted_at = now;
        }
        restarts
    }

    fn tick(&mut self, now: i64) {
        if self.random.once_in(40) {
            self.wanted = i32::try_from(self.random.below(6)).unwrap();
        }
        self.restart_sometimes(60, now);
        self.work(now);
        let queue = self.answer();
        let decision = decide(&DrainFacts {
            pods: &self.pods,
            wanted: self.wanted,
            live: self.live,
            existing: i32::try_from(alive(&self.pods).count()).unwrap(),
            all: None,
            replacing: None,
            drains: &self.drains,
            queue: queue.as_ref(),
            timeout: SignedDuration::from_secs(TIMEOUT),
            now: at(now),
        });
        // After the answer, and before anything is written.
        let restarted = self.restart_sometimes(100, now);
        if restarted {
            self.work(now);
        }
        self.carry_out(decision, now, restarted);
        self.restart_sometimes(60, now);
        self.work(now);
        self.replica_set(now);
    }

    /// In the order in which the writes are made.
    fn carry_out(&mut self, decision: DrainDecision, now: i64, restarted: bool) {
        for removed in &decision.remove {
            self.scheduler.remove(&removed["pod"]);
            self.old = None;
        }
        for pod in &mut self.pods {
            if decision.mark.contains(&pod.name) {
                pod.deletion_cost = -1000;
            }
            if decision.unmark.contains(&pod.name) {
                pod.deletion_cost = 0;
            }
        }
        if decision.replicas < self.live {
            self.lowered_at = now;
            let count = alive(&self.pods).count();
            let replicas = usize::try_from(decision.replicas).unwrap();
            for name in deletable(&self.pods, count.saturating_sub(replicas)) {
                let is_idle = !self.busy.contains_key(&name) && self.scheduler.contains(&name);
                assert!(
                    is_idle || restarted || is_due(&decision.drains, &name, now),
                    "{name} may be stopped at {now} with an action"
                );
            }
        }
        self.live = decision.replicas;
        self.drains = decision.drains;
        for added in &decision.add {
            if !self.random.once_in(5) {
                self.scheduler.insert(added["pod"].clone());
            }
        }
    }

    /// Workers get actions unless they are drained or stopped, and finish them.
    fn work(&mut self, now: i64) {
        let before = self.busy.len();
        self.busy.retain(|_, until| *until > now);
        self.finished += before - self.busy.len();
        for at in 0..self.pods.len() {
            let name = self.pods[at].name.clone();
            if !self.busy.contains_key(&name)
                && !self.scheduler.contains(&name)
                && !self.pods[at].deleting
                && self.random.once_in(2)
            {
                let takes = 1 + i64::try_from(self.random.below(60)).unwrap();
                self.busy.insert(name, now + takes);
            }
        }
    }

    fn replica_set(&mut self, now: i64) {
        let (busy, deleted) = (&self.busy, &self.deleted);
        self.pods.retain(|pod| {
            let has_action = busy.contains_key(&pod.name);
            let killed_at = deleted.get(&pod.name).map_or(i64::MAX, |at| at + LONGEST);
            assert!(!has_action || now <= killed_at, "{} is killed", pod.name);
            !pod.deleting || has_action
        });
        let count = i32::try_from(alive(&self.pods).count()).unwrap();
        for _ in count..self.live {
            self.created += 1;
            self.pods.push(pod(&format!("pod-{}", self.created)));
        }
        if self.random.once_in(3) {
            // It is slow.
            return;
        }
        for _ in self.live..count {
            let lowest = alive(&self.pods).map(rank).min().unwrap();
            let candidates: Vec<_> = (0..self.pods.len())
                .filter(|at| !self.pods[*at].deleting && rank(&self.pods[*at]) == lowest)
                .collect();
            let chosen = self.random.below(candidates.len() as u64);
            self.delete(candidates[usize::try_from(chosen).unwrap()], now);
        }
    }

    fn delete(&mut self, at: usize, now: i64) {
        let pod = &mut self.pods[at];
        pod.deleting = true;
        self.stopped += 1;
        let name = pod.name.clone();
        self.deleted.insert(name.clone(), now);
        if self.busy.contains_key(&name) && !is_due(&self.drains, &name, now) {
            self.interrupted += 1;
            assert!(
                self.restarted_at >= self.lowered_at,
                "{name} was stopped at {now} with an action"
            );
        }
    }
}

fn is_due(drains: &[DrainStatus], name: &str, now: i64) -> bool {
    let drain = drains.iter().find(|drain| drain.pattern == pattern(name));
    let deadline = drain.and_then(|drain| drain.deadline);
    deadline.is_some_and(|deadline| deadline <= at(now))
}

#[test]
fn no_worker_is_stopped_with_an_action_and_none_is_killed_with_one() {
    let (mut stopped, mut interrupted, mut finished) = (0, 0, 0);
    for seed in 0..200 {
        let mut model = Model::new(seed);
        for now in 0..600 {
            model.tick(now);
        }
        stopped += model.stopped;
        interrupted += model.interrupted;
        finished += model.finished;
    }
    // Little would be proved if little happened.
    assert!(stopped > 1500, "only {stopped} pods were deleted");
    assert!(finished > 10_000, "only {finished} actions ended");
    assert!(
        interrupted > 0,
        "no restart met a pod that was to be deleted"
    );
    assert!(
        interrupted * 20 < stopped,
        "{interrupted} of {stopped} pods were asked to stop with an action"
    );
}
