//! Prow under every fault between it and the API server.

use neap_emulators::prow::{ProwOptions, components, definitions};
use neap_trial::{UserRequest, Workload, proof};
use serde_json::{Value, json};

const JOB_STATUS: &str = "/apis/batch/v1/namespaces/default/jobs/good/status";
const STOPPED: &str = "/apis/prow.k8s.io/v1/namespaces/default/prowjobs/stopped";
const GOOD: &str = "/apis/prow.k8s.io/v1/namespaces/default/prowjobs/good";

fn prow_job(name: &str) -> Value {
    json!({
        "apiVersion": "prow.k8s.io/v1", "kind": "ProwJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "type": "periodic", "agent": "kubernetes", "job": format!("periodic-{name}"),
            "pod_spec": {"containers": [{"name": "test", "image": "registry.example.com/test:1"}]},
        },
        // Without it, the number would be of the time and the uid, which differ between runs.
        "status": {"state": "triggered", "build_id": "1"},
    })
}

#[test]
fn prow_starts_no_job_twice_and_loses_no_result_under_any_fault() -> Result<(), proof::Failure> {
    let definition = serde_json::to_value(&definitions().unwrap()[0]).unwrap();
    let finished = json!({"status": {"conditions": [{
        "type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T03:00:00Z",
    }]}});
    let workload = Workload::new("prow")
        .given(UserRequest::Create(definition))
        .actor("prow", |context| {
            components(context, &ProwOptions::default())
        })
        .step("create", [UserRequest::Create(prow_job("good"))])
        .step("finish", [UserRequest::Patch(JOB_STATUS, finished)])
        .step("create another", [UserRequest::Create(prow_job("stopped"))])
        .step(
            "abort",
            [UserRequest::Patch(
                STOPPED,
                json!({"status": {"state": "aborted"}}),
            )],
        )
        .step("delete", [UserRequest::Delete(GOOD)]);
    let faults = proof::every_fault(&workload)?;
    assert!(faults > 100, "{faults} faults");
    Ok(())
}
