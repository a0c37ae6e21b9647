//! Waiting operations do not occupy the workers, however many there are.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use kube::CustomResourceExt;
use neap_kit::{
    key::Key,
    operation::{
        Failure, Operation, Progress, Step, StepAttempt, StepHandler, StepList, Target, component,
    },
};
use neap_trial::{ClusterTemplate, UserRequest, Workload, plan::Plan, run::run};

/// More operations than workers.
const OPERATIONS: usize = 20;

fn step_list() -> StepList {
    let often = Duration::from_secs(5);
    StepList {
        kind: "meet",
        steps: vec![
            Step::condition("all-present", often, Duration::from_hours(1)),
            Step::action("greet", often),
        ],
    }
}

/// Waits until every operation has been here.
struct MeetingHandler {
    here: Arc<Mutex<HashSet<String>>>,
}

impl StepHandler for MeetingHandler {
    async fn attempt(&self, task: &StepAttempt) -> Result<Progress, Failure> {
        let mut here = self.here.lock().unwrap();
        here.insert(task.operation.clone());
        Ok(if here.len() == OPERATIONS {
            Progress::Done
        } else {
            Progress::NotYet("some are missing".into())
        })
    }
}

#[test]
fn waiting_operations_do_not_block_the_others() {
    let here = Arc::new(Mutex::new(HashSet::new()));
    let made = (0..OPERATIONS).map(|number| {
        let key = Key::new("default", &format!("guest-{number}"));
        let operation = Operation::planned(&key, &step_list(), Target::default());
        UserRequest::Create(serde_json::to_value(operation).unwrap())
    });
    let definition = serde_json::to_value(Operation::crd()).unwrap();
    let workload = Workload::new("many")
        .actor("host", move |context| {
            let here = here.clone();
            Ok(vec![component(context, step_list(), move |_| {
                MeetingHandler { here: here.clone() }
            })?])
        })
        .given(UserRequest::Create(definition))
        .step("invite", made.collect::<Vec<_>>());
    let template = ClusterTemplate::prepare_blocking().unwrap();
    let record = run(&workload, &Plan::without_faults("many", 7), &template).unwrap();
    assert_eq!(record.violations, []);
    let end = record.states.last().unwrap().iter();
    let phases = end
        .filter(|(kind, ..)| &**kind == "neaptide.dev/operations")
        .map(|(.., object)| object.value()["status"]["phase"].clone());
    assert_eq!(phases.collect::<Vec<_>>(), ["Succeeded"; OPERATIONS]);
}
