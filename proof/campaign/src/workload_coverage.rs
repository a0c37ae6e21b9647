//! What every workload must contain: enough writes, and the operations that users perform on its
//! kind.

use std::collections::HashMap;

use neap_trial::{
    ClusterTemplate, UserRequest, Workload,
    judge::Reference,
    plan::{Plan, plural},
    run::run,
};
use serde_json::Value;

use crate::{worker, workloads};

/// Writes that the processes of a workload make at least.
const MIN_WRITES: usize = 15;

/// It deletes images in a registry, and writes nothing to the API server.
const WRITES_ELSEWHERE: &str = "release-mirrors";

/// How a workload is scaled.
#[expect(dead_code, reason = "the reason is documentation")]
enum Scale {
    /// By this field.
    Number(&'static str),
    /// By the number of these objects.
    Members(&'static str),
    /// Not at all, with the reason.
    No(&'static str),
}

/// The field that is changed.
#[expect(dead_code, reason = "the reason is documentation")]
enum Change {
    At(&'static str),
    No(&'static str),
}

const EXPECTED: [(&str, Scale, Change); 25] = {
    use self::{Change as C, Scale as S};
    const REPLICAS: S = S::Number("/spec/replicas");
    const TEMPLATE: C = C::At("/spec/template");
    const NO_NUMBER: S = S::No("a release has no number");
    const OVERRIDE: C = C::At("/spec/payloadOverride");
    const IMAGES: C = C::At("/status/tags");
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
        ("farm", REPLICAS, C::At("/spec/concurrency")),
        ("farm-leaders", REPLICAS, C::At("/spec/concurrency")),
        (
            "farm-shards",
            S::No("it is about storage that grows; `farm` is scaled"),
            C::At("/spec/resharding"),
        ),
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
        (
            "release-imports",
            S::No("an import has no number"),
            C::At("/spec/tags"),
        ),
        ("release-leaders", NO_NUMBER, OVERRIDE),
        (
            "release-mirrors",
            S::No("it is about what is deleted; the releases of the stream shrink"),
            C::At("/spec/tags"),
        ),
        ("release-nightly", NO_NUMBER, IMAGES),
        ("release-nightly-leaders", NO_NUMBER, IMAGES),
        ("release-stable", NO_NUMBER, OVERRIDE),
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
    assert_eq!(names, EXPECTED.map(|(name, ..)| name));
    for (name, scale, change) in EXPECTED {
        let workload = workloads.iter().find(|workload| workload.name == name);
        let missing = missing(workload.expect("it is there"), &scale, &change);
        assert!(missing.is_empty(), "{name}: {}", missing.join(", "));
    }
}

#[test]
fn every_workload_makes_enough_writes() {
    let template: ClusterTemplate = worker::template().expect("a server");
    for workload in workloads() {
        let calm = Plan::without_faults(workload.name, 7);
        let record = run(&workload, &calm, &template).expect("a run");
        let (reference, wrong) = Reference::new(&record);
        assert!(wrong.is_empty(), "{}: {wrong:?}", workload.name);
        let writes = reference.writes();
        let enough = writes >= MIN_WRITES || workload.name == WRITES_ELSEWHERE;
        assert!(enough, "{}: {writes} writes", workload.name);
    }
}

/// The operations that the workload lacks.
fn missing(workload: &Workload, scale: &Scale, change: &Change) -> Vec<String> {
    let requests = || workload.steps.iter().flat_map(|step| &step.requests);
    let mut missing = Vec::new();
    let mut require = |done: bool, what: &str| {
        if !done {
            missing.push(format!("nothing is {what}"));
        }
    };
    let mut all = requests();
    require(
        all.any(|request| matches!(request, UserRequest::Create(_))),
        "made",
    );
    let mut all = requests();
    require(
        all.any(|request| matches!(request, UserRequest::Delete(_))),
        "deleted",
    );
    match scale {
        Scale::Number(field) => {
            let (up, down) = changes_of(requests(), field);
            require(up, "scaled up");
            require(down, "scaled down");
        }
        Scale::Members(kind) => {
            let mut all = requests();
            require(all.any(|request| creates_one(request, kind)), "scaled up");
            let mut all = requests();
            require(all.any(|request| removes_one(request, kind)), "scaled down");
        }
        Scale::No(_) => {}
    }
    match change {
        Change::At(field) => {
            let changes = |request: &UserRequest| matches!(request, UserRequest::Patch(_, patch) if patch.pointer(field).is_some());
            let mut all = requests();
            require(all.any(changes), "changed");
        }
        Change::No(_) => {}
    }
    missing
}

/// Whether the field of an object ever grows, and whether it ever shrinks.
fn changes_of<'a>(requests: impl Iterator<Item = &'a UserRequest>, field: &str) -> (bool, bool) {
    let mut known: HashMap<&str, i64> = HashMap::new();
    let (mut up, mut down) = (false, false);
    for request in requests {
        let (name, object) = match request {
            UserRequest::Create(object) => (object["metadata"]["name"].as_str(), object),
            UserRequest::Patch(path, patch) => (path.rsplit('/').next(), patch),
            UserRequest::Delete(_) => continue,
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

fn creates_one(request: &UserRequest, kind: &str) -> bool {
    match request {
        UserRequest::Create(object) => plural(object["kind"].as_str().unwrap_or_default()) == kind,
        _ => false,
    }
}

/// Whether the object is deleted, or loses the label that selects it.
fn removes_one(request: &UserRequest, kind: &str) -> bool {
    let is_one = |path: &str| path.contains(&format!("/{kind}/"));
    match request {
        UserRequest::Delete(path) => is_one(path),
        UserRequest::Patch(path, patch) => {
            let labels = patch["metadata"]["labels"].as_object();
            is_one(path) && labels.is_some_and(|labels| labels.values().any(Value::is_null))
        }
        UserRequest::Create(_) => false,
    }
}
