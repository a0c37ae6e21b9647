mod engine;
mod objects;

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{clock::Clock, why::Code};

const SECOND: Duration = Duration::from_secs(1);
const RETRY: RetryPolicy = RetryPolicy {
    attempts: 3,
    first: SECOND,
    max: Duration::from_mins(1),
};

/// A clock whose wall time is advanced by tokio, which the test has paused.
fn virtual_clock() -> Clock {
    Clock::starting_at(Timestamp::UNIX_EPOCH)
}

fn step_list() -> StepList {
    StepList {
        kind: "make tea",
        steps: vec![
            Step::action("fill", SECOND),
            Step::condition("boil", SECOND, 30 * SECOND),
            Step::retrying("pour", RETRY, 5 * SECOND),
        ],
    }
}

/// A handler that returns the given answers, attempt by attempt, and then succeeds.
struct ScriptedHandler {
    answers: Mutex<Vec<(&'static str, ScriptedAnswer)>>,
    log: Mutex<Vec<String>>,
    attempts: Mutex<Vec<StepAttempt>>,
    clock: Clock,
}

#[derive(Clone)]
enum ScriptedAnswer {
    NotYet,
    Fails,
    FailedPermanently,
    Hangs,
}

impl ScriptedHandler {
    fn new(clock: Clock, answers: &[(&'static str, ScriptedAnswer)]) -> Self {
        Self {
            answers: Mutex::new(answers.to_vec()),
            log: Mutex::default(),
            attempts: Mutex::default(),
            clock,
        }
    }

    fn next(&self, step: &str) -> Option<ScriptedAnswer> {
        let seconds = self.clock.uptime().as_secs();
        self.log.lock().push(format!("{seconds} {step}"));
        let mut answers = self.answers.lock();
        let at = answers.iter().position(|(name, _)| *name == step)?;
        Some(answers.remove(at).1)
    }
}

impl StepHandler for ScriptedHandler {
    async fn attempt(&self, attempt: &StepAttempt) -> Result<Progress, Failure> {
        let cause = Cause::new("no water");
        self.attempts.lock().push(attempt.clone());
        match self.next(&attempt.step) {
            None => Ok(Progress::Done),
            Some(ScriptedAnswer::NotYet) => Ok(Progress::NotYet("not hot".into())),
            Some(ScriptedAnswer::Fails) => Err(Failure {
                cause,
                retryable: true,
            }),
            Some(ScriptedAnswer::FailedPermanently) => Err(Failure {
                cause,
                retryable: false,
            }),
            Some(ScriptedAnswer::Hangs) => std::future::pending().await,
        }
    }
}

/// A runner of the operation that makes tea.
fn tea_runner<'a, J: Journal>(
    step_list: &'a StepList,
    journal: &'a J,
    handler: &'a ScriptedHandler,
) -> Runner<'a, J, ScriptedHandler> {
    Runner::new("tea", step_list, journal, handler, handler.clock)
}

/// Runs the operation with these answers. Returns the outcome, a log of attempts, and the timeline.
async fn run_with(
    answers: &[(&'static str, ScriptedAnswer)],
) -> (OperationOutcome, Vec<String>, Timeline) {
    let clock = virtual_clock();
    let (journal, handler) = (
        InMemoryJournal::default(),
        ScriptedHandler::new(clock, answers),
    );
    journal.add("tea");
    let step_list = step_list();
    let runner = tea_runner(&step_list, &journal, &handler);
    let outcome = runner
        .run(&CancellationToken::new())
        .await
        .unwrap()
        .unwrap();
    let timeline = journal.load("tea").await.unwrap().timeline;
    assert_eq!(timeline.outcome.as_ref(), Some(&outcome));
    (outcome, handler.log.into_inner(), timeline)
}

/// What is next in a process that has run nothing yet.
fn next_step(step_list: &StepList, timeline: &Timeline, now: Timestamp) -> NextStep {
    decide(step_list, timeline, &BTreeSet::new(), now)
}

fn failed(step: &str, message: &str) -> OperationOutcome {
    failed_by(step, Cause::new(message))
}

fn failed_by(step: &str, cause: Cause) -> OperationOutcome {
    OperationOutcome::Failed {
        step: step.into(),
        cause,
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_waits_returns_from_the_runner() {
    let clock = virtual_clock();
    let handler = ScriptedHandler::new(clock, &[("boil", ScriptedAnswer::NotYet)]);
    let (journal, step_list) = (InMemoryJournal::default(), step_list());
    journal.add("tea");
    let runner = tea_runner(&step_list, &journal, &handler);
    let run_state = runner
        .run_until_waiting(&CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(run_state, RunState::Waiting(SECOND));
    assert_eq!(clock.uptime(), Duration::ZERO);
    clock.sleep(SECOND).await;
    let run_state = runner
        .run_until_waiting(&CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(run_state, RunState::Finished(OperationOutcome::Succeeded));
}

#[tokio::test(start_paused = true)]
async fn steps_run_in_order() {
    let (outcome, log, timeline) = run_with(&[]).await;
    assert_eq!(outcome, OperationOutcome::Succeeded);
    assert_eq!(log, ["0 fill", "0 boil", "0 pour"]);
    assert!(
        timeline
            .steps
            .iter()
            .all(|step| step.attempts == 1 && step.ended.is_some())
    );
}

#[tokio::test(start_paused = true)]
async fn a_condition_is_polled_until_its_timeout() {
    let not_yet = ("boil", ScriptedAnswer::NotYet);
    let (outcome, log, _) = run_with(&[not_yet.clone(), not_yet.clone()]).await;
    assert_eq!(outcome, OperationOutcome::Succeeded);
    assert_eq!(log, ["0 fill", "0 boil", "1 boil", "2 boil", "2 pour"]);
    let (outcome, log, _) = run_with(&vec![not_yet; 100]).await;
    assert_eq!(outcome, failed("boil", "not hot"));
    assert_eq!((log.len(), log.last().unwrap().as_str()), (32, "30 boil"));
}

#[tokio::test(start_paused = true)]
async fn only_retryable_failures_are_retried_up_to_the_maximum() {
    let fails = ("pour", ScriptedAnswer::Fails);
    let (outcome, log, _) = run_with(&vec![fails.clone(); 2]).await;
    assert_eq!(outcome, OperationOutcome::Succeeded);
    assert_eq!(log[2..], ["0 pour", "1 pour", "3 pour"]);
    let (outcome, ..) = run_with(&vec![fails; 3]).await;
    assert_eq!(outcome, failed("pour", "no water"));
    let (outcome, log, _) = run_with(&[("pour", ScriptedAnswer::FailedPermanently)]).await;
    assert_eq!((outcome, log.len()), (failed("pour", "no water"), 3));
    let (outcome, log, _) = run_with(&[("fill", ScriptedAnswer::Fails)]).await;
    assert_eq!((outcome, log.len()), (failed("fill", "no water"), 1));
}

#[tokio::test(start_paused = true)]
async fn attempts_at_a_step_share_a_key_and_have_unique_fences() {
    let clock = virtual_clock();
    let (journal, handler) = (
        InMemoryJournal::default(),
        ScriptedHandler::new(
            clock,
            &[
                ("boil", ScriptedAnswer::NotYet),
                ("pour", ScriptedAnswer::Fails),
            ],
        ),
    );
    journal.add("tea");
    let step_list = step_list();
    let stop = CancellationToken::new();
    tea_runner(&step_list, &journal, &handler)
        .run(&stop)
        .await
        .unwrap();
    let attempts = handler.attempts.into_inner();
    let attempts = attempts
        .iter()
        .map(|attempt| (&*attempt.key, attempt.fence));
    assert_eq!(
        attempts.collect::<Vec<_>>(),
        [
            ("tea/fill", 1),
            // A poll only reads, so it needs no fence of its own.
            ("tea/boil", 2),
            ("tea/boil", 2),
            ("tea/pour", 3),
            ("tea/pour", 4),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_exceeds_its_timeout_has_failed() {
    let (outcome, log, _) = run_with(&[("pour", ScriptedAnswer::Hangs)]).await;
    assert_eq!(outcome, OperationOutcome::Succeeded);
    assert_eq!(
        log[2..],
        ["0 pour", "6 pour"],
        "a timeout of five seconds and a delay of one"
    );
    let (outcome, ..) = run_with(&[("fill", ScriptedAnswer::Hangs)]).await;
    let late = Cause::coded(Code("NT-KIT-003"), "it took longer than 1s");
    assert_eq!(outcome, failed_by("fill", late));
}

/// A journal that simulates a crash at a chosen write, before or after it took effect.
struct CrashingJournal<'a, J> {
    inner: &'a J,
    remaining: Mutex<u32>,
    after: bool,
    crashed: Notify,
}

impl<'a, J> CrashingJournal<'a, J> {
    /// Crashes at the write of this number, before it or `after` it.
    fn at(write: u32, after: bool, inner: &'a J) -> Self {
        Self {
            inner,
            remaining: Mutex::new(write),
            after,
            crashed: Notify::new(),
        }
    }

    /// Polls `run` until the crash, and drops it then.
    async fn run_until_crash<T: std::fmt::Debug>(&self, run: impl Future<Output = T>) {
        tokio::select! {
            ended = run => panic!("there is no such write: {ended:?}"),
            () = self.crashed.notified() => {}
        }
    }

    async fn crash(&self) {
        self.crashed.notify_one();
        std::future::pending::<()>().await;
    }

    async fn call<T>(&self, call: impl Future<Output = T>) -> T {
        let now = {
            let mut remaining = self.remaining.lock();
            let now = *remaining == 0;
            *remaining = remaining.saturating_sub(1);
            now
        };
        if now && !self.after {
            self.crash().await;
        }
        let done = call.await;
        if now {
            self.crash().await;
        }
        done
    }
}

impl<J: Journal> Journal for CrashingJournal<'_, J> {
    async fn load(&self, id: &str) -> Result<StoredTimeline, JournalError> {
        self.inner.load(id).await
    }

    async fn save(
        &self,
        id: &str,
        timeline: &Timeline,
        seen: &TimelineVersion,
    ) -> Result<TimelineVersion, JournalError> {
        self.call(self.inner.save(id, timeline, seen)).await
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_survives_a_crash_at_any_write() {
    let step_list = step_list();
    for crash in 0..7 {
        for after in [false, true] {
            let clock = virtual_clock();
            let (inner, handler) = (InMemoryJournal::default(), ScriptedHandler::new(clock, &[]));
            inner.add("tea");
            let stop = CancellationToken::new();
            let journal = CrashingJournal::at(crash, after, &inner);
            let first = tea_runner(&step_list, &journal, &handler);
            journal.run_until_crash(first.run(&stop)).await;
            let second = tea_runner(&step_list, &inner, &handler);
            let outcome = second.run(&stop).await.unwrap();
            assert_eq!(outcome, Some(OperationOutcome::Succeeded));
            let log = handler.log.lock();
            let mut names: Vec<_> = log
                .iter()
                .filter_map(|line| line.split(' ').nth(1))
                .collect();
            assert!(names.len() <= 4, "at most one step is repeated: {names:?}");
            names.dedup();
            assert_eq!(names, ["fill", "boil", "pour"], "write {crash}, {after}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_stop_the_next_runner_repeats_the_step() {
    let clock = virtual_clock();
    let (journal, handler) = (
        InMemoryJournal::default(),
        ScriptedHandler::new(clock, &[("fill", ScriptedAnswer::Hangs)]),
    );
    journal.add("tea");
    let (step_list, stop) = (step_list(), CancellationToken::new());
    let runner = tea_runner(&step_list, &journal, &handler);
    let stopping = async {
        clock.sleep(SECOND / 2).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(runner.run(&stop), stopping);
    assert_eq!(ended.unwrap(), None);
    let outcome = runner.run(&CancellationToken::new()).await.unwrap();
    assert_eq!(outcome, Some(OperationOutcome::Succeeded));
    let timeline = journal.load("tea").await.unwrap().timeline;
    assert_eq!(timeline.steps[0].attempts, 2);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_operation_ends_before_its_next_step() {
    let clock = virtual_clock();
    let (journal, handler) = (
        InMemoryJournal::default(),
        ScriptedHandler::new(clock, &vec![("boil", ScriptedAnswer::NotYet); 9]),
    );
    journal.add("tea");
    let step_list = step_list();
    let runner = tea_runner(&step_list, &journal, &handler);
    let cancel = async {
        clock.sleep(SECOND * 5 / 2).await;
        let StoredTimeline {
            mut timeline,
            version,
            ..
        } = journal.load("tea").await.unwrap();
        timeline.cancel(Cause::new("no longer thirsty"));
        timeline.cancel(Cause::new("the second cause"));
        journal.save("tea", &timeline, &version).await.unwrap();
    };
    let stop = CancellationToken::new();
    let (ended, ()) = tokio::join!(runner.run(&stop), cancel);
    let cause = Cause::new("no longer thirsty");
    let expected = OperationOutcome::Cancelled {
        step: Some("boil".into()),
        cause,
    };
    assert_eq!(ended.unwrap(), Some(expected));
    assert!(!handler.log.lock().iter().any(|line| line.ends_with("pour")));
}

#[test]
fn a_step_that_crashes_its_process_too_often_is_given_up() {
    let (step_list, now) = (step_list(), Timestamp::UNIX_EPOCH);
    let mut timeline = Timeline::default();
    let mut attempts = 0;
    while let NextStep::Attempt(index) = next_step(&step_list, &timeline, now) {
        timeline.begin(&step_list.steps[index], 0, now);
        attempts += 1;
    }
    assert_eq!(attempts, 5);
    let end = next_step(&step_list, &timeline, now);
    let code = Code("NT-KIT-014");
    let cause = Cause::coded(code, "the process ended during every attempt");
    assert_eq!(end, NextStep::End(failed_by("fill", cause)));
}

#[test]
fn a_timeline_round_trips_through_json() {
    let mut timeline = Timeline::default();
    let (step_list, now) = (step_list(), Timestamp::UNIX_EPOCH);
    for step in &step_list.steps {
        timeline.begin(step, 0, now);
        timeline.record_attempt(step, 0, AttemptResult::Done, now);
    }
    timeline.outcome = Some(failed("pour", "no water"));
    let text = serde_json::to_string(&timeline).unwrap();
    assert_eq!(serde_json::from_str::<Timeline>(&text).unwrap(), timeline);
}
