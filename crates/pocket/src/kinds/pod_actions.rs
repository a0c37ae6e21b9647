//! Actions on a pod other than updates: binding it to a node, evicting it.

use serde_json::{Value, json};

use super::{Cluster, WriteContext};
use crate::{
    environment::rfc3339,
    selector::LabelSelector,
    status::{ApiError, Problems},
};

/// Refuses a binding for another pod than `name`, or without a node.
pub fn check_binding(binding: &Value, name: &str) -> Result<(), ApiError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if text(&binding["metadata"]["name"]) != name {
        let why = "name in URL does not match name in Binding object";
        return Err(ApiError::bad_request(why));
    }
    let mut problems = Problems::new();
    let kind = text(&binding["target"]["kind"]);
    if !matches!(kind.as_str(), "" | "Node") {
        problems.not_supported("target.kind", kind, &["Node", "<empty>"]);
    }
    if text(&binding["target"]["name"]).is_empty() {
        problems.required("target.name", "");
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(ApiError::failure(problems.to_string()))
}

/// Copies the zone and region labels of the node to a binding, and so to the pod.
pub fn copy_topology(binding: &mut Value, node: &Value) {
    for label in [
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    ] {
        if let Some(place) = node["metadata"]["labels"].get(label) {
            binding["metadata"]["labels"][label] = place.clone();
        }
    }
}

/// The pod bound to the node that `binding` names, or why it cannot be.
pub fn bind(pod: &Value, binding: &Value, moment: &WriteContext) -> Result<Value, String> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let node = binding["target"]["name"].as_str().unwrap_or_default();
    if let Some(bound) = pod["spec"]["nodeName"]
        .as_str()
        .filter(|node| !node.is_empty())
    {
        return Err(format!(
            "pod {name} is already assigned to node \"{bound}\""
        ));
    }
    if pod["metadata"]["deletionTimestamp"].is_string() {
        return Err(format!(
            "pod {name} is being deleted, cannot be assigned to a host"
        ));
    }
    let mut bound = pod.clone();
    bound["spec"]["nodeName"] = json!(node);
    for field in ["annotations", "labels"] {
        if let Some(extra) = binding["metadata"][field].as_object() {
            for (key, value) in extra.iter().filter(|(_, value)| value.is_string()) {
                bound["metadata"][field][key] = value.clone();
            }
        }
    }
    set_scheduled(&mut bound, &rfc3339(moment.now));
    Ok(bound)
}

fn set_scheduled(pod: &mut Value, now: &str) {
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    set_condition(pod, scheduled);
}

fn set_condition(pod: &mut Value, condition: Value) {
    let conditions = &mut pod["status"]["conditions"];
    match conditions.as_array_mut() {
        Some(list) => {
            list.retain(|other| other["type"] != condition["type"]);
            list.push(condition);
        }
        None => *conditions = json!([condition]),
    }
}

/// The pod with the condition that marks an eviction.
pub fn mark_evicted(pod: &Value, moment: &WriteContext) -> Value {
    let mut marked = pod.clone();
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": null,
        "lastTransitionTime": rfc3339(moment.now),
    });
    set_condition(&mut marked, condition);
    marked
}

/// A disruption budget with one disruption less, to be stored before the eviction.
#[derive(Debug)]
pub struct Budget {
    /// The bucket in the store.
    pub bucket: &'static str,
    /// The path in the bucket.
    pub path: String,
    /// The revision it was read at.
    pub revision: u64,
    /// The new object.
    pub object: Value,
}

const BUDGETS: &str = "policy/poddisruptionbudgets";

/// The budget that an eviction of `pod` must be charged to, if one covers it.
pub fn eviction_budget(
    pod: &Value,
    cluster: &dyn Cluster,
    moment: &WriteContext,
) -> Result<Option<Budget>, ApiError> {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    // A pod that is finished, pending or terminating does not count for availability.
    if matches!(
        pod["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed" | "Pending")
    ) || pod["metadata"]["deletionTimestamp"].is_string()
    {
        return Ok(None);
    }
    let covering: Vec<Value> = cluster
        .list("policy", "poddisruptionbudgets", namespace)
        .into_iter()
        .filter(|budget| covers(budget, pod))
        .collect();
    match covering.as_slice() {
        [] => Ok(None),
        [budget] if spares(budget, pod) => Ok(None),
        [budget] => spend(budget, pod, moment).map(Some),
        _ => Err(ApiError::internal(
            "this pod has more than one PodDisruptionBudget, which the eviction subresource does not support",
        )),
    }
}

fn covers(budget: &Value, pod: &Value) -> bool {
    let selector = LabelSelector::from_object(budget["spec"].get("selector"));
    selector.is_ok_and(|selector| selector.matches_object(pod))
}

/// Whether the budget allows the eviction of a pod that is not ready.
fn spares(budget: &Value, pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    if conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True") {
        return false;
    }
    if budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow" {
        return true;
    }
    let count = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    count("desiredHealthy") > 0 && count("currentHealthy") >= count("desiredHealthy")
}

/// The refusal of an eviction. Only a budget that is about to change suggests a retry; otherwise
/// the client that drains the node decides.
fn refused(name: &str, why: &str, retry_after: Option<u32>) -> ApiError {
    let mut error = ApiError::new(
        http::StatusCode::TOO_MANY_REQUESTS,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
    )
    .caused_by(
        "DisruptionBudget",
        "",
        format!("The disruption budget {name} {why}"),
    );
    error.retry_after = retry_after;
    error
}

/// Sets the condition of a budget without remaining disruptions.
fn set_exhausted(budget: &mut Value, now: &str) {
    let condition = json!({
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "observedGeneration": budget["status"]["observedGeneration"],
        "lastTransitionTime": now,
    });
    let conditions = &mut budget["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(list) = conditions.as_array_mut() else {
        return;
    };
    match list
        .iter_mut()
        .find(|known| known["type"] == condition["type"])
    {
        Some(known) if known["status"] == "False" => {}
        Some(known) => *known = condition,
        None => list.push(condition),
    }
}

fn spend(budget: &Value, pod: &Value, moment: &WriteContext) -> Result<Budget, ApiError> {
    let text = |field: &str| budget["metadata"][field].as_str().unwrap_or_default();
    let count = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    if count("observedGeneration") < budget["metadata"]["generation"].as_i64().unwrap_or(0) {
        let why = "is still being processed by the server.";
        return Err(refused(text("name"), why, Some(10)));
    }
    let allowed = count("disruptionsAllowed");
    if allowed <= 0 {
        let why = format!(
            "needs {} healthy pods and has {} currently",
            count("desiredHealthy"),
            count("currentHealthy")
        );
        return Err(refused(text("name"), &why, None));
    }
    let mut object = budget.clone();
    object["status"]["disruptionsAllowed"] = json!(allowed - 1);
    if allowed == 1 {
        set_exhausted(&mut object, &rfc3339(moment.now));
    }
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    object["status"]["disruptedPods"][name] = json!(rfc3339(moment.now));
    Ok(Budget {
        bucket: BUDGETS,
        path: format!("{}/{}", text("namespace"), text("name")),
        revision: text("resourceVersion").parse().unwrap_or(0),
        object,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment() -> WriteContext {
        WriteContext {
            now: jiff::Timestamp::UNIX_EPOCH,
            seed: 1,
        }
    }

    #[test]
    fn binding_names_the_node_and_marks_the_pod_scheduled() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {}});
        let bound = bind(&pod, &json!({"target": {"name": "n1"}}), &moment()).unwrap();
        assert_eq!(bound["spec"]["nodeName"], "n1");
        assert_eq!(bound["status"]["conditions"][0]["type"], "PodScheduled");
    }

    #[test]
    fn a_bound_pod_says_where_it_is() {
        let node =
            json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "east", "x": "y"}}});
        let mut binding = json!({"metadata": {"name": "p"}, "target": {"name": "n1"}});
        copy_topology(&mut binding, &node);
        let pod = json!({"metadata": {"name": "p"}, "spec": {}});
        let bound = bind(&pod, &binding, &moment()).unwrap();
        let labels = json!({"topology.kubernetes.io/zone": "east"});
        assert_eq!(bound["metadata"]["labels"], labels);
    }

    #[test]
    fn binding_copies_labels_that_are_strings() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {}});
        let binding = json!({
            "metadata": {"labels": {"zone": "a", "rack": 7}},
            "target": {"name": "n1"},
        });
        let bound = bind(&pod, &binding, &moment()).unwrap();
        assert_eq!(bound["metadata"]["labels"], json!({"zone": "a"}));
    }

    #[test]
    fn an_evicted_pod_says_so_once() {
        let pod = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let marked = mark_evicted(&mark_evicted(&pod, &moment()), &moment());
        let conditions = marked["status"]["conditions"].as_array().unwrap();
        assert_eq!(conditions.len(), 2);
        assert_eq!(conditions[1]["type"], "DisruptionTarget");
        assert_eq!(conditions[1]["reason"], "EvictionByEvictionAPI");
    }

    #[test]
    fn a_second_binding_is_refused() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n1"}});
        let why = bind(&pod, &json!({"target": {"name": "n2"}}), &moment()).unwrap_err();
        assert!(why.contains("already assigned to node \"n1\""), "{why}");
    }
}
