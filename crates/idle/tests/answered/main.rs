//! O4: whoever a resolver has taken in gets one complete answer or one documented error, whatever
//! fault strikes the operator, the resolver or the cluster meanwhile.
//!
//! Runs are played where there are no sockets, so a connection is a place in the resolver's line and
//! a pod is somebody who takes it or not; lines, wakes, tables and the operator are the real ones.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed, and says what it saw"
)]

#[path = "../stand_in/answers.rs"]
mod answers;
mod cluster;
mod operator;
mod resolver;
mod town;

use std::{sync::Arc, time::Duration};

use kube::CustomResourceExt;
use neap_idle::api::ElastiService;
use neap_trial::{
    Deed, Ground, Workload,
    generate::{places, plan, single},
    plan::Plan,
    proof,
    run::run,
};
use serde_json::{Value, json};

use self::{answers::SAYS, town::Town};

const WEB: &str = "/apis/elasti.truefoundry.com/v1alpha1/namespaces/default/elastiservices/web";
const SEED: u64 = 7;
/// Every so manieth fault, since all of them take minutes. `NEAP_IDLE_EVERY=1` takes all.
const EVERY: usize = 71;

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

/// It sleeps whenever nobody asks for a minute; clients ask at times of their own.
fn workload(town: &Arc<Town>) -> Workload {
    let definition = serde_json::to_value(ElastiService::crd()).unwrap_or_default();
    let (ours, theirs, cluster, clients) = (town.clone(), town.clone(), town.clone(), town.clone());
    let idle = json!({"metadata": {"annotations": {SAYS: "idle"}}});
    Workload::new("answered")
        .without_poison("all namespaces share the ports of the resolvers")
        .actor("operator", move |site| operator::services(site, &ours))
        .actor("resolver", move |site| resolver::services(site, &theirs))
        .actor("cluster", move |site| cluster::services(site, &cluster))
        .actor("clients", move |site| Ok(clients.clients(site)))
        .given(Deed::Create(definition))
        .given(Deed::Create(public("web")))
        .given(Deed::Create(public("resolver")))
        .given(Deed::Create(deployment()))
        .step("declare", [Deed::Create(web())])
        .step("sleep", [Deed::Patch(WEB, idle)])
        .until(town::LAST + Duration::from_mins(3))
}

/// What went wrong in one run, in words.
fn played(plan: &Plan, ground: &Ground) -> Result<(Arc<Town>, bool), proof::Failure> {
    let town = Arc::new(Town::default());
    let record = run(&workload(&town), plan, ground)?;
    let mut wrong = town.wrong();
    wrong.extend(record.violations.iter().map(ToString::to_string));
    if wrong.is_empty() {
        return Ok((town, record.idle.is_empty()));
    }
    Err(format!("{plan}{}", wrong.join("\n")).into())
}

/// How many faults struck.
fn every_nth_fault(step: usize) -> Result<usize, proof::Failure> {
    let ground = Ground::ready().map_err(|error| error.to_string())?;
    let town = Arc::new(Town::default());
    let calm = run(&workload(&town), &Plan::calm("answered", SEED), &ground)?;
    let seen: Vec<String> = calm.violations.iter().map(ToString::to_string).collect();
    assert!(seen.is_empty(), "without any fault: {seen:#?}");
    assert_eq!(town.wrong(), Vec::<String>::new(), "without any fault");
    assert_eq!(town.answered(), town::REQUESTS, "without any fault");
    let wakes = town.wakes();
    assert!(wakes >= 2, "it slept and woke {wakes} times");
    let rules = single(&places(&calm.entries));
    let all = rules.len();
    let (mut struck, mut bad, mut answered, mut closed) = (0, Vec::new(), 0, 0);
    for rule in rules.into_iter().step_by(step) {
        let plan = plan("answered", SEED, vec![rule]);
        match played(&plan, &ground) {
            Ok((town, hit)) => {
                struck += usize::from(hit);
                answered += town.answered();
                closed += town.closed();
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
fn whoever_was_taken_in_is_answered_once_or_told_why_not() -> Result<(), proof::Failure> {
    let every = std::env::var("NEAP_IDLE_EVERY").ok();
    let every = every.and_then(|every| every.parse().ok()).unwrap_or(EVERY);
    let struck = every_nth_fault(every)?;
    assert!(struck > 1800 / every, "{struck} faults");
    Ok(())
}
