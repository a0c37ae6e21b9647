//! What can be done to a pod beside changing it: binding it to a node, evicting it.

use serde_json::{Value, json};

use super::{Cluster, Moment};
use crate::{environment::rfc3339, selector::LabelSelector, status::ApiError};

/// The pod bound to the node that `binding` names, or why it cannot be.
pub fn bind(pod: &Value, binding: &Value, moment: &Moment) -> Result<Value, String> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let node = binding["target"]["name"]
        .as_str()
        .filter(|node| !node.is_empty());
    let Some(node) = node else {
        return Err("binding.target.name is required".into());
    };
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
            for (key, value) in extra {
                bound["metadata"][field][key] = value.clone();
            }
        }
    }
    set_scheduled(&mut bound, &rfc3339(moment.now));
    Ok(bound)
}

fn set_scheduled(pod: &mut Value, now: &str) {
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    let conditions = &mut pod["status"]["conditions"];
    match conditions.as_array_mut() {
        Some(list) => {
            list.retain(|condition| condition["type"] != "PodScheduled");
            list.push(scheduled);
        }
        None => *conditions = json!([scheduled]),
    }
}

/// A disruption budget with one disruption less, to be stored before the eviction.
#[derive(Debug)]
pub struct Budget {
    /// Where it is stored.
    pub bucket: &'static str,
    /// Its place there.
    pub path: String,
    /// The revision it was read at.
    pub revision: u64,
    /// Its new state.
    pub object: Value,
}

const BUDGETS: &str = "policy/poddisruptionbudgets";

/// The budget that an eviction of `pod` must be taken from, if one covers it.
pub fn eviction_budget(pod: &Value, cluster: &dyn Cluster) -> Result<Option<Budget>, ApiError> {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    // A pod that has ended, or never began, takes no part in availability.
    if matches!(
        pod["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed" | "Pending")
    ) {
        return Ok(None);
    }
    let covering: Vec<Value> = cluster
        .list("policy", "poddisruptionbudgets", namespace)
        .into_iter()
        .filter(|budget| covers(budget, pod))
        .collect();
    match covering.as_slice() {
        [] => Ok(None),
        [budget] => spend(budget, pod).map(Some),
        _ => Err(ApiError::internal(
            "this pod has more than one PodDisruptionBudget, which the eviction subresource does not support",
        )),
    }
}

fn covers(budget: &Value, pod: &Value) -> bool {
    let selector = LabelSelector::from_object(budget["spec"].get("selector"));
    selector.is_ok_and(|selector| selector.matches_object(pod))
}

fn spend(budget: &Value, pod: &Value) -> Result<Budget, ApiError> {
    let text = |field: &str| budget["metadata"][field].as_str().unwrap_or_default();
    let allowed = budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0);
    if allowed <= 0 {
        let mut error = ApiError::new(
            http::StatusCode::TOO_MANY_REQUESTS,
            "TooManyRequests",
            "Cannot evict pod as it would violate the pod's disruption budget.",
        )
        .caused_by(
            "DisruptionBudget",
            "",
            format!(
                "The disruption budget {} allows no more disruptions now",
                text("name")
            ),
        );
        error.retry_after = Some(10);
        return Err(error);
    }
    let mut object = budget.clone();
    object["status"]["disruptionsAllowed"] = json!(allowed - 1);
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    object["status"]["disruptedPods"][name] = pod["metadata"]["creationTimestamp"].clone();
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

    fn moment() -> Moment {
        Moment {
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
    fn a_second_binding_is_refused() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n1"}});
        let why = bind(&pod, &json!({"target": {"name": "n2"}}), &moment()).unwrap_err();
        assert!(why.contains("already assigned to node \"n1\""), "{why}");
    }
}
