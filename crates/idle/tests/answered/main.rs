//! O4: every request that a resolver has accepted gets one complete answer or one documented error,
//! whatever fault strikes the operator, the resolver or the cluster meanwhile.
//!
//! Runs have no sockets, so a connection is a held request and a pod is an address that accepts it or
//! not; queues, wakes, route tables and the operator are the real ones.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed, and prints what it observed"
)]

mod controllers;
mod operator;
mod resolver;
mod run_state;
#[path = "../stand_in/stubs.rs"]
mod stubs;

use std::{sync::Arc, time::Duration};

use kube::CustomResourceExt;
use neap_idle::api::ElastiService;
use neap_trial::{
    ClusterTemplate, UserRequest, Workload,
    generate::{fault_sites, plan, single},
    plan::Plan,
    proof,
    run::run,
};
use serde_json::{Value, json};

use self::{run_state::RunState, stubs::VERDICT_ANNOTATION};

const WEB: &str = "/apis/elasti.truefoundry.com/v1alpha1/namespaces/default/elastiservices/web";
const SEED: u64 = 7;
/// The step between the faults that are played, since all of them take minutes. `NEAP_IDLE_EVERY=1` plays
/// all.
const FAULT_STEP: usize = 71;

fn public(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80}]},
    })
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "app"}]},
            },
        },
    })
}

fn web() -> Value {
    json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "service": "web", "cooldownPeriod": 60,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "triggers": [{"type": "prometheus"}],
        },
    })
}

/// A service that falls asleep after a minute without requests, and clients with a fixed schedule.
fn workload(state: &Arc<RunState>) -> Workload {
    let definition = serde_json::to_value(ElastiService::crd()).unwrap_or_default();
    let (ours, theirs, cluster, clients) =
        (state.clone(), state.clone(), state.clone(), state.clone());
    let idle = json!({"metadata": {"annotations": {VERDICT_ANNOTATION: "idle"}}});
    Workload::new("answered")
        .without_poison("all namespaces share the ports of the resolvers")
        .differs(
            "ElastiService",
            "/status/savedReplicaSeconds",
            "faults change how long a service sleeps",
        )
        .actor("operator", move |context| {
            operator::components(context, &ours)
        })
        .actor("resolver", move |context| {
            resolver::components(context, &theirs)
        })
        .actor("cluster", move |context| {
            controllers::components(context, &cluster)
        })
        .actor("clients", move |context| Ok(clients.clients(context)))
        .given(UserRequest::Create(definition))
        .given(UserRequest::Create(public("web")))
        .given(UserRequest::Create(public("resolver")))
        .given(UserRequest::Create(deployment()))
        .step("declare", [UserRequest::Create(web())])
        .step("sleep", [UserRequest::Patch(WEB, idle)])
        .until(run_state::LAST_REQUEST + Duration::from_mins(3))
}

/// Plays one plan; the error lists the violations.
fn played(plan: &Plan, ground: &ClusterTemplate) -> Result<(Arc<RunState>, bool), proof::Failure> {
    let state = Arc::new(RunState::default());
    let record = run(&workload(&state), plan, ground)?;
    let mut violations = state.violations();
    violations.extend(record.violations.iter().map(ToString::to_string));
    if violations.is_empty() {
        return Ok((state, record.idle.is_empty()));
    }
    Err(format!("{plan}{}", violations.join("\n")).into())
}

/// Plays every `step`th fault; returns how many of them struck.
fn every_nth_fault(step: usize) -> Result<usize, proof::Failure> {
    let ground = ClusterTemplate::prepare_blocking().map_err(|error| error.to_string())?;
    let state = Arc::new(RunState::default());
    let calm = run(
        &workload(&state),
        &Plan::without_faults("answered", SEED),
        &ground,
    )?;
    let seen: Vec<String> = calm.violations.iter().map(ToString::to_string).collect();
    assert!(seen.is_empty(), "without any fault: {seen:#?}");
    assert_eq!(
        state.violations(),
        Vec::<String>::new(),
        "without any fault"
    );
    assert_eq!(state.answered(), run_state::REQUESTS, "without any fault");
    let wakes = state.wakes();
    assert!(wakes >= 2, "it slept and woke {wakes} times");
    let rules = single(&fault_sites(&calm.entries));
    let all = rules.len();
    let (mut struck, mut bad, mut answered, mut closed) = (0, Vec::new(), 0, 0);
    for rule in rules.into_iter().step_by(step) {
        let plan = plan("answered", SEED, vec![rule]);
        match played(&plan, &ground) {
            Ok((state, hit)) => {
                struck += usize::from(hit);
                answered += state.answered();
                closed += state.closed();
            }
            Err(wrong) => bad.push(wrong.to_string()),
        }
    }
    println!("{struck} of {all} faults: {answered} answered, {closed} cut off with a resolver");
    let count = bad.len();
    bad.truncate(5);
    assert!(bad.is_empty(), "{count} plans:\n{}", bad.join("\n\n"));
    Ok(struck)
}

#[test]
fn every_accepted_request_is_answered_once_or_refused_with_a_reason() -> Result<(), proof::Failure>
{
    let every = std::env::var("NEAP_IDLE_EVERY").ok();
    let every = every.and_then(|every| every.parse().ok());
    let every = every.unwrap_or(FAULT_STEP);
    let struck = every_nth_fault(every)?;
    assert!(struck > 1800 / every, "{struck} faults");
    Ok(())
}
