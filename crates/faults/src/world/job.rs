//! Work with an end: some that is done, some that fails and is tried again, some that is scaled,
//! suspended and deleted.

use std::time::Duration;

use neap_trial::{Deed, Fate, Node, Workload};
use neap_world::job;
use serde_json::{Value, json};

const LONG: &str = "/apis/batch/v1/namespaces/default/jobs/long";
const BAD: &str = "/apis/batch/v1/namespaces/default/jobs/bad";
const GOOD: &str = "/apis/batch/v1/namespaces/default/jobs/good";

pub(super) fn workload() -> Workload {
    let soon = Duration::from_secs(3);
    let node = Node::default()
        .fate("good", Fate::Ends(0, soon))
        .fate("bad", Fate::Ends(1, soon));
    let good = json!({"completions": 2, "parallelism": 1});
    let bad = json!({"completions": 1, "parallelism": 1, "backoffLimit": 1});
    let long = json!({"completions": 3, "parallelism": 1});
    Workload::new("job")
        .actor("controllers", |site| Ok(vec![job::service(site)?]))
        .node(node)
        .step("create", [Deed::Create(indexed("good", good))])
        .step("create a bad one", [Deed::Create(indexed("bad", bad))])
        .step("create a long one", [Deed::Create(indexed("long", long))])
        .step("scale up", [side_by_side(2)])
        .step("scale down", [side_by_side(1)])
        .step(
            "suspend",
            [Deed::Patch(LONG, json!({"spec": {"suspend": true}}))],
        )
        .step(
            "let it expire",
            [Deed::Patch(
                GOOD,
                json!({"spec": {"ttlSecondsAfterFinished": 30}}),
            )],
        )
        // Whoever is deleted while it works loses pods that it must not make again.
        .step(
            "resume",
            [Deed::Patch(LONG, json!({"spec": {"suspend": false}}))],
        )
        .step("delete", [Deed::Delete(LONG), Deed::Delete(BAD)])
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

fn side_by_side(parallelism: u32) -> Deed {
    Deed::Patch(LONG, json!({"spec": {"parallelism": parallelism}}))
}
