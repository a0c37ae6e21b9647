//! Pools that grow and shrink at random, with a scheduler that gives old answers, none, or loses its drains, and
//! a ReplicaSet that chooses at random among pods of equal rank. Checked: no pod with a running action is deleted
//! before the bound of its drain.

use super::*;
use crate::queue::WorkerFacts;

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
    busy: BTreeSet<String>,
    /// The drains of the scheduler.
    scheduler: BTreeSet<String>,
    /// The recorded drains.
    drains: Vec<DrainStatus>,
    old: Option<QueueFacts>,
    live: i32,
    wanted: i32,
    created: u32,
    deleted: u32,
}

impl Model {
    fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            pods: Vec::new(),
            busy: BTreeSet::new(),
            scheduler: BTreeSet::new(),
            drains: Vec::new(),
            old: None,
            live: 4,
            wanted: 4,
            created: 0,
            deleted: 0,
        }
    }

    fn truth(&self) -> QueueFacts {
        let alive = self.pods.iter();
        QueueFacts {
            drains: self.scheduler.iter().map(|name| pattern(name)).collect(),
            workers: alive
                .map(|pod| WorkerFacts {
                    id: pattern(&pod.name),
                    executing: self.busy.contains(&pod.name),
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

    fn tick(&mut self, seconds: i64) {
        if self.random.once_in(40) {
            self.wanted = i32::try_from(self.random.below(6)).unwrap();
        }
        if self.random.once_in(60) {
            // The scheduler restarts: drains and old lists are gone.
            self.scheduler.clear();
            self.old = None;
        }
        self.work();
        let queue = self.answer();
        let decision = decide(&DrainFacts {
            pods: &self.pods,
            wanted: self.wanted,
            live: self.live,
            existing: i32::try_from(alive(&self.pods).count()).unwrap(),
            all: None,
            drains: &self.drains,
            queue: queue.as_ref(),
            timeout: SignedDuration::from_secs(300),
            now: at(seconds),
        });
        // In the order in which a decision is carried out.
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
        self.live = decision.replicas;
        self.drains = decision.drains;
        for added in &decision.add {
            if !self.random.once_in(5) {
                self.scheduler.insert(added["pod"].clone());
            }
        }
        self.replica_set(seconds);
    }

    /// Workers get actions unless they are drained, and finish them.
    fn work(&mut self) {
        for at in 0..self.pods.len() {
            let name = self.pods[at].name.clone();
            if self.busy.contains(&name) {
                if self.random.once_in(20) {
                    self.busy.remove(&name);
                }
            } else if !self.scheduler.contains(&name)
                && !self.pods[at].deleting
                && self.random.once_in(2)
            {
                self.busy.insert(name);
            }
        }
    }

    fn replica_set(&mut self, seconds: i64) {
        self.pods.retain(|pod| !pod.deleting);
        let count = i32::try_from(self.pods.len()).unwrap();
        for _ in count..self.live {
            self.created += 1;
            self.pods.push(pod(&format!("pod-{}", self.created)));
        }
        if self.random.once_in(3) {
            // It is slow.
            return;
        }
        for _ in self.live..count {
            let lowest = self
                .pods
                .iter()
                .filter(|pod| !pod.deleting)
                .map(rank)
                .min()
                .unwrap();
            let candidates: Vec<_> = (0..self.pods.len())
                .filter(|at| !self.pods[*at].deleting && rank(&self.pods[*at]) == lowest)
                .collect();
            let chosen = self.random.below(candidates.len() as u64);
            let chosen = candidates[usize::try_from(chosen).unwrap()];
            self.delete(chosen, seconds);
        }
    }

    fn delete(&mut self, at: usize, seconds: i64) {
        let pod = &mut self.pods[at];
        pod.deleting = true;
        self.deleted += 1;
        let drain = self
            .drains
            .iter()
            .find(|drain| drain.pattern == pattern(&pod.name));
        let due = drain
            .and_then(|drain| drain.deadline)
            .is_some_and(|it| it <= super::at(seconds));
        let name = pod.name.clone();
        assert!(
            due || !self.busy.contains(&name),
            "{name} was stopped at {seconds} with an action"
        );
        self.busy.remove(&name);
    }
}

#[test]
fn no_worker_with_an_action_is_stopped_before_its_bound() {
    let mut deleted = 0;
    for seed in 0..200 {
        let mut model = Model::new(seed);
        for seconds in 0..600 {
            model.tick(seconds);
        }
        deleted += model.deleted;
    }
    assert!(
        deleted > 2000,
        "only {deleted} pods were deleted, so little was proved"
    );
}
