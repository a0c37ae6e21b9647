use serde_json::json;

use super::*;

const PODS: CountedResource<'static> = CountedResource {
    group: "",
    plural: "pods",
};

#[expect(
    clippy::needless_pass_by_value,
    reason = "cases read better with the literal in place"
)]
fn quota(hard: Value) -> Value {
    json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})
}

fn pod(cpu: &str, memory: &str) -> Value {
    json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}}}]}})
}

#[test]
fn what_is_there_is_added_up() {
    let quota = quota(
        json!({"pods": "2", "requests.cpu": "1", "limits.memory": "1Gi", "count/deployments.apps": "1", "configmaps": "3", "example.com/x": "1"}),
    );
    let used = used(
        &quota,
        &|resource| match (resource.group, resource.plural) {
            ("", "pods") => vec![
                pod("600m", "512Mi"),
                pod("100m", "100Mi"),
                json!({"status": {"phase": "Succeeded"}}),
            ],
            ("apps", "deployments") => vec![json!({})],
            _ => Vec::new(),
        },
    );
    assert_eq!(
        status(&quota, &used)["used"],
        json!({"pods": "2", "requests.cpu": "700m", "limits.memory": "612Mi", "count/deployments.apps": "1", "configmaps": "0"})
    );
}

#[test]
fn a_write_beyond_the_quota_is_told_by_how_much() {
    let quota = quota(json!({"pods": "2", "requests.cpu": "1", "limits.memory": "1Gi"}));
    let used = used(&quota, &|_| vec![pod("600m", "512Mi")]);
    let refusals = |pod: &Value| exceeded(&quota, &used, &growth(&quota, PODS, pod, None));
    assert_eq!(refusals(&pod("100m", "100Mi")), None);
    assert_eq!(
        refusals(&pod("600m", "512Mi")).unwrap(),
        "exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1"
    );
    assert_eq!(
        refusals(&pod("600m", "700Mi")).unwrap(),
        "exceeded quota: q, requested: limits.memory=700Mi,requests.cpu=600m, used: limits.memory=512Mi,requests.cpu=600m, limited: limits.memory=1Gi,requests.cpu=1"
    );
}

#[test]
fn only_what_grows_is_checked() {
    let quota = quota(json!({"services.nodeports": "0", "services": "0"}));
    let service = CountedResource {
        group: "",
        plural: "services",
    };
    let of = |kind: &str| json!({"spec": {"type": kind, "ports": [{}]}});
    let growth = |new: &str, old: &str| growth(&quota, service, &of(new), Some(&of(old)));
    assert!(growth("ClusterIP", "NodePort").is_empty());
    assert_eq!(growth("NodePort", "ClusterIP").len(), 1);
}

#[test]
fn pods_must_say_what_is_counted() {
    let quota = quota(json!({"requests.cpu": "1", "limits.memory": "1Gi", "pods": "3"}));
    let silent = json!({"spec": {"containers": [{"name": "c"}]}});
    assert_eq!(
        unsaid(&quota, &silent).unwrap(),
        "failed quota: q: must specify limits.memory for: c; requests.cpu for: c"
    );
    assert_eq!(unsaid(&quota, &pod("1", "1")), None);
}

#[test]
fn scopes_narrow_a_quota_to_some_pods() {
    let silent = json!({"spec": {"containers": [{"name": "c"}]}});
    let mut timed = pod("1", "1");
    timed["spec"]["activeDeadlineSeconds"] = json!(5);
    let mut classy = pod("1", "1");
    classy["spec"]["priorityClassName"] = json!("high");
    let of = |scope: &str| json!({"spec": {"scopes": [scope], "hard": {"pods": "0"}}});
    for (quota, object, counts) in [
        (of("BestEffort"), &silent, true),
        (of("BestEffort"), &timed, false),
        (of("NotBestEffort"), &timed, true),
        (of("Terminating"), &timed, true),
        (of("NotTerminating"), &timed, false),
        (of("PriorityClass"), &classy, true),
        (
            json!({"spec": {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}}}),
            &classy,
            true,
        ),
        (
            json!({"spec": {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["low"]}]}}}),
            &classy,
            false,
        ),
    ] {
        assert_eq!(covers(&quota, PODS, object), counts, "{quota}");
    }
    assert!(!covers(
        &of("BestEffort"),
        CountedResource {
            group: "",
            plural: "services"
        },
        &silent
    ));
}
