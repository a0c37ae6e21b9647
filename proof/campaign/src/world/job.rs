//! Jobs: one that completes, one that fails and is retried, one that is scaled, suspended and
//! deleted.

use std::time::Duration;

use neap_trial::{Node, PodBehavior, UserRequest, Workload};
use neap_world::job;
use serde_json::{Value, json};

const LONG: &str = "/apis/batch/v1/namespaces/default/jobs/long";
const BAD: &str = "/apis/batch/v1/namespaces/default/jobs/bad";
const GOOD: &str = "/apis/batch/v1/namespaces/default/jobs/good";

pub(super) fn workload() -> Workload {
    let soon = Duration::from_secs(3);
    let node = Node::default()
        .behavior("good", PodBehavior::Exits(0, soon))
        .behavior("bad", PodBehavior::Exits(1, soon));
    let good = json!({"completions": 2, "parallelism": 1});
    let bad = json!({"completions": 1, "parallelism": 1, "backoffLimit": 1});
    let long = json!({"completions": 3, "parallelism": 1});
    Workload::new("job")
        .actor("controllers", |context| Ok(vec![job::component(context)?]))
        .node(node)
        .step("create", [UserRequest::Create(indexed("good", good))])
        .step(
            "create a bad one",
            [UserRequest::Create(indexed("bad", bad))],
        )
        .step(
            "create a long one",
            [UserRequest::Create(indexed("long", long))],
        )
        .step("scale up", [side_by_side(2)])
        .step("scale down", [side_by_side(1)])
        .step(
            "suspend",
            [UserRequest::Patch(LONG, json!({"spec": {"suspend": true}}))],
        )
        .step(
            "let it expire",
            [UserRequest::Patch(
                GOOD,
                json!({"spec": {"ttlSecondsAfterFinished": 30}}),
            )],
        )
        // A Job that is deleted while it runs loses pods that it must not create again.
        .step(
            "resume",
            [UserRequest::Patch(
                LONG,
                json!({"spec": {"suspend": false}}),
            )],
        )
        .step(
            "delete",
            [UserRequest::Delete(LONG), UserRequest::Delete(BAD)],
        )
}

pub(crate) fn indexed(name: &str, mut spec: Value) -> Value {
    spec["completionMode"] = "Indexed".into();
    spec["template"] = json!({
        "metadata": {"labels": {"fate": name}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app"}]},
    });
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    })
}

fn side_by_side(parallelism: u32) -> UserRequest {
    UserRequest::Patch(LONG, json!({"spec": {"parallelism": parallelism}}))
}
