//! Stable streams: what users tag is adopted, verified, published, overridden, and tampered with.
//!
//! The names of Stable releases are those of their tags, so whatever strikes a run, its objects have the
//! names of a run without faults.

use neap_release::{
    api::{annotations, labels},
    stream::options::Program,
};
use neap_trial::{UserRequest, Workload};
use serde_json::{Value, json};

use crate::{
    jobs::Failures,
    oracles::Releases,
    processes::{NAMESPACE, Replicas, options, with_definitions, with_processes},
    registry::{HOST, digest_of, registry},
};

const STREAM_STATUS: &str =
    "/apis/image.openshift.io/v1/namespaces/default/imagestreams/release/status";
const OTHER: &str = "/apis/image.openshift.io/v1/namespaces/default/imagestreams/other";
const OTHER_STATUS: &str =
    "/apis/image.openshift.io/v1/namespaces/default/imagestreams/other/status";
const REJECTED: &str =
    "/apis/release.openshift.io/v1alpha1/namespaces/default/releasepayloads/5.0.1";
const FAILED: &str =
    "/apis/release.openshift.io/v1alpha1/namespaces/default/releasepayloads/4.11.3";
const ENDED_RUN: &str = "/apis/prow.k8s.io/v1/namespaces/default/prowjobs/4.11.1-aws";
const OTHER_RUN: &str = "/apis/prow.k8s.io/v1/namespaces/default/prowjobs/4.11.2-aws";
const ENDED_JOB: &str = "/apis/batch/v1/namespaces/default/jobs/4.11.1";

/// The images that users tag. They are called otherwise, so that each release is assembled again.
const IMAGES: [(&str, &str); 4] = [
    ("candidates", "rc-1"),
    ("candidates", "rc-2"),
    ("candidates", "rc-3"),
    ("candidates", "rc-4"),
];
const PROW_JOBS: &[&str] = &["e2e-aws", "e2e-flaky", "e2e-broken"];
const FAILURES: Failures = Failures {
    releases: &["4.11.3"],
    jobs: &["e2e-broken"],
    flaky: &["e2e-flaky"],
};
/// What users delete, whether it is needed or not.
const DELETED_BY_USERS: &[&str] = &["default/4.11.1", "default/4.11.2-aws"];

/// With one process for each controller.
pub fn workload() -> Workload {
    steps(processes("release-stable", Replicas::One))
}

/// With two for each, which elect leaders.
pub fn elected() -> Workload {
    steps(processes("release-leaders", Replicas::Two))
}

fn processes(name: &'static str, replicas: Replicas) -> Workload {
    let mut options = options();
    options.tools.program = Program::Oc;
    let workload = Workload::new(name).service(HOST, |clock| {
        let releases = Releases::new(NAMESPACE)
            .deleted_by_users(DELETED_BY_USERS)
            .published("default/release", "latest");
        registry(clock, &IMAGES, move |history, pushes| {
            releases.problems(history, pushes)
        })
    });
    let workload = with_definitions(workload);
    let workload = with_processes(workload, &options, replicas, PROW_JOBS, FAILURES);
    with_differences(workload)
}

fn steps(workload: Workload) -> Workload {
    workload
        .step(
            "releases",
            [
                UserRequest::Create(stream("release", &passing(), &FIRST)),
                UserRequest::Patch(STREAM_STATUS, imported(&FIRST)),
            ],
        )
        .step(
            "a release that fails its jobs",
            [
                UserRequest::Create(stream("other", &failing(), &SECOND)),
                UserRequest::Patch(OTHER_STATUS, imported(&SECOND)),
            ],
        )
        .step(
            "accepted all the same",
            [UserRequest::Patch(REJECTED, accept("it is known"))],
        )
        .step(
            "accepted without an image",
            [UserRequest::Patch(FAILED, accept("it is not known"))],
        )
        .step(
            "a run contradicts itself",
            [UserRequest::Patch(
                ENDED_RUN,
                json!({"status": {"state": "failure"}}),
            )],
        )
        .step("a forged run", [UserRequest::Create(forged())])
        .step(
            "what has ended is deleted",
            [
                UserRequest::Delete(OTHER_RUN),
                UserRequest::Delete(ENDED_JOB),
            ],
        )
        .step("a stream is deleted", [UserRequest::Delete(OTHER)])
}

/// Tags, and the images that they are made of.
const FIRST: [(&str, &str); 3] = [("4.11.1", "rc-1"), ("4.11.2", "rc-2"), ("4.11.3", "rc-3")];
const SECOND: [(&str, &str); 1] = [("5.0.1", "rc-4")];

/// The values that follow from the uids of a run, or from how often something was written.
fn with_differences(workload: Workload) -> Workload {
    const HASH: &str = "it is a hash of uids";
    const COUNT: &str = "it counts the writes of another object";
    workload
        .differs(
            "ProwJob",
            "/metadata/annotations/release.neaptide.dev~1run-token",
            HASH,
        )
        .differs("ReleasePayload", "/status/verdict/facts", HASH)
        .differs_inside(
            "ImageStream",
            "/metadata/annotations/release.neaptide.dev~1stream-state",
            "/newestAcceptedAt",
            "it is the time at which the newest accepted release was cut",
        )
        .differs(
            "Job",
            "/metadata/annotations/release.openshift.io~1generation",
            COUNT,
        )
        .differs(
            "ImageStream",
            "/metadata/annotations/release.openshift.io~1generation",
            COUNT,
        )
}

fn passing() -> Value {
    json!({
        "name": "4-stable", "as": "Stable",
        "publish": {"latest": {"tagRef": {"name": "latest"}}},
        "verify": {
            "aws": {"prowJob": {"name": "e2e-aws"}},
            "flaky": {"prowJob": {"name": "e2e-flaky"}, "maxRetries": 1},
            "other": {"prowJob": {"name": "e2e-broken"}, "optional": true},
        },
    })
}

fn failing() -> Value {
    json!({
        "name": "5-stable", "as": "Stable",
        "publish": {"latest": {"tagRef": {"name": "latest"}}},
        "verify": {"aws": {"prowJob": {"name": "e2e-broken"}}},
    })
}

fn stream(name: &str, config: &Value, tags: &[(&str, &str)]) -> Value {
    let tags = tags.iter().map(|(tag, image)| {
        let from = format!("{HOST}/candidates@{}", digest_of(image));
        json!({"name": tag, "from": {"kind": "DockerImage", "name": from}})
    });
    json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
        "metadata": {
            "name": name, "namespace": NAMESPACE,
            "annotations": {annotations::CONFIG: config.to_string()},
        },
        "spec": {"tags": tags.collect::<Vec<_>>()},
    })
}

fn imported(tags: &[(&str, &str)]) -> Value {
    let tags = tags.iter().map(|(tag, image)| {
        let digest = digest_of(image);
        let item = json!({
            "created": "2026-01-01T00:00:00Z", "image": digest, "generation": 1,
            "dockerImageReference": format!("{HOST}/candidates@{digest}"),
        });
        json!({"tag": tag, "items": [item]})
    });
    json!({"status": {"tags": tags.collect::<Vec<_>>()}})
}

fn accept(reason: &str) -> Value {
    json!({"spec": {"payloadOverride": {"override": "Accepted", "reason": reason}}})
}

/// A ProwJob that says that it verified a release. No controller launched it.
fn forged() -> Value {
    json!({
        "apiVersion": "prow.k8s.io/v1", "kind": "ProwJob",
        "metadata": {
            "name": "4.11.2-aws-1", "namespace": NAMESPACE,
            "labels": {labels::VERIFY: "true", labels::PAYLOAD: "4.11.2"},
            "annotations": {
                annotations::SOURCE: "default/release", annotations::TO_TAG: "4.11.2",
                annotations::RUN_JOB: "aws", annotations::RUN_TOKEN: "00",
            },
        },
        "spec": {"type": "periodic", "agent": "tests", "job": "e2e-aws"},
        "status": {"state": "failure", "build_id": "1"},
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use neap_trial::{ClusterTemplate, plan::Plan, proof, run::run};

    use super::*;

    /// The last state of each object of a kind in a run without faults, by name.
    fn last_states(resource: &str) -> BTreeMap<String, Value> {
        let template = ClusterTemplate::prepare_blocking().unwrap();
        let calm = Plan::without_faults("release-stable", 7);
        let record = run(&workload(), &calm, &template).unwrap();
        assert_eq!(record.violations, []);
        let of_kind = record.history.iter().filter(|it| &*it.resource == resource);
        of_kind
            .filter_map(|it| Some((it.path.split_once('/')?.1.to_owned(), it.object.value())))
            .collect()
    }

    #[test]
    fn without_faults_each_release_gets_the_verdict_that_it_should() {
        let payloads = last_states("release.openshift.io/releasepayloads");
        let verdicts: Vec<_> = payloads
            .iter()
            .map(|(name, payload)| {
                let conditions = payload["status"]["conditions"].as_array().unwrap();
                let holds = conditions.iter().filter(|it| it["status"] == "True");
                let types: Vec<_> = holds.map(|it| it["type"].as_str().unwrap()).collect();
                (name.as_str(), types.join(" "))
            })
            .collect();
        let accepted = "PayloadAccepted PayloadCreated".to_owned();
        let failed = "PayloadFailed PayloadRejected".to_owned();
        let wanted = [
            ("4.11.1", accepted.clone()),
            ("4.11.2", accepted.clone()),
            ("4.11.3", failed),
            ("5.0.1", accepted),
        ];
        assert_eq!(verdicts, wanted);
        let streams = last_states("image.openshift.io/imagestreams");
        let tags = streams["release"]["spec"]["tags"].as_array().unwrap();
        let latest = tags.iter().find(|tag| tag["name"] == "latest").unwrap();
        assert_eq!(latest["from"]["name"], "4.11.2");
    }

    /// Every how many faults are played; `NEAP_RELEASE_EVERY=1` plays all, which takes minutes.
    pub(crate) fn every(usual: usize) -> usize {
        let every = std::env::var("NEAP_RELEASE_EVERY").ok();
        let every = every.and_then(|every| every.parse().ok());
        every.unwrap_or(usual)
    }

    #[test]
    fn stable_streams_survive_a_sample_of_faults() -> Result<(), proof::Failure> {
        let every = every(251);
        let faults = proof::every_nth_fault(&workload(), every)?;
        assert!(faults > 4000 / every, "{faults} faults");
        Ok(())
    }

    /// An object that was deleted a moment ago exists for the server and for no cache.
    #[test]
    fn a_payload_that_is_said_to_exist_and_does_not_is_created_later() -> Result<(), proof::Failure>
    {
        let plan = "
            plan payload-said-to-exist
            workload release-stable seed 7
            on write.before verb=create kind=releasepayloads name=5.0.1 #1 for controller do fail 409
        ";
        let steps = ["releases", "a release that fails its jobs"];
        proof::survives(&workload(), &steps, plan)
    }

    #[test]
    fn releases_survive_changes_of_leaders() -> Result<(), proof::Failure> {
        let every = every(599);
        let faults = proof::every_nth_fault(&elected(), every)?;
        assert!(faults > 4000 / every, "{faults} faults");
        Ok(())
    }
}
