//! A budget over the pods of a set: both are changed, and the budget is deleted.

use neap_trial::{Deed, Node, Workload};
use neap_world::{disruption_budget, replica_set};
use serde_json::{Value, json};

use super::web;

const BUDGET: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web";
const WEB: &str = "/apis/apps/v1/namespaces/default/replicasets/web";

pub(super) fn workload() -> Workload {
    let most = json!({"spec": {"minAvailable": null, "maxUnavailable": "50%"}});
    Workload::new("disruption-budget")
        .actor("controllers", |site| {
            let budgets = disruption_budget::service(site)?;
            Ok(vec![budgets, replica_set::service(site)?])
        })
        .node(Node::default())
        .step("create a budget", [Deed::Create(budget())])
        .step("create its pods", [Deed::Create(web("ReplicaSet", 1))])
        .step("scale up", [scale(3)])
        .step("change the budget", [Deed::Patch(BUDGET, most)])
        .step("scale down", [scale(1)])
        .step("delete the pods", [Deed::Delete(WEB)])
        .step("delete", [Deed::Delete(BUDGET)])
}

pub(crate) fn budget() -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
    })
}

fn scale(replicas: u32) -> Deed {
    Deed::Patch(WEB, json!({"spec": {"replicas": replicas}}))
}
