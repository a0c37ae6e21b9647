//! Keeps the taints of nodes in step with their conditions and specs.
//!
//! A node that is not ready, or that a user has cordoned, gets no new pods: the controller taints
//! it, and the scheduler reads only the taints. A new Node is not ready until its kubelet reports
//! so, so without this controller no pod would ever be placed.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Taint};
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    context::Context,
    controller::Outcome,
    key::Key,
    manager::Component,
    watch::{Cache, WatchesStopped},
};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
const NO_SCHEDULE: &str = "NoSchedule";

pub fn component(context: &Context) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, "node-lifecycle-controller");
    let nodes = builder.primary()?;
    let reconciler = NodeTaintReconciler {
        tools: builder.tools(),
        nodes,
    };
    Ok(builder.build(reconciler, NodeTaintReconciler::reconcile))
}

struct NodeTaintReconciler {
    nodes: Cache<Node>,
    tools: Tools,
}

impl NodeTaintReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(node) = self.nodes.get(&key) else {
            return Ok(Outcome::Gone);
        };
        if let Some(taints) = decide(&node) {
            let mut node = (*node).clone();
            node.spec.get_or_insert_default().taints = Some(taints);
            self.tools.writer.replace(&node).await?;
        }
        Ok(Outcome::Done)
    }
}

/// The taints that the node should have; none if it has them.
fn decide(node: &Node) -> Option<Vec<Taint>> {
    let spec = node.spec.as_ref();
    let there = spec.and_then(|spec| spec.taints.clone());
    let there = there.unwrap_or_default();
    let wanted = [
        (NOT_READY, !is_ready(node)),
        (
            UNSCHEDULABLE,
            spec.and_then(|spec| spec.unschedulable) == Some(true),
        ),
    ];
    let is = |taint: &Taint, key: &str| taint.key == key && taint.effect == NO_SCHEDULE;
    let ours = |taint: &Taint| wanted.iter().any(|(key, _)| is(taint, key));
    let others = there.iter().filter(|taint| !ours(taint)).cloned();
    let own = wanted.iter().filter(|(_, wanted)| *wanted).map(|(key, _)| {
        let kept = there.iter().find(|taint| is(taint, key)).cloned();
        kept.unwrap_or_else(|| Taint {
            key: (*key).to_owned(),
            effect: NO_SCHEDULE.to_owned(),
            ..Taint::default()
        })
    });
    let taints: Vec<_> = others.chain(own).collect();
    let same = taints.len() == there.len() && taints.iter().all(|taint| there.contains(taint));
    (!same).then_some(taints)
}

fn is_ready(node: &Node) -> bool {
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The keys of the taints after a reconcile; none if nothing changes.
    fn taints(ready: &str, cordoned: bool, there: &[&str]) -> Option<Vec<String>> {
        let there: Vec<Value> = there
            .iter()
            .map(|key| json!({"key": key, "effect": "NoSchedule"}))
            .collect();
        let node = json!({
            "spec": {"unschedulable": cordoned, "taints": there},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        });
        let taints = decide(&serde_json::from_value(node).unwrap())?;
        Some(taints.into_iter().map(|taint| taint.key).collect())
    }

    #[test]
    fn a_node_that_is_ready_loses_the_taint_and_nothing_else() {
        assert_eq!(taints("True", false, &[]), None);
        let left = taints("True", false, &["gpu", NOT_READY]);
        assert_eq!(left.unwrap(), ["gpu"]);
    }

    #[test]
    fn a_node_that_is_not_ready_or_cordoned_has_the_taint_once() {
        assert_eq!(
            taints("False", false, &["gpu"]).unwrap(),
            ["gpu", NOT_READY]
        );
        assert_eq!(taints("Unknown", false, &[NOT_READY, "gpu"]), None);
        let both = taints("False", true, &[]);
        assert_eq!(both.unwrap(), [NOT_READY, UNSCHEDULABLE]);
        assert_eq!(taints("True", false, &[UNSCHEDULABLE]).unwrap(), [""; 0]);
    }
}
