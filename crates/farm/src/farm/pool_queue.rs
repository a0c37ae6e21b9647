//! The queue in which the workers of a pool are: what drains are about. Pure.
//!
//! A spec says in which queue its workers will be. Those that run are in the queue of the version that was
//! applied last, so that version records it. Without the record a change of the platform would drain a queue
//! that has no workers, and stop workers with running actions.

use kube::api::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Component, ComponentKind, settings};
use crate::{
    api::{ANNOTATION_QUEUE, BuildbarnWorkerSpec},
    platform::QueueName,
};

/// A queue, and the scheduler that has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolQueue {
    /// The name of the scheduler.
    pub scheduler: String,
    /// The queue.
    #[serde(flatten)]
    pub queue: QueueName,
}

impl PoolQueue {
    /// The queue that a spec asks for; none without a scheduler for it.
    pub fn wanted(components: &[Component], worker: &BuildbarnWorkerSpec) -> Option<Self> {
        let scheduler = settings::scheduler_of(components, worker)?;
        Some(Self {
            scheduler: scheduler.name().to_owned(),
            queue: QueueName::of(worker),
        })
    }

    /// The queue in which the workers of a pool are: the recorded one, or that of the spec if nothing is
    /// recorded. None without its scheduler.
    pub fn of_workers(
        recorded: Option<Self>,
        components: &[Component],
        worker: &BuildbarnWorkerSpec,
    ) -> Option<Self> {
        let pool = recorded.or_else(|| Self::wanted(components, worker))?;
        let mut schedulers = components
            .iter()
            .filter(|it| it.kind == ComponentKind::Scheduler);
        let exists = schedulers.any(|it| it.name() == pool.scheduler);
        exists.then_some(pool)
    }

    /// The queue that a Deployment records.
    pub fn recorded(object: &DynamicObject) -> Option<Self> {
        let annotations = object.metadata.annotations.as_ref()?;
        serde_json::from_str(annotations.get(ANNOTATION_QUEUE)?).ok()
    }

    /// Records it in a Deployment. Its pods do not have the record, so it replaces none of them.
    pub fn record(&self, object: &mut Value) {
        if let Ok(text) = serde_json::to_string(self) {
            object["metadata"]["annotations"][ANNOTATION_QUEUE] = text.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::PlatformProperty;

    #[test]
    fn what_is_recorded_is_read_again() {
        let queue = PoolQueue {
            scheduler: "scheduler".to_owned(),
            queue: QueueName {
                instance_name_prefix: "ci".to_owned(),
                platform: vec![PlatformProperty::new("OSFamily", "linux")],
                size_class: 2,
            },
        };
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "linux", "annotations": {}}, "spec": {},
        });
        let bare: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(PoolQueue::recorded(&bare), None);
        queue.record(&mut object);
        let expected = r#"{"scheduler":"scheduler","instanceNamePrefix":"ci","platform":[{"name":"OSFamily","value":"linux"}],"sizeClass":2}"#;
        assert_eq!(
            object["metadata"]["annotations"][ANNOTATION_QUEUE],
            expected
        );
        let live: DynamicObject = serde_json::from_value(object).unwrap();
        assert_eq!(PoolQueue::recorded(&live), Some(queue));
    }
}
