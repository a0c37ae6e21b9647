//! Two backends under trial: a cluster is created and deleted while calls of a backend to the store and to
//! Hive fail, are late, are done although reported as failed, or kill or pause it.
//!
//! The store and Hive outlive the backends. The store is in memory, Hive is the emulator, and an installed
//! cluster is an API server without a socket.

mod clusters;
mod region;

use std::{env, time::Duration};

use neap_emulators::hive::{self, HiveOptions};
use neap_kit::{context::Context, manager::Component, telemetry::Telemetry};
use neap_trial::{
    ClusterTemplate, EntryKind, TraceEntry, UserRequest, Workload,
    external::ExternalClient,
    plan::{Action, ActorFilter, Fault, Filter, Nth, Plan, Point, Rule, Verb},
    run::{RunRecord, run},
};

use self::region::{Current, STORE};
use super::{Backend, BackendOptions};

/// Longer than a lease and the poll that finds it expired.
const PAUSE: Duration = Duration::from_secs(40);
/// Longer than the whole life of the cluster.
const LONG_PAUSE: Duration = Duration::from_mins(5);
/// Longer than two thirds of a lease.
const DELAY: Duration = Duration::from_secs(9);
const SEED: u64 = 7;
const BACKENDS: [&str; 2] = ["one", "two"];

fn workload(current: &Current) -> Workload {
    let mut workload =
        Workload::new("fleet").without_poison("clusters are documents, and none is poisoned");
    for definition in hive::definitions() {
        let definition = serde_json::to_value(definition).unwrap();
        workload = workload.given(UserRequest::Create(definition));
    }
    let opened = current.clone();
    workload = workload.service(STORE, move |clock| opened.open(clock));
    for name in BACKENDS {
        let current = current.clone();
        workload = workload.process(name, None, move |context, external| {
            Ok(backend(name, &current, context, external))
        });
    }
    let (of_hive, of_customer) = (current.clone(), current.clone());
    workload
        .actor("hive", move |context| {
            let options = HiveOptions::default();
            let factory = of_hive.region().clusters.clone();
            Ok(vec![hive::component(context, "hive", factory, options)?])
        })
        .actor("customer", move |_| {
            let region = of_customer.region();
            Ok(vec![Component::new("customer", move |stop| async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = region.create_and_delete() => {}
                }
            })])
        })
        .step("a cluster is created and deleted", [])
}

/// A process with one backend, which reaches store and Hive through what the plan strikes.
fn backend(
    name: &'static str,
    current: &Current,
    context: &Context,
    external: &ExternalClient,
) -> Vec<Component> {
    let region = current.region();
    let options = BackendOptions {
        // The rest at the end of a run is long, and a poll is a request.
        poll: Duration::from_secs(5),
        ..BackendOptions::new(region.owner(name))
    };
    let context = region.step_context(context, external);
    let backend = Backend::new(context, options, Telemetry::default());
    vec![backend.component("backend")]
}

/// Every fault that can strike a backend in `calm`. Which of the two claims the work is left to chance, so
/// a fault strikes either: what the backends call, Hive calls later or never.
fn faults(calm: &[TraceEntry]) -> Vec<Rule> {
    let mut rules = Vec::new();
    let mut seen = Vec::new();
    let of_backends = |entry: &&TraceEntry| BACKENDS.contains(&&*entry.actor);
    for entry in calm.iter().filter(of_backends) {
        let call = &entry.call;
        let (point, actions) = match (&entry.kind, call.verb) {
            (EntryKind::Request, Verb::Call) => (Point::ExtBefore, at_store()),
            (EntryKind::Request, verb) if verb.writes() => (Point::WriteBefore, before()),
            (EntryKind::Response(200..300), verb) if verb.writes() => (Point::WriteAfter, after()),
            (EntryKind::Request, Verb::Get) => (Point::Read, vec![fail(500), fail(429)]),
            _ => continue,
        };
        let is_outside = call.verb == Verb::Call;
        let kind = Some(call.kind.clone());
        // The names of Hive's objects differ from run to run.
        let filter = Filter {
            verb: Some(call.verb).filter(|_| !is_outside),
            kind: kind.clone().filter(|_| !is_outside),
            name: Some(call.name.clone()).filter(|_| is_outside),
            call: kind.filter(|_| is_outside),
            ..Filter::default()
        };
        seen.push((point, filter.clone()));
        let count = seen.iter().filter(|it| **it == (point, filter.clone()));
        let nth = Nth::At(u32::try_from(count.count()).unwrap());
        rules.extend(actions.into_iter().map(|action| Rule {
            point,
            filter: filter.clone(),
            nth,
            actor: ActorFilter::Any,
            action,
        }));
    }
    rules
}

fn at_store() -> Vec<Action> {
    vec![
        Action::Crash,
        fail(503),
        Action::Delay(DELAY),
        Action::Pause(PAUSE),
    ]
}

fn before() -> Vec<Action> {
    vec![
        Action::Crash,
        fail(500),
        Action::Conflict(2),
        Action::Delay(DELAY),
        Action::Pause(PAUSE),
        Action::Pause(LONG_PAUSE),
    ]
}

fn after() -> Vec<Action> {
    vec![Action::Crash, fail(504), Action::Pause(PAUSE)]
}

fn fail(code: u16) -> Action {
    Action::Fail(Fault {
        code,
        retry_after: None,
    })
}

fn played(plan: &Plan, template: &ClusterTemplate) -> RunRecord {
    let current = Current::default();
    run(&workload(&current), plan, template).unwrap()
}

/// Plays every `step`th fault. Returns how many struck.
fn play(step: usize) -> usize {
    let template = ClusterTemplate::prepare_blocking().unwrap();
    let calm = played(&Plan::without_faults("fleet", SEED), &template);
    assert_eq!(calm.violations, []);
    let rules: Vec<_> = faults(&calm.entries).into_iter().step_by(step).collect();
    let (mut failures, mut struck) = (Vec::new(), 0);
    for rule in &rules {
        let plan = Plan::without_faults("fleet", SEED).with(vec![rule.clone()]);
        let record = played(&plan, &template);
        // Renewals and claims are as many as chance has it: the last of them may not come.
        struck += usize::from(record.idle.is_empty());
        // The checks of the region are among the violations.
        let problems: Vec<_> = record.violations.iter().map(ToString::to_string).collect();
        if !problems.is_empty() {
            failures.push(format!("{plan}{}", problems.join("\n")));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} plans:\n\n{}",
        failures.len(),
        rules.len(),
        failures.join("\n\n")
    );
    assert!(
        struck * 100 >= rules.len() * 98,
        "{struck} of {} faults struck",
        rules.len()
    );
    struck
}

/// Every 101st fault. `NEAP_FAULT_STEP=1` plays all of them, which takes minutes.
#[test]
fn an_operation_ends_once_and_nothing_is_left_under_a_sample_of_faults() {
    let step = env::var("NEAP_FAULT_STEP").map_or(101, |step| step.parse().unwrap());
    let plans = play(step);
    assert!(plans > 2000 / step, "{plans} plans");
}
