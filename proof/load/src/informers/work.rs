//! The work for the controllers, and the checks that it was done.

use anyhow::Result;
use serde_json::{Value, json};

use super::api::Api;

/// Everything but the first Deployment.
pub(super) const MANIFEST: &str = include_str!("work.yaml");

/// A result of a controller: its description, the collection, and the check.
type ExpectedResult = (&'static str, &'static str, fn(&[Value]) -> bool);

const EXPECTED_RESULTS: [ExpectedResult; 18] = [
    (
        "a set for the deployment",
        "/apis/apps/v1/namespaces/harbour/replicasets",
        |sets| {
            sets.iter()
                .any(|set| is_controlled_by(set, "web") && set["status"]["readyReplicas"] == 3)
        },
    ),
    (
        "pods for the set",
        "/api/v1/namespaces/harbour/pods",
        |pods| {
            pods.iter()
                .filter(|pod| pod["metadata"]["labels"]["app"] == "web")
                .count()
                == 3
        },
    ),
    (
        "ready pods of the stateful set",
        "/apis/apps/v1/namespaces/harbour/statefulsets",
        |sets| status(sets, "db")["readyReplicas"] == 2,
    ),
    (
        "a ready pod of the daemon set",
        "/apis/apps/v1/namespaces/harbour/daemonsets",
        |sets| status(sets, "agent")["numberReady"] == 1,
    ),
    (
        "a ready pod of the replication controller",
        "/api/v1/namespaces/harbour/replicationcontrollers",
        |all| status(all, "old")["readyReplicas"] == 1,
    ),
    (
        "the job's completion",
        "/apis/batch/v1/namespaces/harbour/jobs",
        |jobs| {
            status(jobs, "once")["succeeded"] == 2
                && condition(status(jobs, "once"), "Complete") == "True"
        },
    ),
    (
        "the end of the job with a time to live",
        "/apis/batch/v1/namespaces/harbour/jobs",
        |jobs| named(jobs, "brief").is_null(),
    ),
    (
        "a job of the schedule",
        "/apis/batch/v1/namespaces/harbour/jobs",
        |jobs| jobs.iter().any(|job| is_controlled_by(job, "often")),
    ),
    (
        "a claim for the pod's volume",
        "/api/v1/namespaces/harbour/persistentvolumeclaims",
        |claims| is_controlled_by(named(claims, "diver-tank"), "diver"),
    ),
    (
        "volumes for the claims",
        "/api/v1/namespaces/harbour/persistentvolumeclaims",
        |claims| {
            ["data-db-0", "data-db-1"]
                .iter()
                .all(|name| status(claims, name)["phase"] == "Bound")
        },
    ),
    (
        "endpoints of the service",
        "/api/v1/namespaces/harbour/endpoints",
        |all| {
            let addresses = &named(all, "web")["subsets"][0]["addresses"];
            addresses
                .as_array()
                .is_some_and(|addresses| addresses.len() == 3)
        },
    ),
    (
        "slices of both services",
        "/apis/discovery.k8s.io/v1/namespaces/harbour/endpointslices",
        |slices| endpoints(slices, "web") == 3 && endpoints(slices, "outside") == 1,
    ),
    (
        "the count of the disruption budget",
        "/apis/policy/v1/namespaces/harbour/poddisruptionbudgets",
        |all| status(all, "web")["disruptionsAllowed"] == 2,
    ),
    (
        "the verdict of the autoscaler",
        "/apis/autoscaling/v2/namespaces/harbour/horizontalpodautoscalers",
        |all| condition(status(all, "idle"), "ScalingActive") == "False",
    ),
    (
        "the count of the quota",
        "/api/v1/namespaces/harbour/resourcequotas",
        |all| status(all, "plenty")["used"]["count/deployments.apps"] == "2",
    ),
    (
        "a token for the secret",
        "/api/v1/namespaces/harbour/secrets",
        |all| named(all, "token")["data"]["token"].is_string(),
    ),
    (
        "the end of the expired token",
        "/api/v1/namespaces/kube-system/secrets",
        |all| named(all, "bootstrap-token-abcdef").is_null(),
    ),
    (
        "the rules of the aggregated role",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        |roles| {
            named(roles, "crew")["rules"]
                == json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
        },
    ),
];

/// Waits for all results, in order, and reports each.
pub(super) async fn is_done(api: &Api, report: &impl Fn(String)) -> Result<()> {
    for (what, collection, holds) in EXPECTED_RESULTS {
        api.until(what, collection, holds).await?;
        report(what.to_owned());
    }
    Ok(())
}

fn named<'a>(items: &'a [Value], name: &str) -> &'a Value {
    let found = items.iter().find(|item| item["metadata"]["name"] == name);
    found.unwrap_or(&Value::Null)
}

fn status<'a>(items: &'a [Value], name: &str) -> &'a Value {
    &named(items, name)["status"]
}

fn condition<'a>(status: &'a Value, kind: &str) -> &'a str {
    let conditions = status["conditions"].as_array();
    let found = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == kind));
    found
        .and_then(|condition| condition["status"].as_str())
        .unwrap_or("")
}

fn is_controlled_by(object: &Value, owner: &str) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.is_some_and(|owners| {
        owners
            .iter()
            .any(|reference| reference["name"] == owner && reference["controller"] == true)
    })
}

fn endpoints(slices: &[Value], service: &str) -> usize {
    let of_service =
        |slice: &&Value| slice["metadata"]["labels"]["kubernetes.io/service-name"] == service;
    let counts = slices.iter().filter(of_service);
    counts
        .filter_map(|slice| slice["endpoints"].as_array().map(Vec::len))
        .sum()
}
