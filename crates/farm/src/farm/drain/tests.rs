mod model;

use super::*;
use crate::queue::WorkerFacts;

fn pod(name: &str) -> PodFacts {
    PodFacts {
        name: name.to_owned(),
        assigned: true,
        running: true,
        ready: true,
        ..PodFacts::default()
    }
}

fn pattern(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("pod".to_owned(), name.to_owned())])
}

fn worker(name: &str, executing: bool, drained: bool) -> WorkerFacts {
    WorkerFacts {
        id: pattern(name),
        executing,
        drained,
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

struct Pool {
    pods: Vec<PodFacts>,
    drains: Vec<DrainStatus>,
    queue: Option<QueueFacts>,
    wanted: i32,
    live: i32,
    all: Option<DrainReason>,
    replacing: Option<&'static str>,
}

impl Pool {
    fn of(names: &[&str]) -> Self {
        Self {
            pods: names.iter().map(|name| pod(name)).collect(),
            drains: Vec::new(),
            queue: Some(QueueFacts::default()),
            wanted: i32::try_from(names.len()).unwrap(),
            live: i32::try_from(names.len()).unwrap(),
            all: None,
            replacing: None,
        }
    }

    fn decide(&self, seconds: i64) -> DrainDecision {
        decide(&DrainFacts {
            pods: &self.pods,
            wanted: self.wanted,
            live: self.live,
            existing: i32::try_from(self.pods.len()).unwrap(),
            all: self.all,
            replacing: self.replacing,
            drains: &self.drains,
            queue: self.queue.as_ref(),
            timeout: SignedDuration::from_secs(600),
            now: at(seconds),
        })
    }

    fn answer(&mut self, drains: &[&str], workers: &[(&str, bool, bool)]) {
        let workers = workers.iter();
        self.queue = Some(QueueFacts {
            drains: drains.iter().map(|name| pattern(name)).collect(),
            workers: workers
                .map(|(name, executing, drained)| worker(name, *executing, *drained))
                .collect(),
            ..QueueFacts::default()
        });
    }
}

#[test]
fn a_pool_that_does_not_shrink_is_not_drained() {
    let decision = Pool::of(&["a", "b"]).decide(0);
    assert_eq!(decision.replicas, 2);
    assert!(decision.drains.is_empty() && decision.add.is_empty());
    let mut growing = Pool::of(&["a"]);
    growing.wanted = 4;
    assert_eq!(growing.decide(0).replicas, 4);
}

#[test]
fn a_busy_worker_is_stopped_when_it_is_idle() {
    let mut pool = Pool::of(&["a", "b"]);
    pool.wanted = 1;
    let first = pool.decide(0);
    assert_eq!(first.add, [pattern("a")]);
    assert_eq!(first.replicas, 2);
    pool.drains = first.drains;
    pool.answer(&["a"], &[("a", true, true), ("b", true, false)]);
    let busy = pool.decide(1);
    assert_eq!((busy.replicas, busy.drains[0].running), (2, Some(1)));
    pool.drains = busy.drains;
    pool.answer(&["a"], &[("a", false, true), ("b", true, false)]);
    let idle = pool.decide(2);
    assert!(idle.drains[0].released);
    assert_eq!(idle.mark, ["a"]);
    assert_eq!(idle.replicas, 2, "the Deployment could still choose b");
    pool.drains = idle.drains;
    pool.pods[0].deletion_cost = -1000;
    assert_eq!(pool.decide(3).replicas, 1);
}

#[test]
fn an_answer_from_before_the_drain_is_not_believed() {
    let mut pool = Pool::of(&["a", "b"]);
    pool.wanted = 1;
    pool.drains = pool.decide(0).drains;
    // The drain is listed, and the worker is shown as it was before.
    pool.answer(&["a"], &[("a", false, false), ("b", false, false)]);
    assert!(!pool.decide(1).drains[0].released);
    pool.answer(&["a"], &[]);
    assert!(!pool.decide(2).drains[0].released, "it may be registering");
}

#[test]
fn a_drain_that_the_scheduler_lost_is_set_again() {
    let mut pool = Pool::of(&["a", "b"]);
    pool.wanted = 1;
    pool.drains = pool.decide(0).drains;
    pool.answer(&["a"], &[("a", false, true)]);
    pool.drains = pool.decide(1).drains;
    assert!(pool.drains[0].released);
    pool.answer(&[], &[("a", true, false)]);
    let lost = pool.decide(2);
    assert_eq!(lost.add, [pattern("a")]);
    assert!(!lost.drains[0].released);
    assert_eq!(lost.replicas, 2);
}

#[test]
fn the_bound_ends_the_wait_also_without_an_answer() {
    let mut pool = Pool::of(&["a"]);
    pool.wanted = 0;
    pool.queue = None;
    pool.drains = pool.decide(0).drains;
    assert!(!pool.decide(599).drains[0].released);
    let over = pool.decide(600);
    assert!(over.drains[0].released);
    assert_eq!(over.overdue, [("a".to_owned(), 0)]);
}

#[test]
fn pods_that_a_deployment_deletes_first_are_drained_first() {
    let mut pool = Pool::of(&["a", "b", "c"]);
    pool.pods[2].ready = false;
    pool.wanted = 2;
    assert_eq!(pool.decide(0).add, [pattern("c")]);
    pool.pods[1].assigned = false;
    assert_eq!(pool.decide(0).add, [pattern("b")]);
}

#[test]
fn another_pod_that_would_be_deleted_instead_keeps_the_replicas() {
    let mut pool = Pool::of(&["a", "b"]);
    pool.wanted = 1;
    pool.drains = pool.decide(0).drains;
    pool.answer(&["a"], &[("a", false, true), ("b", true, false)]);
    pool.drains = pool.decide(1).drains;
    pool.pods[0].deletion_cost = -1000;
    pool.pods[1].ready = false;
    let decision = pool.decide(2);
    assert_eq!(
        decision.replicas, 2,
        "b would be deleted, and it runs an action"
    );
    assert_eq!(decision.add, [pattern("b")]);
}

#[test]
fn drains_end_when_they_are_not_needed_any_more() {
    let mut pool = Pool::of(&["a", "b"]);
    pool.all = Some(DrainReason::RollOut);
    pool.drains = pool.decide(0).drains;
    assert_eq!(pool.drains.len(), 2);
    pool.all = None;
    pool.answer(&["a", "b"], &[]);
    let decision = pool.decide(1);
    assert_eq!(decision.remove.len(), 2);
    assert_eq!(
        decision.drains.len(),
        2,
        "they are recorded until they are gone"
    );
    pool.drains = decision.drains;
    pool.answer(&[], &[]);
    assert!(pool.decide(2).drains.is_empty());
}

#[test]
fn a_pod_that_ends_stays_drained() {
    let mut pool = Pool::of(&["a", "b"]);
    pool.wanted = 1;
    pool.drains = pool.decide(0).drains;
    pool.live = 1;
    pool.pods[0].deleting = true;
    pool.answer(&["a"], &[("a", false, true)]);
    let decision = pool.decide(1);
    assert!(decision.remove.is_empty());
    assert_eq!(decision.drains.len(), 1);
}

#[test]
fn a_cordoned_pool_keeps_its_pods_and_has_no_bound() {
    let mut pool = Pool::of(&["a", "b"]);
    pool.all = Some(DrainReason::Cordon);
    let decision = pool.decide(0);
    assert_eq!(decision.replicas, 2);
    assert!(decision.drains.iter().all(|drain| drain.deadline.is_none()));
    assert!(decision.mark.is_empty());
}

#[test]
fn an_unknown_queue_has_no_actions_after_the_time_in_which_workers_register() {
    let mut pool = Pool::of(&["a"]);
    pool.wanted = 0;
    pool.queue = Some(QueueFacts {
        unknown: true,
        ..QueueFacts::default()
    });
    pool.drains = pool.decide(0).drains;
    pool.drains = pool.decide(1).drains;
    assert!(!pool.drains[0].released);
    assert!(pool.decide(121).drains[0].released);
}

#[test]
fn replicas_are_counted_by_the_pods_that_are_still_there() {
    let mut pool = Pool::of(&["a", "b", "c"]);
    pool.wanted = 1;
    pool.drains = pool.decide(0).drains;
    pool.answer(
        &["a", "b"],
        &[("a", false, true), ("b", true, true), ("c", true, false)],
    );
    pool.drains = pool.decide(1).drains;
    pool.pods[0].deletion_cost = -1000;
    assert_eq!(pool.decide(2).replicas, 2);
    // The Deployment has not deleted the pod yet.
    pool.live = 2;
    assert_eq!(pool.decide(3).replicas, 2);
    pool.pods[0].deleting = true;
    assert_eq!(pool.decide(4).replicas, 2);
}

#[test]
fn pods_that_only_the_deployment_knows_of_are_not_stopped() {
    let mut pool = Pool::of(&["a"]);
    (pool.live, pool.wanted) = (3, 0);
    pool.drains = pool.decide(0).drains;
    pool.answer(&["a"], &[("a", false, true)]);
    pool.drains = pool.decide(1).drains;
    pool.pods[0].deletion_cost = -1000;
    let facts = DrainFacts {
        pods: &pool.pods,
        wanted: 0,
        live: 3,
        existing: 3,
        all: None,
        replacing: None,
        drains: &pool.drains,
        queue: pool.queue.as_ref(),
        timeout: SignedDuration::from_secs(600),
        now: at(2),
    };
    assert_eq!(decide(&facts).replicas, 2);
    assert_eq!(pool.decide(2).replicas, 0, "the Deployment has one pod too");
}

#[test]
fn pods_of_the_former_version_stay_drained_until_they_are_gone() {
    let mut pool = Pool::of(&["old-a", "old-b", "new"]);
    (pool.wanted, pool.live) = (3, 3);
    for (pod, revision) in pool.pods.iter_mut().zip(["1", "1", "2"]) {
        pod.revision = revision.to_owned();
    }
    pool.replacing = Some("2");
    let begun = pool.decide(0);
    assert_eq!(begun.add, [pattern("old-a"), pattern("old-b")]);
    pool.drains = begun.drains;
    let drains = ["old-a", "old-b"];
    let workers = [
        ("old-a", false, true),
        ("old-b", false, true),
        ("new", true, false),
    ];
    pool.answer(&drains, &workers);
    let idle = pool.decide(1);
    assert!(idle.remove.is_empty(), "each may be stopped at any moment");
    assert!(idle.mark.is_empty());
    pool.drains = idle.drains;
    // The new version does not start, so the former one goes on.
    pool.replacing = None;
    let failed = pool.decide(2);
    assert_eq!(failed.remove, [pattern("old-a"), pattern("old-b")]);
    pool.replacing = Some("2");
    pool.pods.drain(..2);
    assert_eq!(pool.decide(3).remove.len(), 2, "they are gone");
}

#[test]
fn while_two_versions_exist_any_of_them_may_lose_pods() {
    let mut pods: Vec<_> = ["old-a", "old-b", "new-a", "new-b"].map(pod).into();
    for (pod, revision) in pods.iter_mut().zip(["1", "1", "2", "2"]) {
        pod.revision = revision.to_owned();
    }
    for at in [0, 2] {
        pods[at].deletion_cost = -1000;
    }
    let names = |count| deletable(&pods, count).into_iter().collect::<Vec<_>>();
    assert_eq!(names(1), ["new-a", "old-a"]);
    assert_eq!(names(2), ["new-a", "new-b", "old-a", "old-b"]);
}

#[test]
fn without_an_answer_nothing_is_released_before_its_bound() {
    let mut pool = Pool::of(&["a", "b"]);
    pool.wanted = 1;
    pool.drains = pool.decide(0).drains;
    pool.answer(&["a"], &[("a", false, true), ("b", true, false)]);
    pool.drains = pool.decide(1).drains;
    pool.pods[0].deletion_cost = -1000;
    pool.queue = None;
    let silent = pool.decide(2);
    assert_eq!(silent.replicas, 2, "the scheduler may be restarting");
    assert_eq!(silent.add, [pattern("a")]);
    pool.drains = silent.drains;
    // It was restarted, has the drain again, and gave the worker an action in between.
    pool.answer(&["a"], &[("a", true, true), ("b", true, false)]);
    let busy = pool.decide(3);
    assert_eq!((busy.replicas, busy.drains[0].released), (2, false));
}

#[test]
fn a_queue_that_is_unknown_again_voids_what_was_counted_before() {
    let mut pool = Pool::of(&["a"]);
    pool.wanted = 0;
    pool.drains = pool.decide(0).drains;
    pool.answer(&["a"], &[("a", true, true)]);
    pool.drains = pool.decide(1).drains;
    pool.queue = Some(QueueFacts {
        unknown: true,
        ..QueueFacts::default()
    });
    pool.drains = pool.decide(500).drains;
    assert!(!pool.drains[0].released, "it may register again");
    pool.drains = pool.decide(501).drains;
    assert!(!pool.drains[0].released);
}

#[test]
fn a_pod_that_the_deployment_is_about_to_delete_stays_marked() {
    let mut pool = Pool::of(&["a", "b"]);
    (pool.wanted, pool.live) = (1, 1);
    pool.pods[0].deletion_cost = -1000;
    // The scheduler was restarted after the replicas were lowered.
    pool.answer(&[], &[("a", true, false), ("b", true, false)]);
    assert!(pool.decide(0).unmark.is_empty(), "it would choose b");
    (pool.wanted, pool.live) = (2, 2);
    assert_eq!(pool.decide(0).unmark, ["a"]);
}

#[test]
fn a_pod_that_ends_is_drained_again_after_a_restart_of_the_scheduler() {
    let mut pool = Pool::of(&["a", "b"]);
    pool.wanted = 1;
    pool.drains = pool.decide(0).drains;
    pool.live = 1;
    pool.pods[0].deleting = true;
    pool.answer(&[], &[("a", true, false)]);
    let decision = pool.decide(1);
    assert_eq!(decision.add, [pattern("a")]);
    assert_eq!(decision.drains.len(), 1);
}
