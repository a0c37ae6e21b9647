//! An Operation of two steps, and a runner for all of them.

use std::time::Duration;

use anyhow::{Context, Result};
use kube::CustomResourceExt;
use neap_kit::operation::{
    Failure, Operation, Progress, Step, StepAttempt, StepHandler, StepList, component,
};
use neap_trial::{
    UserRequest, Workload,
    walk::{Schema, Subject},
};
use serde_json::json;

pub(super) fn subject() -> Result<Subject> {
    let definition = serde_json::to_value(Operation::crd())?;
    let schema = definition.pointer("/spec/versions/0/schema/openAPIV3Schema");
    let schema = Schema::custom(schema.context("a definition without a schema")?.clone());
    Ok(Subject {
        workload: Workload::new("operation")
            .actor("runner", |context| {
                Ok(vec![component(context, step_list(), |_| Easy)?])
            })
            .given(UserRequest::Create(definition)),
        object: json!({
            "apiVersion": "neaptide.dev/v1alpha1", "kind": "Operation",
            "metadata": {"name": "move", "namespace": "default"},
            "spec": {"work": "move", "target": {"kind": "ConfigMap", "name": "a"}, "steps": ["lift", "drop"]},
        }),
        schema,
        // A finished operation stays finished.
        afresh: false,
        leaves: None,
    })
}

fn step_list() -> StepList {
    let limit = Duration::from_secs(10);
    StepList {
        kind: "move",
        steps: vec![Step::action("lift", limit), Step::action("drop", limit)],
    }
}

/// A handler whose steps succeed at once.
struct Easy;

impl StepHandler for Easy {
    async fn attempt(&self, _task: &StepAttempt) -> Result<Progress, Failure> {
        Ok(Progress::Done)
    }
}
