//! The life of a farm: created, scaled both ways, its pool and its scheduler changed, its pool deleted.

use neap_trial::{UserRequest, Workload};
use serde_json::{Value, json};

use crate::processes::{self, NAMESPACE, Replicas, asking};

pub(crate) const STORAGE: &str =
    "/apis/buildbarn.io/v1alpha1/namespaces/default/buildbarnstorages/storage";
const SCHEDULER: &str =
    "/apis/buildbarn.io/v1alpha1/namespaces/default/buildbarnschedulers/scheduler";
const POOL: &str = "/apis/buildbarn.io/v1alpha1/namespaces/default/buildbarnworkers/linux";
const BROWSER: &str = "/apis/buildbarn.io/v1alpha1/namespaces/default/buildbarnbrowsers/browser";
const FRONTEND: &str = "/apis/buildbarn.io/v1alpha1/namespaces/default/buildbarnfrontends/frontend";

/// With one operator.
pub fn workload() -> Workload {
    steps(processes::workload("farm", Replicas::One, asking))
}

/// With two operators, which elect a leader.
pub fn elected() -> Workload {
    steps(processes::workload("farm-leaders", Replicas::Two, asking))
}

fn steps(workload: Workload) -> Workload {
    workload
        .step("create", components(2))
        .step("scale up", [scale(3)])
        .step(
            "the pool changes",
            [UserRequest::Patch(
                POOL,
                json!({"spec": {"concurrency": 1}}),
            )],
        )
        .step("scale down", [scale(1)])
        .step(
            "the scheduler changes",
            [UserRequest::Patch(
                SCHEDULER,
                json!({"spec": {"noWorkersTimeoutSeconds": 60}}),
            )],
        )
        .step("the pool is deleted", [UserRequest::Delete(POOL)])
        .step("the browser is deleted", [UserRequest::Delete(BROWSER)])
        .step(
            "the rest is deleted",
            [
                UserRequest::Delete(FRONTEND),
                UserRequest::Delete(SCHEDULER),
                UserRequest::Delete(STORAGE),
            ],
        )
}

fn scale(replicas: u32) -> UserRequest {
    UserRequest::Patch(POOL, json!({"spec": {"replicas": replicas}}))
}

/// The components of a farm, with a pool of this many workers.
pub(crate) fn components(workers: u32) -> Vec<UserRequest> {
    let pool = json!({"replicas": workers, "instance": "linux", "drain": {"timeoutSeconds": 900}});
    vec![
        create("BuildbarnStorage", "storage", &json!({"replicas": 1})),
        create("BuildbarnScheduler", "scheduler", &json!({})),
        create("BuildbarnWorker", "linux", &pool),
        create("BuildbarnFrontend", "frontend", &json!({"replicas": 1})),
        create("BuildbarnBrowser", "browser", &json!({"replicas": 1})),
    ]
}

fn create(kind: &str, name: &str, spec: &Value) -> UserRequest {
    UserRequest::Create(json!({
        "apiVersion": "buildbarn.io/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
    }))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use futures::future::{BoxFuture, FutureExt};
    use neap_farm::{
        platform::QueueName,
        queue::{BuildQueue, Error, QueueFacts, QueueState, WorkerFacts},
    };
    use neap_trial::{ClusterTemplate, judge::Oracle, plan::Plan, proof, run::RunRecord, run::run};

    use super::*;

    fn calm(workload: &Workload) -> RunRecord {
        let template = ClusterTemplate::prepare_blocking().unwrap();
        run(workload, &Plan::without_faults(workload.name, 7), &template).unwrap()
    }

    /// Every how many faults are played; `NEAP_FARM_EVERY=1` plays all, which takes hours.
    pub(crate) fn every(usual: usize) -> usize {
        let every = std::env::var("NEAP_FARM_EVERY").ok();
        every.and_then(|every| every.parse().ok()).unwrap_or(usual)
    }

    #[test]
    fn without_faults_each_roll_out_is_an_operation_that_succeeds() {
        let record = calm(&workload());
        assert_eq!(record.violations, []);
        let operations = record.history.iter();
        let operations = operations.filter(|it| &*it.resource == "neaptide.dev/operations");
        let last: BTreeMap<_, _> = operations
            .map(|it| {
                (
                    it.path.to_string(),
                    it.object.value()["status"]["phase"].clone(),
                )
            })
            .collect();
        // The pool, the scheduler, and all programs that know the address of the browser.
        let wanted = [1, 2, 3].map(|it| (format!("default/rollout-{it}"), "Succeeded".into()));
        assert_eq!(last, wanted.into());
    }

    #[test]
    fn farms_survive_a_sample_of_faults() -> Result<(), proof::Failure> {
        let every = every(3499);
        let faults = proof::every_nth_fault(&workload(), every)?;
        assert!(faults > 10_000 / every, "{faults} faults");
        Ok(())
    }

    #[test]
    fn farms_survive_a_change_of_the_leader() -> Result<(), proof::Failure> {
        let every = every(9973);
        let faults = proof::every_nth_fault(&elected(), every)?;
        assert!(faults > 10_000 / every, "{faults} faults");
        Ok(())
    }

    /// Believes that no worker runs an action.
    #[derive(Debug)]
    struct Careless(Arc<dyn BuildQueue>);

    impl BuildQueue for Careless {
        fn queue<'a>(
            &'a self,
            scheduler: &'a str,
            queue: &'a QueueName,
        ) -> BoxFuture<'a, Result<QueueFacts, Error>> {
            async move {
                let mut facts = self.0.queue(scheduler, queue).await?;
                for worker in &mut facts.workers {
                    worker.executing = false;
                }
                Ok(facts)
            }
            .boxed()
        }

        fn queues<'a>(
            &'a self,
            scheduler: &'a str,
        ) -> BoxFuture<'a, Result<Vec<QueueState>, Error>> {
            self.0.queues(scheduler)
        }

        fn workers<'a>(
            &'a self,
            scheduler: &'a str,
            queue: &'a QueueName,
        ) -> BoxFuture<'a, Result<Vec<WorkerFacts>, Error>> {
            self.0.workers(scheduler, queue)
        }

        fn set_drain<'a>(
            &'a self,
            scheduler: &'a str,
            queue: &'a QueueName,
            pattern: &'a BTreeMap<String, String>,
            drained: bool,
        ) -> BoxFuture<'a, Result<(), Error>> {
            self.0.set_drain(scheduler, queue, pattern, drained)
        }
    }

    #[test]
    fn an_operator_that_does_not_wait_for_actions_is_found() {
        let careless = processes::workload("farm", Replicas::One, |context, external| {
            Arc::new(Careless(asking(context, external)))
        });
        let record = calm(&steps(careless));
        let found = record.violations.iter();
        let found = found.filter(|it| it.oracle == Oracle::Outside).count();
        assert!(found > 2, "{found} workers were stopped with an action");
    }
}
