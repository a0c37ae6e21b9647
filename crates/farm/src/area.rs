//! What `farm` registers with the program: error codes, definitions, rights, how its kinds are summed up and
//! judged, and the check of farms.

mod check;
mod codes;

use std::fmt::Write as _;

use jiff::Timestamp;
use neap_kit::{
    area::{Area, AreaCheck, AreaKind, Metric, ResourceType, Right, Role, RoleScope},
    explain::{Assessment, Verdict},
};
use serde::Deserialize;
use serde_json::Value;

use crate::api::{ComponentStatus, State, definitions};

const VERSION: &str = "buildbarn.io/v1alpha1";
/// How the kinds are called and where they are.
pub const STORAGE: ResourceType =
    ResourceType::namespaced("BuildbarnStorage", VERSION, "buildbarnstorages");
/// Schedulers.
pub const SCHEDULER: ResourceType =
    ResourceType::namespaced("BuildbarnScheduler", VERSION, "buildbarnschedulers");
/// Pools of workers.
pub const WORKER: ResourceType =
    ResourceType::namespaced("BuildbarnWorker", VERSION, "buildbarnworkers");
/// Frontends.
pub const FRONTEND: ResourceType =
    ResourceType::namespaced("BuildbarnFrontend", VERSION, "buildbarnfrontends");
/// Browsers.
pub const BROWSER: ResourceType =
    ResourceType::namespaced("BuildbarnBrowser", VERSION, "buildbarnbrowsers");

/// The ServiceAccount of the operator, as in the manifests.
const ACCOUNT: &str = "buildbarn-controller-manager";

/// For objects that are made: found, applied and deleted.
const OWN: &[&str] = &["create", "delete", "get", "list", "patch", "watch"];

/// The registration of this area.
pub const AREA: Area = Area {
    codes: codes::ENTRIES,
    definitions,
    roles: &[
        Role {
            name: "buildbarn-manager-role",
            scope: RoleScope::Cluster,
            account: ACCOUNT,
            rights: &[
                Right::new("", &["configmaps", "serviceaccounts", "services"], OWN),
                Right::new("", &["events"], &["create", "get", "update"]),
                Right::new(
                    "",
                    &["persistentvolumeclaims", "pods"],
                    &["list", "patch", "watch"],
                ),
                Right::new("apps", &["deployments", "statefulsets"], OWN),
                Right::new("networking.k8s.io", &["ingresses", "networkpolicies"], OWN),
                Right::new("policy", &["poddisruptionbudgets"], OWN),
                Right::new("monitoring.coreos.com", &["servicemonitors"], OWN),
                Right::new(
                    "neaptide.dev",
                    &["operations"],
                    &["create", "delete", "list", "watch"],
                ),
                Right::new("neaptide.dev", &["operations/status"], &["update"]),
                Right::new(
                    "buildbarn.io",
                    &[
                        "buildbarnbrowsers",
                        "buildbarnfrontends",
                        "buildbarnschedulers",
                        "buildbarnstorages",
                        "buildbarnworkers",
                    ],
                    &["get", "list", "patch", "watch"],
                ),
                Right::new(
                    "buildbarn.io",
                    &[
                        "buildbarnbrowsers/finalizers",
                        "buildbarnbrowsers/status",
                        "buildbarnfrontends/finalizers",
                        "buildbarnfrontends/status",
                        "buildbarnschedulers/finalizers",
                        "buildbarnschedulers/status",
                        "buildbarnstorages/finalizers",
                        "buildbarnstorages/status",
                        "buildbarnworkers/finalizers",
                        "buildbarnworkers/status",
                    ],
                    &["update"],
                ),
            ],
        },
        Role {
            name: "buildbarn-leader-election-role",
            scope: RoleScope::OwnNamespace,
            account: ACCOUNT,
            rights: &[Right::new(
                "coordination.k8s.io",
                &["leases"],
                &["create", "get", "update"],
            )],
        },
    ],
    kinds: &[
        kind(STORAGE, "Build farms: storage", "buildbarnStorages"),
        kind(SCHEDULER, "Build farms: schedulers", "buildbarnSchedulers"),
        kind(WORKER, "Build farms: pools of workers", "buildbarnWorkers"),
        kind(FRONTEND, "Build farms: frontends", "buildbarnFrontends"),
        kind(BROWSER, "Build farms: browsers", "buildbarnBrowsers"),
    ],
    check: Some(AreaCheck {
        reads: &[STORAGE, SCHEDULER, WORKER, FRONTEND, BROWSER],
        judge: check::findings,
    }),
    metrics: METRICS,
    ..Area::new("farm", "build farms")
};

/// The farm has the metrics of every controller and none of its own.
const METRICS: &[Metric] = &[];

const fn kind(resource: ResourceType, title: &'static str, key: &'static str) -> AreaKind {
    AreaKind {
        resource,
        title,
        key,
        summary,
        assess,
        related: &[],
    }
}

fn status_of(object: &Value) -> ComponentStatus {
    ComponentStatus::deserialize(&object["status"]).unwrap_or_default()
}

/// The state, the ready pods, and what is being drained.
fn summary(object: &Value, _: Timestamp) -> String {
    let status = status_of(object);
    let state = state_word(status.state);
    let mut text = format!(
        "{state}, {} of {} pods ready",
        status.ready_replicas, status.replicas
    );
    if !status.drains.is_empty() {
        let running: u32 = status.drains.iter().filter_map(|drain| drain.running).sum();
        let _ = write!(
            text,
            ", {} drained with {running} running actions",
            status.drains.len()
        );
    }
    text
}

/// The state in lower case.
pub fn state_word(state: Option<State>) -> &'static str {
    match state {
        Some(State::Creating) => "creating",
        Some(State::Reconciling) => "reconciling",
        Some(State::Ready) => "ready",
        Some(State::NotReady) => "not ready",
        Some(State::NotFound) => "not found",
        Some(State::Deleting) => "deleting",
        Some(State::Unknown) | None => "unknown",
    }
}

/// The reason of its state, drains one by one, and a plan that waits.
fn assess(object: &Value, now: Timestamp) -> Option<Assessment> {
    let status = status_of(object);
    let verdict = match status.state? {
        State::Ready => Verdict::Healthy,
        State::Deleting => Verdict::Terminating,
        State::Creating | State::Reconciling => Verdict::Progressing,
        State::NotReady | State::NotFound | State::Unknown => Verdict::Degraded,
    };
    let stalled = status
        .conditions
        .iter()
        .any(|it| it.type_ == "Stalled" && it.status == "True");
    let ready = status.conditions.iter().find(|it| it.type_ == "Ready");
    let mut why: Vec<_> = ready.iter().map(|it| it.message.clone()).collect();
    let extra = ["Exposed", "SchemaUnknown", "Draining", "Resharding"];
    let extra = status
        .conditions
        .iter()
        .filter(|it| extra.contains(&&*it.type_));
    why.extend(extra.map(|it| it.message.clone()));
    for drain in &status.drains {
        why.push(drain_text(drain, now));
    }
    let mut advice = Vec::new();
    if let Some(plan) = status
        .storage
        .as_ref()
        .and_then(|storage| storage.plan.as_ref())
    {
        advice.push(format!(
            "the change of the storage waits: {}; it is carried out with spec.acknowledgedPlan: {:?}",
            plan.summary, plan.id
        ));
    }
    Some(Assessment {
        verdict: if stalled {
            verdict.or_worse(Verdict::Degraded)
        } else {
            verdict
        },
        why,
        advice,
        covers: &[
            "Ready",
            "Stalled",
            "Reconciling",
            "Exposed",
            "SchemaUnknown",
            "Draining",
            "Resharding",
        ],
    })
}

fn drain_text(drain: &crate::api::DrainStatus, now: Timestamp) -> String {
    let pod = drain
        .pattern
        .get("pod")
        .map_or("all workers", String::as_str);
    let running = match drain.running {
        Some(0) => "no action runs".to_owned(),
        Some(running) => format!("{running} actions run"),
        None => "its actions are not counted yet".to_owned(),
    };
    let left = drain
        .deadline
        .map(|deadline| deadline.duration_since(now).as_secs().max(0));
    let left = left.map_or(String::new(), |left| {
        format!("; it may end in {left} s at the latest")
    });
    format!("{pod} is drained ({}): {running}{left}", drain.reason)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_registration_is_complete() {
        assert_eq!(AREA.problems(), [""; 0]);
    }

    #[test]
    fn a_drain_is_explained_with_its_actions_and_its_bound() {
        let object = json!({"status": {
            "state": "Reconciling", "replicas": 3, "readyReplicas": 3,
            "drains": [{
                "pattern": {"pod": "w-0"}, "reason": "ScaleDown", "running": 2,
                "deadline": "2026-01-01T00:01:00Z",
            }],
        }});
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let assessment = assess(&object, now).unwrap();
        assert_eq!(assessment.verdict, Verdict::Progressing);
        let expected =
            "w-0 is drained (ScaleDown): 2 actions run; it may end in 60 s at the latest";
        assert_eq!(assessment.why, [expected]);
        let text = "reconciling, 3 of 3 pods ready, 1 drained with 2 running actions";
        assert_eq!(summary(&object, now), text);
    }
}
