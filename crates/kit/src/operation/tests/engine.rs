//! Long step lists: other versions of the program, restarts, deadlines, cancellation, bounded records.

use std::sync::Arc;

use super::*;

const STEPS: usize = 40;

/// The names of forty steps, for ever.
fn names() -> [&'static str; STEPS] {
    std::array::from_fn(|at| &*format!("step-{at:02}").leak())
}

fn long_list(names: &[&'static str]) -> StepList {
    let steps = names.iter().enumerate().map(|(at, name)| match at % 4 {
        0 => Step::action(name, SECOND),
        1 => Step::condition(name, SECOND, 30 * SECOND),
        2 => Step::retrying(name, RETRY, SECOND),
        _ => Step::skipped(name, "no cloud configured"),
    });
    StepList {
        kind: "long",
        steps: steps.collect(),
    }
}

fn attempted(handler: &ScriptedHandler) -> Vec<String> {
    let attempts = handler.attempts.lock();
    attempts.iter().map(|it| it.step.clone()).collect()
}

async fn finish(list: &StepList, journal: &impl Journal, handler: &ScriptedHandler) -> Timeline {
    let stop = CancellationToken::new();
    let runner = Runner::new("tea", list, journal, handler, handler.clock);
    runner.run(&stop).await.unwrap().unwrap();
    journal.load("tea").await.unwrap().timeline
}

#[tokio::test(start_paused = true)]
async fn forty_steps_survive_a_crash_at_every_write_and_none_that_ended_runs_again() {
    let list = long_list(&names());
    let attempts = STEPS / 4 * 3;
    // What is skipped is recorded with the end of the step before it.
    let writes = 2 * attempts + 1;
    for crash in 0..writes as u32 {
        let clock = virtual_clock();
        let (inner, handler) = (InMemoryJournal::default(), ScriptedHandler::new(clock, &[]));
        inner.add("tea");
        let journal = CrashingJournal::at(crash, true, &inner);
        let stop = CancellationToken::new();
        let first = Runner::new("tea", &list, &journal, &handler, clock);
        journal.run_until_crash(first.run(&stop)).await;
        let ended: Vec<_> = inner.load("tea").await.unwrap().timeline.steps;
        let before = attempted(&handler).len();
        let timeline = finish(&list, &inner, &handler).await;
        assert_eq!(timeline.outcome, Some(OperationOutcome::Succeeded));
        for step in ended.iter().filter(|step| step.state.is_done()) {
            let again = attempted(&handler).split_off(before);
            assert!(!again.contains(&step.name), "write {crash}: {}", step.name);
        }
        let skipped = timeline
            .steps
            .iter()
            .filter(|it| it.state == StepState::Skipped);
        assert_eq!(skipped.count(), STEPS / 4);
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_with_two_steps_more_and_one_less_continues_at_the_right_step() {
    let names = names();
    let old = long_list(&names);
    for done in [1, 9, 17, 33] {
        let clock = virtual_clock();
        let (journal, handler) = (InMemoryJournal::default(), ScriptedHandler::new(clock, &[]));
        journal.add("tea");
        let StoredTimeline {
            mut timeline,
            version,
            ..
        } = journal.load("tea").await.unwrap();
        for step in &old.steps[..done] {
            timeline.begin(step, 0, clock.now());
            timeline.record_attempt(step, 0, AttemptResult::Done, clock.now());
        }
        // The step that was running when the process ended.
        timeline.begin(&old.steps[done], 0, clock.now());
        journal.save("tea", &timeline, &version).await.unwrap();

        let mut new = old.clone();
        new.steps.insert(0, Step::action("new-first", SECOND));
        new.steps.insert(38, Step::action("new-later", SECOND));
        new.steps.retain(|step| step.name != names[20]);
        let timeline = finish(&new, &journal, &handler).await;
        assert_eq!(timeline.outcome, Some(OperationOutcome::Succeeded));
        let ran = attempted(&handler);
        assert_eq!(ran[0], "new-first");
        assert_eq!(ran[1], old.steps[done].name, "it continues where it was");
        assert!(!ran.contains(&names[20].to_owned()));
        let again = old.steps[..done]
            .iter()
            .filter(|it| ran.contains(&it.name.to_owned()));
        assert_eq!(again.count(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_knows_none_of_the_done_steps_says_why_it_cannot_continue() {
    let clock = virtual_clock();
    let (journal, handler) = (InMemoryJournal::default(), ScriptedHandler::new(clock, &[]));
    journal.add("tea");
    finish_first_step(&journal, clock).await;
    let other = StepList {
        kind: "make tea",
        steps: vec![Step::action("grind", SECOND)],
    };
    let timeline = finish(&other, &journal, &handler).await;
    let Some(OperationOutcome::Failed { cause, .. }) = timeline.outcome else {
        panic!("{:?}", timeline.outcome);
    };
    assert_eq!(cause.code.as_deref(), Some("NT-KIT-032"));
    assert_eq!(attempted(&handler).len(), 0);
}

async fn finish_first_step(journal: &InMemoryJournal, clock: Clock) {
    let step = &step_list().steps[0];
    let stored = journal.load("tea").await.unwrap();
    let mut timeline = stored.timeline;
    timeline.begin(step, 0, clock.now());
    timeline.record_attempt(step, 0, AttemptResult::Done, clock.now());
    journal
        .save("tea", &timeline, &stored.version)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn steps_of_one_name_are_told_apart_by_their_order() {
    let list = StepList {
        kind: "twice",
        steps: vec![
            Step::condition("ready", SECOND, 9 * SECOND),
            Step::action("restart", SECOND),
            Step::condition("ready", SECOND, 9 * SECOND),
        ],
    };
    let clock = virtual_clock();
    let (journal, handler) = (InMemoryJournal::default(), ScriptedHandler::new(clock, &[]));
    journal.add("tea");
    let timeline = finish(&list, &journal, &handler).await;
    assert_eq!(timeline.steps.len(), 3);
    assert_eq!(attempted(&handler), ["ready", "restart", "ready"]);
    let keys: Vec<_> = handler
        .attempts
        .lock()
        .iter()
        .map(|it| it.key.clone())
        .collect();
    assert_eq!(keys, ["tea/ready", "tea/restart", "tea/ready#1"]);
}

#[tokio::test(start_paused = true)]
async fn a_step_whose_result_is_in_memory_runs_again_in_every_process_and_once_in_each() {
    let list = StepList {
        kind: "clients",
        steps: vec![
            Step::action("credentials", SECOND).reruns(),
            Step::action("first", SECOND),
            Step::action("hang", 60 * SECOND),
        ],
    };
    let clock = virtual_clock();
    let journal = InMemoryJournal::default();
    journal.add("tea");
    let hangs = [("hang", ScriptedAnswer::Hangs)];
    // More restarts than a step may crash its process.
    for restart in 0..7 {
        let handler = ScriptedHandler::new(clock, &hangs);
        let stop = CancellationToken::new();
        let session = Session::default();
        let runner = Runner::new("tea", &list, &journal, &handler, clock).in_session(&session);
        if restart >= 3 {
            // The step that hung is not interrupted too often.
            let timeline = finish(&list, &journal, &ScriptedHandler::new(clock, &[])).await;
            assert_eq!(timeline.outcome, Some(OperationOutcome::Succeeded));
            assert_eq!(timeline.steps[0].attempts, 4);
            return;
        }
        let stopping = async {
            clock.sleep(SECOND).await;
            stop.cancel();
        };
        let (ended, ()) = tokio::join!(runner.run(&stop), stopping);
        assert_eq!(ended.unwrap(), None);
        let ran = attempted(&handler);
        let expected: &[&str] = if restart == 0 {
            &["credentials", "first", "hang"]
        } else {
            &["credentials", "hang"]
        };
        assert_eq!(ran, expected, "restart {restart}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_interrupts_the_running_attempt_at_every_step() {
    let names = names();
    let list = long_list(&names);
    for name in &names {
        let clock = virtual_clock();
        let hangs = [(*name, ScriptedAnswer::Hangs)];
        let (journal, handler) = (
            InMemoryJournal::default(),
            ScriptedHandler::new(clock, &hangs),
        );
        journal.add("tea");
        let interrupt = CancellationToken::new();
        let runner =
            Runner::new("tea", &list, &journal, &handler, clock).interrupted_by(interrupt.clone());
        let cancel = async {
            clock.sleep(SECOND / 2).await;
            let stored = journal.load("tea").await.unwrap();
            let mut timeline = stored.timeline;
            timeline.cancel(Cause::new("not needed"));
            // It is refused if the operation has ended.
            journal
                .save("tea", &timeline, &stored.version)
                .await
                .unwrap();
            interrupt.cancel();
        };
        let stop = CancellationToken::new();
        let (ended, ()) = tokio::join!(runner.run(&stop), cancel);
        assert!(clock.uptime() < SECOND, "{name}: {:?}", clock.uptime());
        match ended.unwrap().unwrap() {
            OperationOutcome::Cancelled { step, .. } => assert_eq!(step.as_deref(), Some(*name)),
            // Skipped steps do not hang.
            OperationOutcome::Succeeded => {
                assert_eq!(names.iter().position(|it| it == name).unwrap() % 4, 3);
            }
            other @ OperationOutcome::Failed { .. } => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_fails_at_its_deadline() {
    let clock = virtual_clock();
    let hangs = [("boil", ScriptedAnswer::Hangs)];
    let (journal, handler) = (
        InMemoryJournal::default(),
        ScriptedHandler::new(clock, &hangs),
    );
    journal.add("tea");
    let stored = journal.load("tea").await.unwrap();
    let timeline = Timeline {
        deadline: Some(clock.now().checked_add(SECOND * 10).unwrap()),
        ..stored.timeline
    };
    journal
        .save("tea", &timeline, &stored.version)
        .await
        .unwrap();
    let timeline = finish(&step_list(), &journal, &handler).await;
    let Some(OperationOutcome::Failed { step, cause }) = timeline.outcome else {
        panic!("{:?}", timeline.outcome);
    };
    assert_eq!(
        (&*step, cause.code.as_deref()),
        ("boil", Some("NT-KIT-031"))
    );
    assert_eq!(clock.uptime(), SECOND * 10);
}

/// Counts the writes to another journal.
struct CountingJournal(InMemoryJournal, Mutex<u32>);

impl Journal for CountingJournal {
    async fn load(&self, id: &str) -> Result<StoredTimeline, JournalError> {
        self.0.load(id).await
    }

    async fn save(
        &self,
        id: &str,
        timeline: &Timeline,
        seen: &TimelineVersion,
    ) -> Result<TimelineVersion, JournalError> {
        *self.1.lock() += 1;
        self.0.save(id, timeline, seen).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_condition_polled_for_an_hour_costs_one_write_a_minute() {
    let list = StepList {
        kind: "wait",
        steps: vec![Step::condition(
            "boil",
            10 * SECOND,
            Duration::from_hours(1),
        )],
    };
    let clock = virtual_clock();
    let handler = ScriptedHandler::new(clock, &vec![("boil", ScriptedAnswer::NotYet); 1000]);
    let journal = CountingJournal(InMemoryJournal::default(), Mutex::new(0));
    journal.0.add("tea");
    let timeline = finish(&list, &journal, &handler).await;
    assert!(matches!(
        timeline.outcome,
        Some(OperationOutcome::Failed { .. })
    ));
    assert_eq!(handler.attempts.lock().len(), 361);
    assert_eq!(timeline.steps[0].attempts, 1, "polls are not counted");
    let writes = *journal.1.lock();
    assert!(writes <= 63, "{writes}");
}

#[tokio::test(start_paused = true)]
async fn a_condition_may_only_warn_and_a_retry_may_give_up_early() {
    let list = StepList {
        kind: "mild",
        steps: vec![
            Step::condition("boil", SECOND, 5 * SECOND).warn_on_timeout(),
            Step::retrying("pour", RETRY, SECOND).give_up_after(2 * SECOND),
        ],
    };
    let clock = virtual_clock();
    let mut answers = vec![("boil", ScriptedAnswer::NotYet); 9];
    answers.extend(vec![("pour", ScriptedAnswer::Fails); 9]);
    let (journal, handler) = (
        InMemoryJournal::default(),
        ScriptedHandler::new(clock, &answers),
    );
    journal.add("tea");
    let timeline = finish(&list, &journal, &handler).await;
    assert_eq!(timeline.steps[0].state, StepState::TimedOut);
    assert_eq!(
        timeline.steps[1].attempts, 2,
        "a third would be after two seconds"
    );
    assert_eq!(timeline.outcome, Some(failed("pour", "no water")));
}

/// A handler whose credentials expire after each attempt.
struct ExpiringHandler {
    fresh: Mutex<bool>,
    failures: Mutex<u32>,
}

impl StepHandler for ExpiringHandler {
    async fn attempt(&self, _: &StepAttempt) -> Result<Progress, Failure> {
        if std::mem::take(&mut *self.fresh.lock()) {
            return Ok(Progress::Done);
        }
        Err(Failure {
            cause: Cause::new("AuthorizationFailed"),
            retryable: true,
        })
    }

    async fn refresh(&self, _: &StepAttempt) -> Result<(), Failure> {
        *self.failures.lock() += 1;
        *self.fresh.lock() = *self.failures.lock() > 1;
        Ok(())
    }

    fn result(&self) -> Option<String> {
        Some("poured".into())
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_be_outdated_is_refreshed_between_attempts() {
    let list = StepList {
        kind: "pour",
        steps: vec![Step::retrying("pour", RETRY, SECOND)],
    };
    let handler = ExpiringHandler {
        fresh: Mutex::new(false),
        failures: Mutex::new(0),
    };
    let journal = InMemoryJournal::default();
    journal.add("tea");
    let runner = Runner::new("tea", &list, &journal, &handler, virtual_clock());
    runner.run(&CancellationToken::new()).await.unwrap();
    let timeline = journal.load("tea").await.unwrap().timeline;
    assert_eq!(timeline.outcome, Some(OperationOutcome::Succeeded));
    assert_eq!(timeline.message.as_deref(), Some("poured"));
    assert_eq!(timeline.steps[0].attempts, 3);
    let failures = &timeline.steps[0].failures;
    assert_eq!(failures.len(), 2);
    assert_eq!(failures[0].cause.message, "AuthorizationFailed");
}

/// A handler that explains failures.
struct DiagnosingHandler(Arc<Mutex<u32>>);

impl StepHandler for DiagnosingHandler {
    async fn attempt(&self, _: &StepAttempt) -> Result<Progress, Failure> {
        Err(Failure {
            cause: Cause::new("it is closed"),
            retryable: true,
        })
    }

    async fn on_failure(&self, step: &str, cause: &Cause) -> Option<String> {
        *self.0.lock() += 1;
        Some(format!("{step}: {}{}", cause.message, "é".repeat(5000)))
    }
}

#[tokio::test(start_paused = true)]
async fn the_records_of_a_failure_are_bounded_and_its_hook_is_called_once() {
    let retry = RetryPolicy {
        attempts: 50,
        ..RETRY
    };
    let list = StepList {
        kind: "open",
        steps: vec![Step::retrying("open", retry, SECOND)],
    };
    let called = Arc::new(Mutex::new(0));
    let handler = DiagnosingHandler(called.clone());
    let journal = InMemoryJournal::default();
    journal.add("tea");
    let runner = Runner::new("tea", &list, &journal, &handler, virtual_clock());
    let stop = CancellationToken::new();
    runner.run(&stop).await.unwrap();
    runner.run(&stop).await.unwrap();
    assert_eq!(*called.lock(), 1);
    let timeline = journal.load("tea").await.unwrap().timeline;
    let failures = &timeline.steps[0].failures;
    assert_eq!((failures.len(), failures[0].attempt), (8, 1));
    assert_eq!(failures[7].attempt, 50);
    assert!(timeline.message.unwrap().len() <= 4096);
}
