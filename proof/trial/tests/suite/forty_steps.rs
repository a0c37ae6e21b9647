//! The step engine with forty steps: each kind of step fails, is repeated, meets a crash at each write, is
//! taken over while its first runner is paused, is cancelled, and is resumed by another version.
//!
//! Beside the oracles of every run: a step that has ended runs again only if it says so.

mod list;

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kube::CustomResourceExt;
use neap_kit::{
    context::Context,
    key::Key,
    manager::Component,
    operation::{Operation, StepList, StepState, Target, component},
    watch::WatchesStopped,
};
use neap_trial::{
    ClusterTemplate, EntryKind, TraceEntry, UserRequest, Workload,
    external::{ExternalClient, Reply},
    judge::Reference,
    plan::{Action, ActorFilter, Fault, Filter, Nth, Plan, Point, Rule, Verb},
    run::{RunRecord, run},
};
use serde_json::Value;

use self::list::{Handler, is_new, is_rerun, makes_calls, next_version, step_list};

const NAME: &str = "forty-steps";
const LEASE: &str = "operations";
const SEED: u64 = 7;
/// Longer than the Lease duration of a run.
const TAKEOVER_PAUSE: Duration = Duration::from_mins(1);
/// A call in flight arrives after another process has taken over.
const LATE: Duration = Duration::from_secs(90);
/// Long enough for a user to cancel what runs.
const IN_FLIGHT: Duration = Duration::from_secs(30);

/// Every how many plans of a family one is played. `NEAP_FAULT_STEP=1` plays all of them, and every step
/// where only some are refused and cancelled, which takes minutes.
fn sample(usual: usize) -> usize {
    env::var("NEAP_FAULT_STEP").map_or(usual, |step| step.parse().unwrap())
}

/// A sample of crashes and take-overs.
const SAMPLE: usize = 19;
/// A sample of steps.
const STEPS: usize = 5;

fn runner(
    context: &Context,
    external: &ExternalClient,
    list: StepList,
) -> Result<Vec<Component>, WatchesStopped> {
    let handler = Handler::new(external.clone());
    let handler = move |_: &Operation| handler.clone();
    Ok(vec![component(context, list, handler)?])
}

fn started(workload: Workload) -> Workload {
    let target = Target {
        kind: "Thing".to_owned(),
        name: "thing".to_owned(),
        ..Target::default()
    };
    let operation = Operation::planned(&Key::new("default", "long"), &step_list(), target);
    let value = |object| serde_json::to_value(object).unwrap();
    let definition = serde_json::to_value(Operation::crd()).unwrap();
    workload
        .given(UserRequest::Create(definition))
        .step("begin", [UserRequest::Create(value(operation))])
}

/// Two processes, of which one leads.
fn two_processes() -> Workload {
    let mut workload = Workload::new(NAME);
    for name in ["one", "two"] {
        workload = workload.process(name, Some(LEASE), |context, external| {
            runner(context, external, step_list())
        });
    }
    started(workload)
}

/// One process, which is another version after its first crash.
fn upgraded() -> Workload {
    let lives = Arc::new(AtomicUsize::new(0));
    started(
        Workload::new(NAME).process("one", None, move |context, external| {
            let list = match lives.fetch_add(1, Ordering::Relaxed) {
                0 => step_list(),
                _ => next_version(),
            };
            runner(context, external, list)
        }),
    )
}

/// The same, and a user who cancels the operation when this step has started.
fn cancelled_at(step: &'static str) -> Workload {
    two_processes().actor("user", move |context| {
        let operations = context.cache::<Operation>()?;
        let (writer, clock) = (context.writer("user"), context.clock);
        Ok(vec![Component::new("user", move |_| async move {
            loop {
                let key = Key::new("default", "long");
                let found = operations.get(&key);
                let status = found.as_ref().and_then(|it| it.status.as_ref());
                let has_started =
                    status.is_some_and(|it| it.steps.iter().any(|record| record.name == step));
                if let Some(operation) = found.filter(|it| has_started && !it.spec.cancel) {
                    let mut operation = Operation::clone(&operation);
                    operation.spec.cancel = true;
                    // A conflict is tried again.
                    let _ = writer.replace(&operation).await;
                }
                clock.sleep(Duration::from_millis(100)).await;
            }
        })])
    })
}

struct Bench {
    template: ClusterTemplate,
    calm: RunRecord,
    failures: Vec<String>,
    plans: usize,
}

impl Bench {
    fn new() -> Self {
        let template = ClusterTemplate::prepare_blocking().unwrap();
        let plan = Plan::without_faults(NAME, SEED);
        let calm = run(&two_processes(), &plan, &template).unwrap();
        assert_eq!(calm.violations, []);
        assert_eq!(status(&calm)["phase"], "Succeeded");
        assert_eq!(status(&calm)["steps"].as_array().unwrap().len(), 40);
        Self {
            template,
            calm,
            failures: Vec::new(),
            plans: 0,
        }
    }

    /// Plays `rules` and adds what `judge` finds, and what is true of every run.
    fn play(
        &mut self,
        what: &str,
        workload: &Workload,
        rules: Vec<Rule>,
        judge: impl FnOnce(&RunRecord) -> Vec<String>,
    ) {
        let plan = Plan::without_faults(NAME, SEED).with(rules);
        let record = run(workload, &plan, &self.template).unwrap();
        let mut problems: Vec<_> = record.violations.iter().map(ToString::to_string).collect();
        problems.extend(
            record
                .idle
                .iter()
                .map(|rule| format!("rule {rule} never struck")),
        );
        problems.extend(run_again(&record));
        problems.extend(judge(&record));
        problems.sort();
        problems.dedup();
        self.plans += 1;
        if !problems.is_empty() {
            let problems = problems.join("\n");
            self.failures.push(format!("{what}\n{plan}{problems}"));
        }
    }

    /// The number of plans that were played, all of which hold.
    fn end(self) -> usize {
        let (failed, plans) = (self.failures.len(), self.plans);
        let shown: Vec<_> = self.failures.into_iter().take(5).collect();
        assert!(
            shown.is_empty(),
            "{failed} of {plans}:\n\n{}",
            shown.join("\n\n")
        );
        plans
    }

    /// The number of writes to the Operation.
    fn writes(&self) -> u32 {
        let writes = self.calm.entries.iter().filter(|entry| {
            entry.kind == EntryKind::Request && entry.call.kind == "operations/status"
        });
        u32::try_from(writes.count()).unwrap()
    }

    /// The same result as without faults.
    fn as_without_faults(&self) -> impl Fn(&RunRecord) -> Vec<String> + use<> {
        let (reference, odd) = Reference::new(&self.calm);
        assert_eq!(odd, []);
        move |record| {
            let violations = reference.judge(record).into_iter();
            violations.map(|violation| violation.to_string()).collect()
        }
    }
}

fn fail(code: u16) -> Action {
    Action::Fail(Fault {
        code,
        retry_after: None,
    })
}

fn write(point: Point, number: u32, action: Action) -> Rule {
    let filter = Filter {
        verb: Some(Verb::Update),
        kind: Some("operations/status".to_owned()),
        ..Filter::default()
    };
    rule(point, filter, Nth::At(number), action)
}

fn call(point: Point, step: &str, nth: Nth, action: Action) -> Rule {
    let filter = Filter {
        name: Some(step.to_owned()),
        ..Filter::default()
    };
    rule(point, filter, nth, action)
}

fn rule(point: Point, filter: Filter, nth: Nth, action: Action) -> Rule {
    Rule {
        point,
        filter,
        nth,
        actor: ActorFilter::Any,
        action,
    }
}

fn status(record: &RunRecord) -> Value {
    let end = record.states.last().into_iter().flatten();
    let mut operations = end.filter(|(kind, ..)| &**kind == "neaptide.dev/operations");
    let operation = operations.next().map(|(_, _, object)| object.value());
    operation.unwrap_or_default()["status"].clone()
}

/// How often each call took effect.
fn effects(record: &RunRecord) -> BTreeMap<String, usize> {
    let mut effects = BTreeMap::new();
    for row in record.ledger.iter().filter(|row| row.reply == Reply::Done) {
        *effects.entry(row.call.target.clone()).or_default() += 1;
    }
    effects
}

/// Steps that ran again after their end was durable, and do not say that they may.
fn run_again(record: &RunRecord) -> Vec<String> {
    let mut ended: BTreeMap<String, (String, u64)> = BTreeMap::new();
    let mut problems = Vec::new();
    let states = record
        .history
        .iter()
        .filter(|it| &*it.resource == "neaptide.dev/operations");
    for event in states {
        let object = event.object.value();
        let steps = object["status"]["steps"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        for step in &steps {
            let name = step["name"].as_str().unwrap_or_default().to_owned();
            let attempts = step["attempts"].as_u64().unwrap_or_default();
            let state: StepState = serde_json::from_value(step["state"].clone()).unwrap();
            if let Some((at, before)) = ended.get(&name)
                && (attempts != *before || !state.is_done())
                && !is_rerun(&name)
            {
                problems.push(format!("{name} ended at {at}, and was attempted again"));
            }
            if state.is_done() {
                let at = step["ended"].as_str().unwrap_or_default().to_owned();
                ended.entry(name).or_insert((at, attempts));
            }
        }
    }
    // Polls of a condition are not recorded one by one, so the calls are checked as well.
    problems.extend(calls_after_end(&record.entries));
    problems
}

/// Calls of a step after one of a later step, which shows that it had ended.
fn calls_after_end(entries: &[TraceEntry]) -> Vec<String> {
    let mut done: BTreeSet<&str> = BTreeSet::new();
    let mut current: Option<&str> = None;
    let mut problems = Vec::new();
    // A step that is new runs before the one that was interrupted.
    let calls = entries.iter().filter(|it| {
        it.kind == EntryKind::Request && it.call.verb == Verb::Call && !is_new(&it.call.name)
    });
    for entry in calls {
        let step = &*entry.call.name;
        if done.contains(step) && !is_rerun(step) {
            problems.push(format!("{step} was called after a later step"));
        }
        if let Some(before) = current.filter(|before| *before != step && !is_rerun(step)) {
            done.insert(before);
        }
        if !is_rerun(step) {
            current = Some(step);
        }
    }
    problems
}

#[test]
fn a_refused_step_ends_the_operation_and_nothing_is_done_after_it() {
    let mut bench = Bench::new();
    let steps = step_list().steps;
    let refused = steps
        .iter()
        .enumerate()
        .filter(|(_, it)| makes_calls(it.name));
    for (at, step) in refused.step_by(sample(STEPS)) {
        let always = call(Point::ExtBefore, step.name, Nth::Every(1), fail(500));
        let before: BTreeSet<_> = steps[..at]
            .iter()
            .filter(|it| makes_calls(it.name))
            .map(|it| it.name.to_owned())
            .collect();
        bench.play(step.name, &two_processes(), vec![always], |record| {
            let status = status(record);
            let mut problems = Vec::new();
            if status["phase"] != "Failed" || status["step"] != step.name {
                problems.push(format!("{} at {}", status["phase"], status["step"]));
            }
            let done: BTreeSet<_> = effects(record).into_keys().collect();
            if done != before {
                problems.push(format!("{done:?} was done instead of {before:?}"));
            }
            problems
        });
    }
    assert!(bench.end() >= 5);
}

#[test]
fn forty_steps_survive_repetition_crashes_and_takeovers() {
    let mut bench = Bench::new();
    let mut plans: Vec<Vec<Rule>> = Vec::new();
    for number in 1..=bench.writes() {
        for (point, action) in [
            (Point::WriteBefore, fail(500)),
            (Point::WriteAfter, fail(504)),
            (Point::WriteBefore, Action::Crash),
            (Point::WriteAfter, Action::Crash),
            (Point::WriteBefore, Action::Pause(TAKEOVER_PAUSE)),
            (Point::WriteAfter, Action::Pause(TAKEOVER_PAUSE)),
        ] {
            plans.push(vec![write(point, number, action)]);
        }
    }
    for step in step_list().steps.iter().filter(|it| makes_calls(it.name)) {
        let first = |point, action| call(point, step.name, Nth::At(1), action);
        let stopped = first(Point::ExtBefore, Action::Pause(TAKEOVER_PAUSE));
        plans.extend([
            vec![first(Point::ExtAfter, fail(504))],
            vec![first(Point::ExtBefore, Action::Crash)],
            vec![first(Point::ExtAfter, Action::Crash)],
            vec![stopped.clone()],
            vec![first(Point::ExtAfter, Action::Pause(TAKEOVER_PAUSE))],
            vec![first(Point::ExtBefore, Action::Delay(LATE)), stopped],
        ]);
    }
    let judge = bench.as_without_faults();
    for rules in plans.into_iter().step_by(sample(SAMPLE)) {
        bench.play("", &two_processes(), rules, &judge);
    }
    assert!(bench.end() >= 25);
}

#[test]
fn a_cancel_interrupts_the_attempt_that_runs_and_no_later_step_starts() {
    let mut bench = Bench::new();
    let steps = step_list().steps;
    let cancelled = steps
        .iter()
        .enumerate()
        .filter(|(_, it)| makes_calls(it.name));
    for (at, step) in cancelled.step_by(sample(STEPS)) {
        let in_flight = call(
            Point::ExtBefore,
            step.name,
            Nth::At(1),
            Action::Delay(IN_FLIGHT),
        );
        let later: BTreeSet<_> = steps[at + 1..].iter().map(|it| it.name).collect();
        bench.play(
            step.name,
            &cancelled_at(step.name),
            vec![in_flight],
            |record| {
                let status = status(record);
                let mut problems = Vec::new();
                if status["phase"] != "Cancelled" || status["step"] != step.name {
                    problems.push(format!("{} at {}", status["phase"], status["step"]));
                }
                for effect in effects(record).into_keys() {
                    if later.contains(&*effect) {
                        problems.push(format!("{effect} was done after the cancellation"));
                    }
                }
                problems
            },
        );
    }
    assert!(bench.end() >= 5);
}

#[test]
fn a_version_with_two_steps_more_and_one_less_continues_where_the_other_crashed() {
    let mut bench = Bench::new();
    let (old, new) = (step_list(), next_version());
    let names = |list: &StepList| -> BTreeSet<&str> {
        let calling = list.steps.iter().map(|it| it.name);
        calling.filter(|name| makes_calls(name)).collect()
    };
    let (old, new) = (names(&old), names(&new));
    assert_eq!(new.difference(&old).count(), 2);
    assert_eq!(old.difference(&new).count(), 1);
    let dropped = *old.difference(&new).next().unwrap();
    // The last write ends the operation, and with it every version.
    for number in (1..bench.writes() - 1).step_by(sample(SAMPLE)) {
        for point in [Point::WriteBefore, Point::WriteAfter] {
            let crash = vec![write(point, number, Action::Crash)];
            bench.play("", &upgraded(), crash, |record| {
                let mut effects = effects(record);
                let mut problems = Vec::new();
                if status(record)["phase"] != "Succeeded" {
                    problems.push(status(record)["message"].to_string());
                }
                if effects.remove(dropped).is_some_and(|times| times != 1) {
                    problems.push(format!("{dropped} was done again"));
                }
                let wanted: BTreeMap<_, _> =
                    new.iter().map(|name| ((*name).to_owned(), 1)).collect();
                if effects != wanted {
                    problems.push(format!("{effects:?} was done instead of {wanted:?}"));
                }
                problems
            });
        }
    }
    assert!(bench.end() >= 6);
}
