//! What every workload has to do: enough writes, and whatever users do with things of its kind.

use std::collections::HashMap;

use neap_trial::{
    Deed, Ground, Workload,
    judge::Reference,
    plan::{Plan, plural},
    run::run,
};
use serde_json::Value;

use crate::{worker, workloads};

/// So many writes at least make those under trial.
const WRITES: usize = 15;

/// How there come to be more and fewer.
#[expect(dead_code, reason = "why not is for whoever reads the table")]
enum Scale {
    /// By this number of it.
    Number(&'static str),
    /// By how many of these there are.
    Members(&'static str),
    /// Not at all, and why.
    No(&'static str),
}

/// What of it is changed.
#[expect(dead_code, reason = "why not is for whoever reads the table")]
enum Change {
    At(&'static str),
    No(&'static str),
}

const HAVE: [(&str, Scale, Change); 16] = {
    use self::{Change as C, Scale as S};
    const REPLICAS: S = S::Number("/spec/replicas");
    const TEMPLATE: C = C::At("/spec/template");
    [
        (
            "again",
            S::No("it is about names that come again; `deployment` is scaled"),
            TEMPLATE,
        ),
        ("apply", REPLICAS, TEMPLATE),
        (
            "claim",
            S::No("storage never shrinks"),
            C::At("/spec/resources"),
        ),
        (
            "cron-job",
            S::No("an hour has one Job"),
            C::At("/spec/jobTemplate"),
        ),
        ("daemon-set", S::Members("nodes"), TEMPLATE),
        ("deployment", REPLICAS, TEMPLATE),
        ("disruption-budget", REPLICAS, C::At("/spec/maxUnavailable")),
        (
            "job",
            S::Number("/spec/parallelism"),
            C::No("the template of a Job is for ever"),
        ),
        ("lease", S::Number("/data/count"), C::At("/data/text")),
        ("node-taints", S::Members("nodes"), C::At("/spec/taints")),
        (
            "operation",
            S::No("it has steps and no replicas"),
            C::At("/spec/cancel"),
        ),
        ("replica-set", REPLICAS, TEMPLATE),
        (
            "scheduler",
            S::Members("pods"),
            C::No("where a pod may be is for ever"),
        ),
        ("service", S::Members("pods"), C::At("/spec/ports")),
        ("stateful-set", REPLICAS, TEMPLATE),
        ("watch", S::Members("secrets"), C::At("/metadata/labels")),
    ]
};

#[test]
fn every_workload_does_what_users_do() {
    let workloads = workloads();
    let mut names: Vec<_> = workloads.iter().map(|workload| workload.name).collect();
    names.sort_unstable();
    assert_eq!(names, HAVE.map(|(name, ..)| name));
    for (name, scale, change) in HAVE {
        let workload = workloads.iter().find(|workload| workload.name == name);
        let missing = missing(workload.expect("it is there"), &scale, &change);
        assert!(missing.is_empty(), "{name}: {}", missing.join(", "));
    }
}

#[test]
fn every_workload_makes_enough_writes() {
    let ground: Ground = worker::ground().expect("a server");
    for workload in workloads() {
        let calm = Plan::calm(workload.name, 7);
        let record = run(&workload, &calm, &ground).expect("a run");
        let (reference, wrong) = Reference::new(&record);
        assert!(wrong.is_empty(), "{}: {wrong:?}", workload.name);
        let writes = reference.writes();
        assert!(writes >= WRITES, "{}: {writes} writes", workload.name);
    }
}

/// What is not done to it.
fn missing(workload: &Workload, scale: &Scale, change: &Change) -> Vec<String> {
    let deeds = || workload.steps.iter().flat_map(|step| &step.deeds);
    let mut missing = Vec::new();
    let mut ask = |done: bool, what: &str| {
        if !done {
            missing.push(format!("nothing is {what}"));
        }
    };
    let mut all = deeds();
    ask(all.any(|deed| matches!(deed, Deed::Create(_))), "made");
    let mut all = deeds();
    ask(all.any(|deed| matches!(deed, Deed::Delete(_))), "deleted");
    match scale {
        Scale::Number(field) => {
            let (up, down) = moves(deeds(), field);
            ask(up, "scaled up");
            ask(down, "scaled down");
        }
        Scale::Members(kind) => {
            let mut all = deeds();
            ask(all.any(|deed| comes(deed, kind)), "scaled up");
            let mut all = deeds();
            ask(all.any(|deed| goes(deed, kind)), "scaled down");
        }
        Scale::No(_) => {}
    }
    match change {
        Change::At(field) => {
            let changes = |deed: &Deed| matches!(deed, Deed::Patch(_, patch) if patch.pointer(field).is_some());
            let mut all = deeds();
            ask(all.any(changes), "changed");
        }
        Change::No(_) => {}
    }
    missing
}

/// Whether a number of an object grows, and whether one shrinks.
fn moves<'a>(deeds: impl Iterator<Item = &'a Deed>, field: &str) -> (bool, bool) {
    let mut known: HashMap<&str, i64> = HashMap::new();
    let (mut up, mut down) = (false, false);
    for deed in deeds {
        let (name, object) = match deed {
            Deed::Create(object) => (object["metadata"]["name"].as_str(), object),
            Deed::Patch(path, patch) => (path.rsplit('/').next(), patch),
            Deed::Delete(_) => continue,
        };
        if let Some(number) = object.pointer(field).and_then(number) {
            let before = known.insert(name.unwrap_or_default(), number);
            up |= before.is_some_and(|before| before < number);
            down |= before.is_some_and(|before| before > number);
        }
    }
    (up, down)
}

fn number(value: &Value) -> Option<i64> {
    let text = value.as_str();
    value.as_i64().or_else(|| text?.parse().ok())
}

fn comes(deed: &Deed, kind: &str) -> bool {
    match deed {
        Deed::Create(object) => plural(object["kind"].as_str().unwrap_or_default()) == kind,
        _ => false,
    }
}

/// It is deleted, or loses what it was chosen by.
fn goes(deed: &Deed, kind: &str) -> bool {
    let is_one = |path: &str| path.contains(&format!("/{kind}/"));
    match deed {
        Deed::Delete(path) => is_one(path),
        Deed::Patch(path, patch) => {
            let labels = patch["metadata"]["labels"].as_object();
            is_one(path) && labels.is_some_and(|labels| labels.values().any(Value::is_null))
        }
        Deed::Create(_) => false,
    }
}
