//! Sites that are built and torn down step by step in a cloud, by whichever of two processes leads.
//! The cloud keeps its own ledger.

use std::time::Duration;

use kube::{CustomResourceExt, ResourceExt};
use neap_kit::{
    key::Key,
    manager::Service,
    operation::{
        Cause, Failure, Operation, Progress, Retry, Script, Step, Target, Task, Work, service,
    },
    site::Site,
    watch::Ended,
};
use neap_trial::{
    Deed, Workload,
    outside::{Errand, Outside, Refusal},
};
use serde_json::{Value, json};

const LEASE: &str = "operations";
const EAST: &str = "/apis/neaptide.dev/v1alpha1/namespaces/default/operations/build-east";
const WEST: &str = "/apis/neaptide.dev/v1alpha1/namespaces/default/operations/build-west";
const RETRY: Retry = Retry {
    attempts: 8,
    first: Duration::from_secs(1),
    most: Duration::from_secs(8),
};
const LIMIT: Duration = Duration::from_secs(30);
/// Longer than it takes until nobody is seen to write any longer.
const PATIENCE: Duration = Duration::from_secs(100);

pub(super) fn workload() -> Workload {
    let definition = serde_json::to_value(Operation::crd()).unwrap_or_default();
    Workload::new("operation")
        .process("one", Some(LEASE), services)
        .process("two", Some(LEASE), services)
        .given(Deed::Create(definition))
        .step(
            "build",
            [Deed::Create(planned("build-east", &build(), "east"))],
        )
        .step(
            "tear down and build another",
            [
                Deed::Create(planned("tear-east", &tear(), "east")),
                Deed::Create(planned("build-north", &build(), "north")),
            ],
        )
        .step(
            "build what has no place",
            [Deed::Create(planned("build-west", &build(), "west"))],
        )
        .step(
            "cancel",
            [Deed::Patch(
                WEST,
                json!({"spec": {"cancel": true, "cancelReason": "no place"}}),
            )],
        )
        .step("delete", [Deed::Delete(EAST), Deed::Delete(WEST)])
}

fn build() -> Script {
    Script {
        kind: "build",
        steps: vec![
            Step::retrying("reserve", RETRY, LIMIT),
            Step::condition("place", PATIENCE, Duration::from_hours(2)),
            Step::retrying("network", RETRY, LIMIT),
            Step::retrying("machines", RETRY, LIMIT),
        ],
    }
}

fn tear() -> Script {
    Script {
        kind: "tear down",
        steps: vec![
            Step::retrying("no-machines", RETRY, LIMIT),
            Step::retrying("no-network", RETRY, LIMIT),
            Step::retrying("release", RETRY, LIMIT),
        ],
    }
}

fn planned(name: &str, script: &Script, site: &str) -> Value {
    let target = Target {
        kind: "Site".to_owned(),
        name: site.to_owned(),
        ..Target::default()
    };
    let operation = Operation::planned(&Key::new("default", name), script, target);
    serde_json::to_value(operation).unwrap_or_default()
}

fn services(site: &Site, outside: &Outside) -> Result<Vec<Service>, Ended> {
    [build(), tear()]
        .into_iter()
        .map(|script| {
            let outside = outside.clone();
            service(site, script, move |operation| cloud(operation, &outside))
        })
        .collect()
}

fn cloud(operation: &Operation, outside: &Outside) -> Cloud {
    Cloud {
        outside: outside.clone(),
        site: operation.spec.target.name.clone(),
        name: operation.name_any(),
    }
}

/// Does the steps by asking the cloud.
struct Cloud {
    outside: Outside,
    site: String,
    name: String,
}

impl Work for Cloud {
    async fn attempt(&self, task: &Task) -> Result<Progress, Failure> {
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
        let errand = Errand {
            call,
            thing: self.site.clone(),
            operation: task.operation.clone(),
            key: task.key.clone(),
            fence: task.fence,
        };
        match self.outside.ask(errand).await {
            Ok(()) => Ok(Progress::Done),
            Err(refusal) => Err(Failure {
                cause: Cause::new(refusal.to_string()),
                may_pass: refusal != Refusal::TooLate,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use neap_trial::{
        Ground,
        operation::{Family, Rehearsal},
    };

    use super::*;

    /// How many plans a script stood.
    fn stands(script: Script) -> usize {
        let ground = Ground::ready().unwrap();
        let report = Rehearsal::new(script, cloud).try_all(&Family::ALL, &ground);
        let report = report.unwrap();
        assert!(report.findings.is_empty(), "{:#?}", report.findings);
        report.plans
    }

    #[test]
    fn building_stands_whatever_happens_at_any_step() {
        assert_eq!(stands(build()), 3 + 11 + 24 + 17);
    }

    #[test]
    fn tearing_down_stands_whatever_happens_at_any_step() {
        assert_eq!(stands(tear()), 3 + 9 + 20 + 15);
    }
}
