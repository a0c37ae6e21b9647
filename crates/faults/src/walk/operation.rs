//! An Operation of two steps, and a runner for all of them.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use kube::CustomResourceExt;
use neap_kit::{
    apply::Error,
    controller::{Options, Outcome},
    key::Key,
    manager::Service,
    operation::{Failure, Objects, Operation, Progress, Runner, Script, Step, Task, Work},
    site::Site,
    watch::{Cache, Ended},
};
use neap_trial::{
    Deed, Workload,
    walk::{Schema, Subject},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

pub(super) fn subject() -> Result<Subject> {
    let definition = serde_json::to_value(Operation::crd())?;
    let schema = definition.pointer("/spec/versions/0/schema/openAPIV3Schema");
    let schema = Schema::custom(schema.context("a definition without a schema")?.clone());
    Ok(Subject {
        workload: Workload::new("operation")
            .actor("runner", |site| Ok(vec![service(site)?]))
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

fn service(site: &Site) -> Result<Service, Ended> {
    let operations: Cache<Operation> = site.all()?;
    let controller = site.controller(Options::new("operations"));
    let trigger = controller.trigger();
    operations.follow(move |change| trigger.changed(change.key()));
    let journal = Arc::new(Objects::new(site.hand("operations"), site.clock));
    let (known, clock) = (operations.clone(), site.clock);
    let reconcile = move |key: Key| {
        let (journal, known) = (journal.clone(), known.clone());
        async move {
            if known.get(&key).is_none() {
                return Ok::<_, Error>(Outcome::Gone);
            }
            let (id, script) = (key.to_string(), script());
            let runner = Runner {
                id: &id,
                script: &script,
                journal: &*journal,
                work: &Easy,
                clock,
            };
            match runner.run(&CancellationToken::new()).await {
                Ok(_) => Ok(Outcome::Settled),
                Err(_) => Ok(Outcome::Again(Duration::from_secs(5))),
            }
        }
    };
    Ok(Service::new("operations", move |stop| async move {
        let known = async move { operations.synced().await };
        controller.run_once_known(known, reconcile, stop).await;
    }))
}
