mod objects;

use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{clock::Clock, why::Code};

const SECOND: Duration = Duration::from_secs(1);
const RETRY: Retry = Retry {
    attempts: 3,
    first: SECOND,
    most: Duration::from_mins(1),
};

/// Hands and sleeps of one time, which the test passes by waiting.
fn virtual_clock() -> Clock {
    Clock::starting_at(Timestamp::UNIX_EPOCH)
}

fn script() -> Script {
    Script {
        kind: "make tea",
        steps: vec![
            Step::action("fill", SECOND),
            Step::condition("boil", SECOND, 30 * SECOND),
            Step::retrying("pour", RETRY, 5 * SECOND),
        ],
    }
}

/// Does what it is told for each step, attempt by attempt, and then succeeds.
struct Told {
    answers: Mutex<Vec<(&'static str, Answer)>>,
    log: Mutex<Vec<String>>,
    tasks: Mutex<Vec<Task>>,
    clock: Clock,
}

#[derive(Clone)]
enum Answer {
    NotYet,
    Fails,
    Hopeless,
    Hangs,
}

impl Told {
    fn to(clock: Clock, answers: &[(&'static str, Answer)]) -> Self {
        Self {
            answers: Mutex::new(answers.to_vec()),
            log: Mutex::default(),
            tasks: Mutex::default(),
            clock,
        }
    }

    fn next(&self, step: &str) -> Option<Answer> {
        let seconds = self.clock.uptime().as_secs();
        self.log.lock().push(format!("{seconds} {step}"));
        let mut answers = self.answers.lock();
        let at = answers.iter().position(|(name, _)| *name == step)?;
        Some(answers.remove(at).1)
    }
}

impl Work for Told {
    async fn attempt(&self, task: &Task) -> Result<Progress, Failure> {
        let cause = Cause::new("no water");
        self.tasks.lock().push(task.clone());
        match self.next(&task.step) {
            None => Ok(Progress::Done),
            Some(Answer::NotYet) => Ok(Progress::NotYet("not hot".into())),
            Some(Answer::Fails) => Err(Failure {
                cause,
                may_pass: true,
            }),
            Some(Answer::Hopeless) => Err(Failure {
                cause,
                may_pass: false,
            }),
            Some(Answer::Hangs) => std::future::pending().await,
        }
    }
}

/// One who makes tea.
fn making<'a, J>(script: &'a Script, journal: &'a J, work: &'a Told) -> Runner<'a, J, Told> {
    Runner {
        id: "tea",
        script,
        journal,
        work,
        clock: work.clock,
    }
}

/// Runs the script with these answers; the outcome, and what was attempted when.
async fn played(answers: &[(&'static str, Answer)]) -> (Outcome, Vec<String>, Timeline) {
    let clock = virtual_clock();
    let (journal, work) = (InMemory::default(), Told::to(clock, answers));
    journal.add("tea");
    let script = script();
    let runner = making(&script, &journal, &work);
    let outcome = runner
        .run(&CancellationToken::new())
        .await
        .unwrap()
        .unwrap();
    let timeline = journal.load("tea").await.unwrap().timeline;
    assert_eq!(timeline.outcome.as_ref(), Some(&outcome));
    (outcome, work.log.into_inner(), timeline)
}

fn failed(step: &str, message: &str) -> Outcome {
    failed_by(step, Cause::new(message))
}

fn failed_by(step: &str, cause: Cause) -> Outcome {
    Outcome::Failed {
        step: step.into(),
        cause,
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_waits_keeps_nobody_busy() {
    let clock = virtual_clock();
    let work = Told::to(clock, &[("boil", Answer::NotYet)]);
    let (journal, script) = (InMemory::default(), script());
    journal.add("tea");
    let runner = making(&script, &journal, &work);
    let stands = runner.go_on(&CancellationToken::new()).await.unwrap();
    assert_eq!(stands, Standing::Waits(SECOND));
    assert_eq!(clock.uptime(), Duration::ZERO);
    clock.sleep(SECOND).await;
    let stands = runner.go_on(&CancellationToken::new()).await.unwrap();
    assert_eq!(stands, Standing::Over(Outcome::Succeeded));
}

#[tokio::test(start_paused = true)]
async fn steps_are_done_in_their_order() {
    let (outcome, log, timeline) = played(&[]).await;
    assert_eq!(outcome, Outcome::Succeeded);
    assert_eq!(log, ["0 fill", "0 boil", "0 pour"]);
    assert!(
        timeline
            .steps
            .iter()
            .all(|step| step.attempts == 1 && step.ended.is_some())
    );
}

#[tokio::test(start_paused = true)]
async fn a_condition_is_asked_again_until_its_time_is_up() {
    let not_yet = ("boil", Answer::NotYet);
    let (outcome, log, _) = played(&[not_yet.clone(), not_yet.clone()]).await;
    assert_eq!(outcome, Outcome::Succeeded);
    assert_eq!(log, ["0 fill", "0 boil", "1 boil", "2 boil", "2 pour"]);
    let (outcome, log, _) = played(&vec![not_yet; 100]).await;
    assert_eq!(outcome, failed("boil", "not hot"));
    assert_eq!((log.len(), log.last().unwrap().as_str()), (32, "30 boil"));
}

#[tokio::test(start_paused = true)]
async fn only_a_failure_that_may_pass_is_tried_again_and_not_for_ever() {
    let fails = ("pour", Answer::Fails);
    let (outcome, log, _) = played(&vec![fails.clone(); 2]).await;
    assert_eq!(outcome, Outcome::Succeeded);
    assert_eq!(log[2..], ["0 pour", "1 pour", "3 pour"]);
    let (outcome, ..) = played(&vec![fails; 3]).await;
    assert_eq!(outcome, failed("pour", "no water"));
    let (outcome, log, _) = played(&[("pour", Answer::Hopeless)]).await;
    assert_eq!((outcome, log.len()), (failed("pour", "no water"), 3));
    let (outcome, log, _) = played(&[("fill", Answer::Fails)]).await;
    assert_eq!((outcome, log.len()), (failed("fill", "no water"), 1));
}

#[tokio::test(start_paused = true)]
async fn attempts_at_a_step_share_a_key_and_no_two_share_a_fence() {
    let clock = virtual_clock();
    let (journal, work) = (
        InMemory::default(),
        Told::to(clock, &[("boil", Answer::NotYet), ("pour", Answer::Fails)]),
    );
    journal.add("tea");
    let script = script();
    let stop = CancellationToken::new();
    making(&script, &journal, &work).run(&stop).await.unwrap();
    let tasks = work.tasks.into_inner();
    let told: Vec<_> = tasks.iter().map(|task| (&*task.key, task.fence)).collect();
    assert_eq!(
        told,
        [
            ("tea/fill", 1),
            ("tea/boil", 2),
            ("tea/boil", 3),
            ("tea/pour", 4),
            ("tea/pour", 5),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_hangs_has_failed() {
    let (outcome, log, _) = played(&[("pour", Answer::Hangs)]).await;
    assert_eq!(outcome, Outcome::Succeeded);
    assert_eq!(
        log[2..],
        ["0 pour", "6 pour"],
        "five seconds of trying and one of waiting"
    );
    let (outcome, ..) = played(&[("fill", Answer::Hangs)]).await;
    let late = Cause::coded(Code("NT-KIT-003"), "it took longer than 1s");
    assert_eq!(outcome, failed_by("fill", late));
}

/// A journal that breaks off at a chosen call, before or after it took effect.
struct Crashing<'a, J> {
    inner: &'a J,
    left: Mutex<u32>,
    after: bool,
    crashed: Notify,
}

impl<'a, J> Crashing<'a, J> {
    /// Crashes at a write, before or after it is done.
    fn at(write: u32, after: bool, inner: &'a J) -> Self {
        Self {
            inner,
            left: Mutex::new(write),
            after,
            crashed: Notify::new(),
        }
    }

    /// Lets `run` go on until the crash, and no further.
    async fn breaks_off<T: std::fmt::Debug>(&self, run: impl Future<Output = T>) {
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
            let mut left = self.left.lock();
            let now = *left == 0;
            *left = left.saturating_sub(1);
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

impl<J: Journal> Journal for Crashing<'_, J> {
    async fn load(&self, id: &str) -> Result<Kept, JournalError> {
        self.inner.load(id).await
    }

    async fn save(
        &self,
        id: &str,
        timeline: &Timeline,
        seen: &Version,
    ) -> Result<Version, JournalError> {
        self.call(self.inner.save(id, timeline, seen)).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_is_survived() {
    let script = script();
    for crash in 0..7 {
        for after in [false, true] {
            let clock = virtual_clock();
            let (inner, work) = (InMemory::default(), Told::to(clock, &[]));
            inner.add("tea");
            let stop = CancellationToken::new();
            let journal = Crashing::at(crash, after, &inner);
            let first = making(&script, &journal, &work);
            journal.breaks_off(first.run(&stop)).await;
            let second = making(&script, &inner, &work);
            let outcome = second.run(&stop).await.unwrap();
            assert_eq!(outcome, Some(Outcome::Succeeded));
            let log = work.log.lock();
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
async fn a_stop_leaves_the_step_for_whoever_goes_on() {
    let clock = virtual_clock();
    let (journal, work) = (
        InMemory::default(),
        Told::to(clock, &[("fill", Answer::Hangs)]),
    );
    journal.add("tea");
    let (script, stop) = (script(), CancellationToken::new());
    let runner = making(&script, &journal, &work);
    let stopping = async {
        clock.sleep(SECOND / 2).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(runner.run(&stop), stopping);
    assert_eq!(ended.unwrap(), None);
    let outcome = runner.run(&CancellationToken::new()).await.unwrap();
    assert_eq!(outcome, Some(Outcome::Succeeded));
    let timeline = journal.load("tea").await.unwrap().timeline;
    assert_eq!(timeline.steps[0].attempts, 2);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_operation_ends_before_its_next_step() {
    let clock = virtual_clock();
    let (journal, work) = (
        InMemory::default(),
        Told::to(clock, &vec![("boil", Answer::NotYet); 9]),
    );
    journal.add("tea");
    let script = script();
    let runner = making(&script, &journal, &work);
    let cancel = async {
        clock.sleep(SECOND * 5 / 2).await;
        let Kept {
            mut timeline,
            version,
            ..
        } = journal.load("tea").await.unwrap();
        timeline.cancel(Cause::new("no longer thirsty"));
        timeline.cancel(Cause::new("says another"));
        journal.save("tea", &timeline, &version).await.unwrap();
    };
    let stop = CancellationToken::new();
    let (ended, ()) = tokio::join!(runner.run(&stop), cancel);
    let cause = Cause::new("no longer thirsty");
    let expected = Outcome::Cancelled {
        step: Some("boil".into()),
        cause,
    };
    assert_eq!(ended.unwrap(), Some(expected));
    assert!(!work.log.lock().iter().any(|line| line.ends_with("pour")));
}

#[test]
fn a_step_that_kills_its_process_is_given_up() {
    let (script, now) = (script(), Timestamp::UNIX_EPOCH);
    let mut timeline = Timeline::default();
    let mut attempts = 0;
    while let Next::Attempt(index) = decide(&script, &timeline, now) {
        timeline.begin(index, &script.steps[index], now);
        attempts += 1;
    }
    assert_eq!(attempts, 5);
    let end = decide(&script, &timeline, now);
    let code = Code("NT-KIT-014");
    let cause = Cause::coded(code, "the process ended during every attempt");
    assert_eq!(end, Next::End(failed_by("fill", cause)));
}

#[test]
fn a_timeline_survives_the_journal() {
    let mut timeline = Timeline::default();
    let (script, now) = (script(), Timestamp::UNIX_EPOCH);
    for step in &script.steps {
        timeline.begin(timeline.steps.len(), step, now);
        timeline.note(step, Attempt::Done, now);
    }
    timeline.outcome = Some(failed("pour", "no water"));
    let text = serde_json::to_string(&timeline).unwrap();
    assert_eq!(serde_json::from_str::<Timeline>(&text).unwrap(), timeline);
}
