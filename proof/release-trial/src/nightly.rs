//! An Integration stream: images change, releases are cut, verified, published, expire and are collected.

use std::time::Duration;

use neap_release::api::annotations;
use neap_trial::{UserRequest, Workload, run::RunRecord};
use serde_json::{Value, json};

use crate::{
    jobs::Failures,
    oracles::Releases,
    processes::{NAMESPACE, Replicas, options, with_definitions, with_processes},
    registry::{HOST, registry},
};

const SOURCE: &str = "/apis/image.openshift.io/v1/namespaces/default/imagestreams/4.21-art";
const SOURCE_STATUS: &str =
    "/apis/image.openshift.io/v1/namespaces/default/imagestreams/4.21-art/status";
const PROW_JOBS: &[&str] = &["e2e-aws", "e2e-flaky", "e2e-broken"];
const FAILURES: Failures = Failures {
    releases: &[],
    jobs: &["e2e-broken"],
    flaky: &["e2e-flaky"],
};
/// The names of steps; with the first release there are two more than are kept.
const IMAGES: [&str; 6] = ["second", "third", "fourth", "fifth", "sixth", "seventh"];
/// The time between two images.
const APART: Duration = Duration::from_mins(20);
/// Releases that have expired are collected by then.
const END: Duration = Duration::from_hours(4);

/// The stream and its controllers, one process for each.
pub fn workload() -> Workload {
    deleted(life(Workload::new("release-nightly"), Replicas::One))
}

/// The same, whose stream stays: a run ends with the stream at rest beside seven releases.
pub fn at_rest() -> Workload {
    life(Workload::new("release-nightly-at-rest"), Replicas::One)
}

/// How many objects a run writes after its last step, Leases aside. A run ends with ten minutes in which nothing is
/// asked for.
pub fn writes_at_rest(record: &RunRecord) -> usize {
    let last = record.ends.last().copied().unwrap_or_default();
    let after = record.history.iter().filter(|it| it.revision() > last);
    after
        .filter(|it| &*it.resource != "coordination.k8s.io/leases")
        .count()
}

/// With two processes for each, which elect leaders.
pub fn elected() -> Workload {
    let workload = Workload::new("release-nightly-leaders");
    deleted(life(workload, Replicas::Two))
}

/// After a stream, the end of it.
fn deleted(workload: Workload) -> Workload {
    workload.step("the stream is deleted", [UserRequest::Delete(SOURCE)])
}

fn life(workload: Workload, replicas: Replicas) -> Workload {
    const WHY: &str = "the names of releases are times, which a delay changes";
    let workload = workload
        .without_poison(WHY)
        .judged_alone(WHY)
        .service(HOST, |clock| {
            let releases = Releases::new(NAMESPACE)
                .published("default/release", "latest")
                .collected();
            registry(clock, &[], move |history, pushes| {
                releases.problems(history, pushes)
            })
        });
    let workload = with_definitions(workload);
    let mut workload = with_processes(workload, &options(), replicas, PROW_JOBS, FAILURES).step(
        "the first images",
        [
            UserRequest::Create(stream("release", None)),
            UserRequest::Create(stream("4.21-art", Some(&config()))),
            UserRequest::Patch(SOURCE_STATUS, imported(0)),
        ],
    );
    for (at, name) in (1_u32..).zip(IMAGES) {
        workload = workload
            .step(name, [UserRequest::Patch(SOURCE_STATUS, imported(at))])
            .until(APART * at);
    }
    workload.step("releases expire", []).until(END)
}

fn config() -> Value {
    json!({
        "name": "4.21.0-0.nightly", "to": "release", "expires": "1h",
        "publish": {"latest": {"tagRef": {"name": "latest"}}},
        "verify": {
            "aws": {"prowJob": {"name": "e2e-aws"}},
            "flaky": {"prowJob": {"name": "e2e-flaky"}, "maxRetries": 1},
            "other": {"prowJob": {"name": "e2e-broken"}, "optional": true},
        },
    })
}

fn stream(name: &str, config: Option<&Value>) -> Value {
    let annotations = config.map(|config| json!({annotations::CONFIG: config.to_string()}));
    let tags = config.map(|_| {
        let from = |name: &str| json!({"kind": "DockerImage", "name": format!("{HOST}/{name}:1")});
        json!([{"name": "cli", "from": from("cli")}, {"name": "etcd", "from": from("etcd")}])
    });
    json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
        "metadata": {
            "name": name, "namespace": NAMESPACE, "annotations": annotations.unwrap_or(json!({})),
        },
        "spec": {"tags": tags.unwrap_or(json!([]))},
    })
}

/// The import of the `number`th image of etcd.
fn imported(number: u32) -> Value {
    let tag = |name: &str, number: u32| {
        let digest = format!("sha256:{number:064}");
        let item = json!({
            "created": "2026-01-01T00:00:00Z", "image": digest, "generation": 1,
            "dockerImageReference": format!("{HOST}/{name}@{digest}"),
        });
        json!({"tag": name, "items": [item]})
    };
    json!({"status": {"tags": [tag("cli", 1000), tag("etcd", number)]}})
}

#[cfg(test)]
mod tests {
    use neap_pocket::store::Change;
    use neap_trial::{ClusterTemplate, plan::Plan, proof, run::run};

    use super::*;
    use crate::stable::tests::every;

    #[test]
    fn without_faults_each_image_becomes_a_release_and_two_are_collected() {
        let template = ClusterTemplate::prepare_blocking().unwrap();
        let calm = Plan::without_faults("release-nightly", 7);
        let record = run(&workload(), &calm, &template).unwrap();
        assert_eq!(record.violations, []);
        let count = |resource: &str, change: Change| {
            let of_kind = record.history.iter().filter(|it| &*it.resource == resource);
            of_kind.filter(|it| it.change == change).count()
        };
        let payloads = "release.openshift.io/releasepayloads";
        assert_eq!(count(payloads, Change::Added), 7);
        assert_eq!(count(payloads, Change::Deleted), 2);
        assert_eq!(count("batch/jobs", Change::Deleted), 2);
        // Their mirrors, and the source at the end.
        assert_eq!(count("image.openshift.io/imagestreams", Change::Deleted), 3);
    }

    #[test]
    fn at_rest_the_stream_is_there_and_nothing_is_written() {
        let template = ClusterTemplate::prepare_blocking().unwrap();
        let calm = Plan::without_faults("release-nightly-at-rest", 7);
        let record = run(&at_rest(), &calm, &template).unwrap();
        assert_eq!(record.violations, []);
        let mut of_source = record
            .history
            .iter()
            .filter(|it| &*it.path == "default/4.21-art");
        let last = of_source.next_back().unwrap();
        assert_ne!(
            last.change,
            Change::Deleted,
            "an absent stream is no stream at rest"
        );
        assert_eq!(writes_at_rest(&record), 0);
    }

    #[test]
    fn integration_streams_survive_a_sample_of_faults() -> Result<(), proof::Failure> {
        let every = every(1499);
        let faults = proof::every_nth_fault(&workload(), every)?;
        assert!(faults > 4000 / every, "{faults} faults");
        Ok(())
    }

    #[test]
    fn integration_streams_survive_changes_of_leaders() -> Result<(), proof::Failure> {
        let every = every(7999);
        let faults = proof::every_nth_fault(&elected(), every)?;
        assert!(faults > 8000 / every, "{faults} faults");
        Ok(())
    }
}
