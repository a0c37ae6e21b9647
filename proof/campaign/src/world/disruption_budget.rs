//! A budget over the pods of a set: both are changed, and the budget is deleted.

use neap_trial::{Node, UserRequest, Workload};
use neap_world::{disruption_budget, replica_set};
use serde_json::{Value, json};

use super::web;

const BUDGET: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web";
const WEB: &str = "/apis/apps/v1/namespaces/default/replicasets/web";

pub(super) fn workload() -> Workload {
    let most = json!({"spec": {"minAvailable": null, "maxUnavailable": "50%"}});
    Workload::new("disruption-budget")
        .actor("controllers", |context| {
            let budgets = disruption_budget::component(context)?;
            Ok(vec![budgets, replica_set::component(context)?])
        })
        .node(Node::default())
        .step("create a budget", [UserRequest::Create(budget())])
        .step(
            "create its pods",
            [UserRequest::Create(web("ReplicaSet", 1))],
        )
        .step("scale up", [scale(3)])
        .step("change the budget", [UserRequest::Patch(BUDGET, most)])
        .step("scale down", [scale(1)])
        .step("delete the pods", [UserRequest::Delete(WEB)])
        .step("delete", [UserRequest::Delete(BUDGET)])
}

pub(crate) fn budget() -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
    })
}

fn scale(replicas: u32) -> UserRequest {
    UserRequest::Patch(WEB, json!({"spec": {"replicas": replicas}}))
}
