use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use proptest::prelude::*;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::clock::{Clock, Uptime};

const SECOND: Duration = Duration::from_secs(1);
const START: Uptime = Uptime::ZERO;

fn change(queue: &mut Queue<&'static str>, key: &'static str) {
    queue.add(key, Priority::Change, START, START);
}

#[test]
fn changes_run_before_resyncs_and_each_in_order_of_arrival() {
    let mut queue = Queue::default();
    queue.add("old", Priority::Resync, START, START);
    change(&mut queue, "first");
    change(&mut queue, "second");
    let order: Vec<_> = (0..3).map(|_| queue.next(START)).collect();
    assert_eq!(order, ["first", "second", "old"].map(NextKey::Run));
}

#[test]
fn a_queued_resync_that_becomes_a_change_gets_the_priority_of_a_change() {
    let mut queue = Queue::default();
    queue.add("a", Priority::Resync, START, START);
    queue.add("b", Priority::Change, START, START);
    queue.add("a", Priority::Change, START, START);
    queue.add("b", Priority::Resync, START, START);
    let order: Vec<_> = (0..2).map(|_| queue.next(START)).collect();
    assert_eq!(order, ["b", "a"].map(NextKey::Run));
    assert_eq!(queue.next(START), NextKey::Idle);
}

#[test]
fn a_flood_of_changes_does_not_starve_resyncs() {
    let mut queue = Queue::default();
    queue.add(1_000, Priority::Resync, START, START);
    for key in 0..100 {
        queue.add(key, Priority::Change, START, START);
    }
    let position = (0..101).position(|_| queue.next(START) == NextKey::Run(1_000));
    assert_eq!(position, Some(16));
}

#[test]
fn a_key_added_while_it_runs_runs_once_more() {
    let mut queue = Queue::default();
    change(&mut queue, "a");
    assert_eq!(queue.next(START), NextKey::Run("a"));
    change(&mut queue, "a");
    change(&mut queue, "a");
    assert_eq!(queue.next(START), NextKey::Idle, "one at a time");
    queue.done(&"a", None, START);
    assert_eq!(queue.next(START), NextKey::Run("a"));
    queue.done(&"a", None, START);
    assert_eq!((queue.next(START), queue.waiting()), (NextKey::Idle, 0));
}

#[test]
fn a_failed_key_is_delayed_until_something_changes() {
    let mut queue = Queue::default();
    change(&mut queue, "a");
    queue.next(START);
    queue.failed(&"a", |_| 10 * SECOND, START);
    assert_eq!(queue.next(START), NextKey::Wait(10 * SECOND));
    assert_eq!(queue.failing().collect::<Vec<_>>(), [(&"a", 1)]);
    change(&mut queue, "a");
    assert_eq!(queue.next(START), NextKey::Run("a"));
    queue.failed(
        &"a",
        |failures| u32::from(failures == 2) * 20 * SECOND,
        START,
    );
    assert_eq!(
        queue.next(START),
        NextKey::Wait(20 * SECOND),
        "failures add up"
    );
}

#[test]
fn delays_grow_to_the_maximum_and_have_jitter() {
    let backoff = Backoff {
        first: SECOND,
        max: 60 * SECOND,
    };
    let mut waits = HashSet::new();
    for failures in 1..40 {
        let full = (SECOND * (1 << (failures - 1).min(6))).min(60 * SECOND);
        for key in 0..20 {
            let wait = backoff.wait(&key, failures);
            assert!(wait <= full && wait >= full * 3 / 4, "{failures} {wait:?}");
            waits.insert(wait);
        }
    }
    assert!(waits.len() > 500, "{} of 780 waits differ", waits.len());
}

#[derive(Debug, Clone)]
enum QueueStep {
    Add(u8, bool, u64),
    Next,
    Done(u8, Option<u64>),
    Fail(u8, u64),
    Pass(u64),
}

fn queue_steps() -> impl Strategy<Value = Vec<QueueStep>> {
    let key = 0..5_u8;
    let one = prop_oneof![
        3 => (key.clone(), any::<bool>(), 0..5_u64).prop_map(|(key, hurry, after)| QueueStep::Add(key, hurry, after)),
        4 => Just(QueueStep::Next),
        3 => (key.clone(), prop::option::of(0..9_u64)).prop_map(|(key, again)| QueueStep::Done(key, again)),
        2 => (key, 1..9_u64).prop_map(|(key, wait)| QueueStep::Fail(key, wait)),
        2 => (0..4_u64).prop_map(QueueStep::Pass),
    ];
    prop::collection::vec(one, 1..120)
}

proptest! {
    /// Compared with a model that only holds for each key when it is due.
    #[test]
    fn no_key_is_lost_and_none_runs_twice_at_a_time(script in queue_steps()) {
        let mut queue = Queue::default();
        let mut due: HashMap<u8, u64> = HashMap::new();
        let (mut running, mut now) = (HashMap::<u8, Option<u64>>::new(), 0);
        let earlier = |current: Option<u64>, at: u64| current.map_or(at, |current| current.min(at));
        for step in script {
            let time = Duration::from_secs(now);
            match step {
                QueueStep::Pass(seconds) => now += seconds,
                QueueStep::Add(key, hurry, after) => {
                    let priority = if hurry { Priority::Change } else { Priority::Resync };
                    queue.add(key, priority, Duration::from_secs(now + after), time);
                    match running.get_mut(&key) {
                        Some(since) => *since = Some(earlier(*since, now + after)),
                        None => drop(due.insert(key, earlier(due.get(&key).copied(), now + after))),
                    }
                }
                QueueStep::Next => match queue.next(time) {
                    NextKey::Run(key) => {
                        prop_assert!(!running.contains_key(&key), "{key} runs twice");
                        let at = due.remove(&key);
                        prop_assert!(at.is_some_and(|at| at <= now), "{key} runs at {now}, due {at:?}");
                        running.insert(key, None);
                    }
                    NextKey::Wait(until) => {
                        prop_assert_eq!(due.values().min().copied(), Some(until.as_secs()));
                        prop_assert!(until > time);
                    }
                    NextKey::Idle => prop_assert!(due.is_empty(), "{due:?} is lost"),
                },
                QueueStep::Done(key, again) => {
                    queue.done(&key, again.map(|after| Duration::from_secs(now + after)), time);
                    if let Some(since) = running.remove(&key) {
                        let at = [since, again.map(|after| now + after)].into_iter().flatten().min();
                        due.extend(at.map(|at| (key, at)));
                    }
                }
                QueueStep::Fail(key, wait) => {
                    queue.failed(&key, |_| Duration::from_secs(now + wait), time);
                    if let Some(since) = running.remove(&key) {
                        due.insert(key, earlier(since, now + wait));
                    }
                }
            }
            prop_assert_eq!(queue.running(), running.len());
            prop_assert_eq!(queue.waiting(), due.len());
        }
    }
}

/// Runs a controller until `script` ends.
async fn run_during<F, Fut, E>(
    controller: Controller<&'static str>,
    reconcile: F,
    script: impl Future<Output = ()>,
) where
    F: Fn(&'static str) -> Fut,
    Fut: Future<Output = Result<Outcome, E>> + Send + 'static,
    E: std::fmt::Display + Send + 'static,
{
    let stop = CancellationToken::new();
    let ended = async {
        script.await;
        stop.cancel();
    };
    tokio::join!(controller.run(reconcile, stop.clone()), ended);
}

#[tokio::test(start_paused = true)]
async fn every_key_is_reconciled_again_without_a_change() {
    let clock = Clock::system();
    let controller = Controller::new(ControllerOptions::new("test"), clock);
    let reconciles = Arc::new(AtomicUsize::new(0));
    let counted = reconciles.clone();
    let enqueuer = controller.enqueuer();
    let reconcile = move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, Infallible>(Outcome::Done) }
    };
    run_during(controller, reconcile, async {
        enqueuer.enqueue("a");
        clock.sleep(Duration::from_hours(6)).await;
    })
    .await;
    let reconciles = reconciles.load(Ordering::Relaxed);
    assert!(
        (12..=17).contains(&reconciles),
        "{reconciles} reconciles in six hours"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_fails_panics_or_hangs_delays_no_other_key() {
    let clock = Clock::system();
    let options = ControllerOptions {
        concurrency: 2,
        ..ControllerOptions::new("test")
    };
    let controller = Controller::new(options, clock);
    let log = Arc::new(Mutex::new(Vec::new()));
    let enqueuer = controller.enqueuer();
    let entries = log.clone();
    let reconcile = move |key: &'static str| {
        entries.lock().push((key, clock.uptime()));
        async move {
            match key {
                "fails" => Err("refused"),
                "panics" => panic!("a bug, on purpose"),
                "hangs" => std::future::pending().await,
                _ => Ok(Outcome::Gone),
            }
        }
    };
    run_during(controller, reconcile, async {
        for key in ["hangs", "fails", "panics"] {
            enqueuer.enqueue(key);
        }
        clock.sleep(SECOND).await;
        enqueuer.enqueue("fine");
        clock.sleep(Duration::from_mins(3)).await;
    })
    .await;
    let log = log.lock();
    let times = |key| log.iter().filter(|(logged, _)| *logged == key).count();
    assert!(log.contains(&("fine", SECOND)), "{log:?}");
    assert_eq!(times("fine"), 1);
    for key in ["fails", "panics"] {
        assert!((8..=14).contains(&times(key)), "{key}: {}", times(key));
    }
    assert_eq!(times("hangs"), 4, "each attempt takes its whole timeout");
}

#[tokio::test(start_paused = true)]
async fn concurrency_is_limited_and_a_stop_waits_for_running_reconciles() {
    let clock = Clock::system();
    let options = ControllerOptions {
        concurrency: 3,
        ..ControllerOptions::new("test")
    };
    let controller = Controller::new(options, clock);
    let enqueuer = controller.enqueuer();
    let (now, max, ended) = <(Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let counters = (now, max.clone(), ended.clone());
    let reconcile = move |_| {
        let (now, max, ended) = counters.clone();
        async move {
            max.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            clock.sleep(10 * SECOND).await;
            now.fetch_sub(1, Ordering::Relaxed);
            ended.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(Outcome::Gone)
        }
    };
    run_during(controller, reconcile, async {
        for key in ["a", "b", "c", "d", "e"] {
            enqueuer.enqueue(key);
        }
        clock.sleep(15 * SECOND).await;
    })
    .await;
    assert_eq!(max.load(Ordering::Relaxed), 3);
    assert_eq!(
        ended.load(Ordering::Relaxed),
        5,
        "the stop waited for the two that were running"
    );
}

#[tokio::test(start_paused = true)]
async fn no_reconcile_starts_while_another_process_leads_and_no_key_is_lost() {
    let clock = Clock::system();
    let (setter, leadership) = crate::lease::Leadership::new(clock);
    let controller =
        Controller::new(ControllerOptions::new("test"), clock).with_leadership(leadership.clone());
    let (enqueuer, view) = (controller.enqueuer(), controller.view());
    enqueuer.enqueue("a");
    let tried = Arc::new(AtomicUsize::new(0));
    let counted = tried.clone();
    let reconcile = move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        let leadership = leadership.clone();
        async move {
            clock.sleep(SECOND).await;
            leadership.check().map(|_| Outcome::Done)
        }
    };
    let stop = CancellationToken::new();
    let acting = async {
        clock.sleep(60 * SECOND).await;
        assert!(view().paused && tried.load(Ordering::Relaxed) == 0);
        setter.lead(crate::lease::Term(1), Duration::MAX, Duration::MAX);
        clock.sleep(SECOND / 2).await;
        assert_eq!(view().running.keys, ["\"a\""]);
        setter.follow(None);
        clock.sleep(60 * SECOND).await;
        assert_eq!(tried.load(Ordering::Relaxed), 1, "not while another leads");
        let state = view();
        assert_eq!((state.waiting.count, state.failing.count), (1, 0));
        setter.lead(crate::lease::Term(2), Duration::MAX, Duration::MAX);
        clock.sleep(2 * SECOND).await;
        assert_eq!(tried.load(Ordering::Relaxed), 2);
        stop.cancel();
    };
    tokio::join!(controller.run(reconcile, stop.clone()), acting);
}

/// An error of an area.
#[derive(Debug, thiserror::Error)]
enum ShopError {
    #[error("the shop asks for patience")]
    Busy,
    #[error("the order is not valid")]
    Invalid,
}

impl crate::why::Coded for ShopError {
    fn code(&self) -> crate::why::Code {
        crate::why::Code("NT-SHOP-0001")
    }
}

impl ReconcileError for ShopError {
    fn class(&self) -> FailureClass {
        match self {
            Self::Busy => FailureClass::RetryAfter(Duration::from_mins(10)),
            Self::Invalid => FailureClass::Permanent,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_areas_error_decides_when_its_key_is_retried_and_failures_are_counted() {
    let clock = Clock::system();
    let options = ControllerOptions {
        resync_interval: Duration::from_hours(4),
        ..ControllerOptions::new("test")
    };
    let controller = Controller::new(options, clock);
    let (enqueuer, view) = (controller.enqueuer(), controller.view());
    let log = Arc::new(Mutex::new(Vec::new()));
    let entries = log.clone();
    let reconcile = move |key: &'static str| {
        let entries = entries.clone();
        async move {
            entries.lock().push((key, previous_failures()));
            let error = match key {
                "busy" => ShopError::Busy,
                _ => ShopError::Invalid,
            };
            Err(ReconcileFailure::of(&error))
        }
    };
    let stop = CancellationToken::new();
    let script = async {
        enqueuer.enqueue("busy");
        enqueuer.enqueue("invalid");
        clock.sleep(Duration::from_mins(9)).await;
        assert_eq!(*log.lock(), [("busy", 0), ("invalid", 0)]);
        let failing = view().failing.keys;
        assert!(
            failing.contains(&"\"invalid\": once".to_owned()),
            "{failing:?}"
        );
        clock.sleep(Duration::from_mins(4)).await;
        assert_eq!(log.lock()[2..], [("busy", 1)], "not earlier than asked for");
        // A change is tried at once, though the last failure was permanent.
        enqueuer.enqueue("invalid");
        clock.sleep(SECOND).await;
        assert_eq!(log.lock()[3..], [("invalid", 1)]);
        clock.sleep(Duration::from_hours(4)).await;
        assert!(
            log.lock().contains(&("invalid", 2)),
            "the resync tries again"
        );
        stop.cancel();
    };
    tokio::join!(controller.run_failing(reconcile, stop.clone()), script);
    assert_eq!(previous_failures(), 0, "outside of a reconcile");
}
