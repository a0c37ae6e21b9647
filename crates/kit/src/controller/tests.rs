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
fn changes_come_before_resyncs_and_each_in_their_order() {
    let mut queue = Queue::default();
    queue.add("old", Priority::Resync, START, START);
    change(&mut queue, "first");
    change(&mut queue, "second");
    let order: Vec<_> = (0..3).map(|_| queue.next(START)).collect();
    assert_eq!(order, ["first", "second", "old"].map(Next::Run));
}

#[test]
fn a_resync_that_turns_out_to_be_a_change_is_hurried() {
    let mut queue = Queue::default();
    queue.add("a", Priority::Resync, START, START);
    queue.add("b", Priority::Change, START, START);
    queue.add("a", Priority::Change, START, START);
    queue.add("b", Priority::Resync, START, START);
    let order: Vec<_> = (0..2).map(|_| queue.next(START)).collect();
    assert_eq!(order, ["b", "a"].map(Next::Run));
    assert_eq!(queue.next(START), Next::Idle);
}

#[test]
fn a_storm_of_changes_does_not_starve_the_rest() {
    let mut queue = Queue::default();
    queue.add(1_000, Priority::Resync, START, START);
    for key in 0..100 {
        queue.add(key, Priority::Change, START, START);
    }
    let place = (0..101).position(|_| queue.next(START) == Next::Run(1_000));
    assert_eq!(place, Some(16));
}

#[test]
fn what_is_added_while_a_key_is_worked_on_is_done_afterwards() {
    let mut queue = Queue::default();
    change(&mut queue, "a");
    assert_eq!(queue.next(START), Next::Run("a"));
    change(&mut queue, "a");
    change(&mut queue, "a");
    assert_eq!(queue.next(START), Next::Idle, "one at a time");
    queue.done(&"a", None, START);
    assert_eq!(queue.next(START), Next::Run("a"));
    queue.done(&"a", None, START);
    assert_eq!((queue.next(START), queue.waiting()), (Next::Idle, 0));
}

#[test]
fn a_key_that_fails_waits_until_something_changes() {
    let mut queue = Queue::default();
    change(&mut queue, "a");
    queue.next(START);
    queue.failed(&"a", |_| 10 * SECOND, START);
    assert_eq!(queue.next(START), Next::Wait(10 * SECOND));
    assert_eq!(queue.failing().collect::<Vec<_>>(), [(&"a", 1)]);
    change(&mut queue, "a");
    assert_eq!(queue.next(START), Next::Run("a"));
    queue.failed(
        &"a",
        |failures| u32::from(failures == 2) * 20 * SECOND,
        START,
    );
    assert_eq!(
        queue.next(START),
        Next::Wait(20 * SECOND),
        "failures add up"
    );
}

#[test]
fn waits_grow_to_a_bound_and_are_spread() {
    let backoff = Backoff {
        first: SECOND,
        most: 60 * SECOND,
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
enum Move {
    Add(u8, bool, u64),
    Next,
    Done(u8, Option<u64>),
    Fail(u8, u64),
    Pass(u64),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let key = 0..5_u8;
    let one = prop_oneof![
        3 => (key.clone(), any::<bool>(), 0..5_u64).prop_map(|(key, hurry, after)| Move::Add(key, hurry, after)),
        4 => Just(Move::Next),
        3 => (key.clone(), prop::option::of(0..9_u64)).prop_map(|(key, again)| Move::Done(key, again)),
        2 => (key, 1..9_u64).prop_map(|(key, wait)| Move::Fail(key, wait)),
        2 => (0..4_u64).prop_map(Move::Pass),
    ];
    prop::collection::vec(one, 1..120)
}

proptest! {
    /// Against a model that only knows for each key when it must have run.
    #[test]
    fn no_key_is_lost_or_worked_on_twice_at_once(script in moves()) {
        let mut queue = Queue::default();
        let mut due: HashMap<u8, u64> = HashMap::new();
        let (mut running, mut now) = (HashMap::<u8, Option<u64>>::new(), 0);
        let earlier = |former: Option<u64>, at: u64| former.map_or(at, |former| former.min(at));
        for step in script {
            let time = Duration::from_secs(now);
            match step {
                Move::Pass(seconds) => now += seconds,
                Move::Add(key, hurry, after) => {
                    let priority = if hurry { Priority::Change } else { Priority::Resync };
                    queue.add(key, priority, Duration::from_secs(now + after), time);
                    match running.get_mut(&key) {
                        Some(since) => *since = Some(earlier(*since, now + after)),
                        None => drop(due.insert(key, earlier(due.get(&key).copied(), now + after))),
                    }
                }
                Move::Next => match queue.next(time) {
                    Next::Run(key) => {
                        prop_assert!(!running.contains_key(&key), "{key} runs twice");
                        let at = due.remove(&key);
                        prop_assert!(at.is_some_and(|at| at <= now), "{key} runs at {now}, due {at:?}");
                        running.insert(key, None);
                    }
                    Next::Wait(until) => {
                        prop_assert_eq!(due.values().min().copied(), Some(until.as_secs()));
                        prop_assert!(until > time);
                    }
                    Next::Idle => prop_assert!(due.is_empty(), "{due:?} is forgotten"),
                },
                Move::Done(key, again) => {
                    queue.done(&key, again.map(|after| Duration::from_secs(now + after)), time);
                    if let Some(since) = running.remove(&key) {
                        let at = [since, again.map(|after| now + after)].into_iter().flatten().min();
                        due.extend(at.map(|at| (key, at)));
                    }
                }
                Move::Fail(key, wait) => {
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

/// Runs a controller while `script` is played.
async fn played<F, Fut, E>(
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
async fn every_key_is_looked_at_again_though_nobody_says_so() {
    let clock = Clock::system();
    let controller = Controller::new(Options::new("test"), clock);
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = looks.clone();
    let trigger = controller.trigger();
    let reconcile = move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, Infallible>(Outcome::Settled) }
    };
    played(controller, reconcile, async {
        trigger.changed("a");
        clock.sleep(Duration::from_hours(6)).await;
    })
    .await;
    let looks = looks.load(Ordering::Relaxed);
    assert!((12..=17).contains(&looks), "{looks} looks in six hours");
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_panics_or_hangs_keeps_nobody_waiting() {
    let clock = Clock::system();
    let options = Options {
        concurrency: 2,
        ..Options::new("test")
    };
    let controller = Controller::new(options, clock);
    let log = Arc::new(Mutex::new(Vec::new()));
    let trigger = controller.trigger();
    let notes = log.clone();
    let reconcile = move |key: &'static str| {
        notes.lock().push((key, clock.uptime()));
        async move {
            match key {
                "fails" => Err("it cannot be done"),
                "panics" => panic!("a bug, for the sake of it"),
                "hangs" => std::future::pending().await,
                _ => Ok(Outcome::Gone),
            }
        }
    };
    played(controller, reconcile, async {
        for key in ["hangs", "fails", "panics"] {
            trigger.changed(key);
        }
        clock.sleep(SECOND).await;
        trigger.changed("well");
        clock.sleep(Duration::from_mins(3)).await;
    })
    .await;
    let log = log.lock();
    let times = |key| log.iter().filter(|(noted, _)| *noted == key).count();
    assert!(log.contains(&("well", SECOND)), "{log:?}");
    assert_eq!(times("well"), 1);
    for key in ["fails", "panics"] {
        assert!((8..=14).contains(&times(key)), "{key}: {}", times(key));
    }
    assert_eq!(times("hangs"), 4, "each try takes the minute it is given");
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_limit_run_at_once_and_a_stop_waits_for_them() {
    let clock = Clock::system();
    let options = Options {
        concurrency: 3,
        ..Options::new("test")
    };
    let controller = Controller::new(options, clock);
    let trigger = controller.trigger();
    let (now, most, ended) = <(Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let seen = (now, most.clone(), ended.clone());
    let reconcile = move |_| {
        let (now, most, ended) = seen.clone();
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            clock.sleep(10 * SECOND).await;
            now.fetch_sub(1, Ordering::Relaxed);
            ended.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(Outcome::Gone)
        }
    };
    played(controller, reconcile, async {
        for key in ["a", "b", "c", "d", "e"] {
            trigger.changed(key);
        }
        clock.sleep(15 * SECOND).await;
    })
    .await;
    assert_eq!(most.load(Ordering::Relaxed), 3);
    assert_eq!(
        ended.load(Ordering::Relaxed),
        5,
        "the two that were under way were waited for"
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_begun_while_another_leads_and_nothing_is_forgotten() {
    let clock = Clock::system();
    let (post, leadership) = crate::lease::Leadership::new(clock);
    let controller = Controller::new(Options::new("test"), clock).led_by(leadership.clone());
    let (trigger, view) = (controller.trigger(), controller.view());
    trigger.changed("a");
    let tried = Arc::new(AtomicUsize::new(0));
    let counted = tried.clone();
    let reconcile = move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        let leadership = leadership.clone();
        async move {
            clock.sleep(SECOND).await;
            leadership.check().map(|_| Outcome::Settled)
        }
    };
    let stop = CancellationToken::new();
    let acting = async {
        clock.sleep(60 * SECOND).await;
        assert!(view().paused && tried.load(Ordering::Relaxed) == 0);
        post.lead(crate::lease::Term(1), Duration::MAX, Duration::MAX);
        clock.sleep(SECOND / 2).await;
        assert_eq!(view().running.keys, ["\"a\""]);
        post.follow(None);
        clock.sleep(60 * SECOND).await;
        assert_eq!(tried.load(Ordering::Relaxed), 1, "it is not tried in vain");
        let state = view();
        assert_eq!((state.waiting.count, state.failing.count), (1, 0));
        post.lead(crate::lease::Term(2), Duration::MAX, Duration::MAX);
        clock.sleep(2 * SECOND).await;
        assert_eq!(tried.load(Ordering::Relaxed), 2);
        stop.cancel();
    };
    tokio::join!(controller.run(reconcile, stop.clone()), acting);
}
