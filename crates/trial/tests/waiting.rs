//! Operations that wait leave their places to others, however many wait.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use kube::CustomResourceExt;
use neap_kit::{
    key::Key,
    operation::{Failure, Operation, Progress, Script, Step, Target, Task, Work, service},
};
use neap_trial::{Deed, Ground, Workload, plan::Plan, run::run};

/// More than are worked on at once.
const MANY: usize = 20;

fn script() -> Script {
    let often = Duration::from_secs(5);
    Script {
        kind: "meet",
        steps: vec![
            Step::condition("everybody", often, Duration::from_hours(1)),
            Step::action("greet", often),
        ],
    }
}

/// Waits until every operation has been here.
struct Guest {
    here: Arc<Mutex<HashSet<String>>>,
}

impl Work for Guest {
    async fn attempt(&self, task: &Task) -> Result<Progress, Failure> {
        let mut here = self.here.lock().unwrap();
        here.insert(task.operation.clone());
        Ok(if here.len() == MANY {
            Progress::Done
        } else {
            Progress::NotYet("some are missing".into())
        })
    }
}

#[test]
fn more_operations_wait_than_have_a_place_and_all_go_on() {
    let here = Arc::new(Mutex::new(HashSet::new()));
    let made = (0..MANY).map(|number| {
        let key = Key::new("default", &format!("guest-{number}"));
        let operation = Operation::planned(&key, &script(), Target::default());
        Deed::Create(serde_json::to_value(operation).unwrap())
    });
    let definition = serde_json::to_value(Operation::crd()).unwrap();
    let workload = Workload::new("many")
        .actor("host", move |site| {
            let here = here.clone();
            Ok(vec![service(site, script(), move |_| Guest {
                here: here.clone(),
            })?])
        })
        .given(Deed::Create(definition))
        .step("invite", made.collect::<Vec<_>>());
    let ground = Ground::ready().unwrap();
    let record = run(&workload, &Plan::calm("many", 7), &ground).unwrap();
    assert_eq!(record.violations, []);
    let end = record.states.last().unwrap().iter();
    let phases = end
        .filter(|(kind, ..)| &**kind == "neaptide.dev/operations")
        .map(|(.., object)| object.value()["status"]["phase"].clone());
    assert_eq!(phases.collect::<Vec<_>>(), ["Succeeded"; MANY]);
}
