//! An Operation of two steps, and a runner for all of them.

use std::time::Duration;

use anyhow::{Context, Result};
use kube::CustomResourceExt;
use neap_kit::operation::{Failure, Operation, Progress, Script, Step, Task, Work, service};
use neap_trial::{
    Deed, Workload,
    walk::{Schema, Subject},
};
use serde_json::json;

pub(super) fn subject() -> Result<Subject> {
    let definition = serde_json::to_value(Operation::crd())?;
    let schema = definition.pointer("/spec/versions/0/schema/openAPIV3Schema");
    let schema = Schema::custom(schema.context("a definition without a schema")?.clone());
    Ok(Subject {
        workload: Workload::new("operation")
            .actor("runner", |site| {
                Ok(vec![service(site, script(), |_| Easy)?])
            })
            .given(Deed::Create(definition)),
        object: json!({
            "apiVersion": "neaptide.dev/v1alpha1", "kind": "Operation",
            "metadata": {"name": "move", "namespace": "default"},
            "spec": {"work": "move", "target": {"kind": "ConfigMap", "name": "a"}, "steps": ["lift", "drop"]},
        }),
        schema,
        // What has ended stays as it ended.
        afresh: false,
        leaves: None,
    })
}

fn script() -> Script {
    let limit = Duration::from_secs(10);
    Script {
        kind: "move",
        steps: vec![Step::action("lift", limit), Step::action("drop", limit)],
    }
}

/// Every step succeeds at once.
struct Easy;

impl Work for Easy {
    async fn attempt(&self, _task: &Task) -> Result<Progress, Failure> {
        Ok(Progress::Done)
    }
}
