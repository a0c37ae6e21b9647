//! Sites that are built and torn down step by step in a cloud, by the leader of two processes. The
//! cloud keeps its own ledger.

use std::time::Duration;

use kube::{CustomResourceExt, ResourceExt};
use neap_kit::{
    context::Context,
    key::Key,
    manager::Component,
    operation::{
        Cause, Failure, Operation, Progress, RetryPolicy, Step, StepAttempt, StepHandler, StepList,
        Target, component,
    },
    watch::WatchesStopped,
};
use neap_trial::{
    UserRequest, Workload,
    external::{CallError, ExternalCall, ExternalClient},
};
use serde_json::{Value, json};

const LEASE: &str = "operations";
const EAST: &str = "/apis/neaptide.dev/v1alpha1/namespaces/default/operations/build-east";
const WEST: &str = "/apis/neaptide.dev/v1alpha1/namespaces/default/operations/build-west";
const RETRY: RetryPolicy = RetryPolicy {
    attempts: 8,
    first: Duration::from_secs(1),
    max: Duration::from_secs(8),
};
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
/// Longer than the time without writes after which a step counts as quiet.
const CONDITION_INTERVAL: Duration = Duration::from_secs(100);

pub(super) fn workload() -> Workload {
    let definition = serde_json::to_value(Operation::crd()).unwrap_or_default();
    Workload::new("operation")
        .process("one", Some(LEASE), components)
        .process("two", Some(LEASE), components)
        .given(UserRequest::Create(definition))
        .step(
            "build",
            [UserRequest::Create(planned("build-east", &build(), "east"))],
        )
        .step(
            "tear down and build another",
            [
                UserRequest::Create(planned("tear-east", &tear(), "east")),
                UserRequest::Create(planned("build-north", &build(), "north")),
            ],
        )
        .step(
            "build what has no place",
            [UserRequest::Create(planned("build-west", &build(), "west"))],
        )
        .step(
            "cancel",
            [UserRequest::Patch(
                WEST,
                json!({"spec": {"cancel": true, "cancelReason": "no place"}}),
            )],
        )
        .step(
            "delete",
            [UserRequest::Delete(EAST), UserRequest::Delete(WEST)],
        )
}

fn build() -> StepList {
    StepList {
        kind: "build",
        steps: vec![
            Step::retrying("reserve", RETRY, ATTEMPT_TIMEOUT),
            Step::condition("place", CONDITION_INTERVAL, Duration::from_hours(2)),
            Step::retrying("network", RETRY, ATTEMPT_TIMEOUT),
            Step::retrying("machines", RETRY, ATTEMPT_TIMEOUT),
        ],
    }
}

fn tear() -> StepList {
    StepList {
        kind: "tear down",
        steps: vec![
            Step::retrying("no-machines", RETRY, ATTEMPT_TIMEOUT),
            Step::retrying("no-network", RETRY, ATTEMPT_TIMEOUT),
            Step::retrying("release", RETRY, ATTEMPT_TIMEOUT),
        ],
    }
}

fn planned(name: &str, step_list: &StepList, site: &str) -> Value {
    let target = Target {
        kind: "Site".to_owned(),
        name: site.to_owned(),
        ..Target::default()
    };
    let operation = Operation::planned(&Key::new("default", name), step_list, target);
    serde_json::to_value(operation).unwrap_or_default()
}

fn components(
    context: &Context,
    external: &ExternalClient,
) -> Result<Vec<Component>, WatchesStopped> {
    [build(), tear()]
        .into_iter()
        .map(|step_list| {
            let external = external.clone();
            component(context, step_list, move |operation| {
                cloud(operation, &external)
            })
        })
        .collect()
}

fn cloud(operation: &Operation, external: &ExternalClient) -> Cloud {
    Cloud {
        external: external.clone(),
        site: operation.spec.target.name.clone(),
        name: operation.name_any(),
    }
}

/// Executes the steps by calling the cloud.
struct Cloud {
    external: ExternalClient,
    site: String,
    name: String,
}

impl StepHandler for Cloud {
    async fn attempt(&self, task: &StepAttempt) -> Result<Progress, Failure> {
        let call = match &*task.step {
            "place" if self.name == "build-west" => {
                return Ok(Progress::NotYet("there is no place in the west".to_owned()));
            }
            "place" => return Ok(Progress::Done),
            "reserve" => "reserve",
            "network" => "make-network",
            "machines" => "make-machines",
            "no-machines" => "delete-machines",
            "no-network" => "delete-network",
            _ => "release",
        };
        let external_call = ExternalCall {
            call,
            target: self.site.clone(),
            operation: task.operation.clone(),
            key: task.key.clone(),
            fence: task.fence,
        };
        match self.external.call(external_call).await {
            Ok(()) => Ok(Progress::Done),
            Err(refusal) => Err(Failure {
                cause: Cause::new(refusal.to_string()),
                retryable: refusal != CallError::StaleFence,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use neap_trial::{
        ClusterTemplate,
        operation::{Family, OperationTrial},
    };

    use super::*;

    /// The number of plans that the operation withstood.
    fn stands(step_list: StepList) -> usize {
        let template = ClusterTemplate::prepare_blocking().unwrap();
        let report = OperationTrial::new(step_list, cloud).try_all(&Family::ALL, &template);
        let report = report.unwrap();
        assert!(report.findings.is_empty(), "{:#?}", report.findings);
        report.plans
    }

    #[test]
    fn building_survives_whatever_happens_at_any_step() {
        assert_eq!(stands(build()), 3 + 11 + 24 + 17);
    }

    #[test]
    fn tearing_down_survives_whatever_happens_at_any_step() {
        assert_eq!(stands(tear()), 3 + 9 + 20 + 15);
    }
}
