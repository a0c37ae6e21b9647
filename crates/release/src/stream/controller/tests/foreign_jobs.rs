//! Jobs that users create, or change, under the names of those of releases.

use kube::{
    Api,
    api::{Patch, PatchParams},
};

use super::*;

/// A Job that does nothing. It names a release, or none.
fn forged(name: &str, release: Option<&str>) -> Job {
    let mut annotations = json!({});
    if let Some(release) = release {
        annotations = json!({
            annotations::SOURCE: "ocp/4.21-art-latest", annotations::TARGET: "ocp/release",
            annotations::RELEASE_TAG: release, annotations::GENERATION: "1",
        });
    }
    let containers = json!([{"name": "build", "image": "x", "command": ["true"]}]);
    serde_json::from_value(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": containers}}},
    }))
    .unwrap()
}

fn config() -> serde_json::Value {
    integration(json!({"verify": {"aws": {"prowJob": {"name": "e2e-aws"}}}}))
}

#[tokio::test(start_paused = true)]
async fn a_release_gets_no_name_under_which_there_is_a_job() {
    for names_release in [true, false] {
        let cluster = TestCluster::open(&periodics(&["e2e-aws"])).await;
        let taken: Vec<_> = (5..15)
            .map(|second| format!("4.21.0-0.nightly-2026-01-02-0304{second:02}"))
            .collect();
        for name in &taken {
            let job = forged(name, names_release.then_some(name));
            cluster.create_in("ci-release", &job).await;
            cluster.end_job(name, true).await;
        }
        cluster.pass(SECOND).await;
        cluster.declare(&config()).await;
        cluster.pass(SECOND * 5).await;
        assert_eq!(cluster.releases().await, [""; 0], "the names are taken");
        cluster.pass(SECOND * 15).await;
        let releases = cluster.releases().await;
        assert_eq!(releases.len(), 1, "{releases:?}");
        assert!(!taken.contains(&releases[0]), "{releases:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_no_controller_created_creates_no_release_and_is_named() {
    // What the annotations of the Job become.
    let changes = [
        json!({annotations::JOB_TOKEN: null}),
        json!({annotations::RELEASE_TAG: "another"}),
        json!({annotations::TARGET: null, annotations::SOURCE: null}),
        json!({annotations::TARGET: "origin/release"}),
    ];
    for change in changes {
        let cluster = TestCluster::open(&periodics(&["e2e-aws"])).await;
        cluster.declare(&config()).await;
        cluster.pass(SECOND * 5).await;
        let jobs: Api<Job> = Api::namespaced(cluster.client.clone(), "ci-release");
        let patch = Patch::Merge(json!({"metadata": {"annotations": change}}));
        let parameters = PatchParams::default();
        jobs.patch(TAG, &parameters, &patch).await.unwrap();
        cluster.end_job(TAG, true).await;
        cluster.pass(MINUTE).await;
        assert_eq!(cluster.phase(TAG).await, Phase::Pending);
        assert_eq!(
            cluster.all::<ProwJob>("ci").await.len(),
            0,
            "no image, no run"
        );
        let problems = cluster.state().await.problems;
        assert!(problems.iter().any(|it| it.contains(TAG)), "{problems:?}");
        // With the name free again, the release goes on without any other change.
        cluster.delete_in::<Job>("ci-release", TAG).await;
        cluster.pass(MINUTE).await;
        cluster.end_job(TAG, true).await;
        cluster.pass(SECOND * 5).await;
        assert_eq!(cluster.phase(TAG).await, Phase::Ready);
        assert_eq!(cluster.state().await.problems, [""; 0]);
    }
}
