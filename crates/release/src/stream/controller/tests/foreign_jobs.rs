//! Jobs that users create under the names of those of releases.

use super::*;

/// A Job that does nothing, and names a release.
fn forged(name: &str, names_release: bool) -> Job {
    let mut annotations = json!({});
    if names_release {
        annotations = json!({
            annotations::SOURCE: "ocp/4.21-art-latest", annotations::TARGET: "ocp/release",
            annotations::RELEASE_TAG: name, annotations::GENERATION: "1",
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
            let job = forged(name, names_release);
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
    for names_release in [true, false] {
        let cluster = TestCluster::open(&periodics(&["e2e-aws"])).await;
        cluster.declare(&config()).await;
        cluster.pass(SECOND * 5).await;
        let own: Job = cluster.get_in("ci-release", TAG).await.unwrap();
        cluster.delete_in::<Job>("ci-release", TAG).await;
        let mut job = forged(TAG, names_release);
        // The token of the Job that it replaces is for other commands.
        let tokens = own.metadata.annotations.unwrap();
        let tokens = tokens.into_iter().filter(|(name, _)| {
            [annotations::RUN_KEY, annotations::JOB_TOKEN].contains(&name.as_str())
        });
        let all = job.metadata.annotations.get_or_insert_default();
        all.extend(tokens);
        cluster.create_in("ci-release", &job).await;
        cluster.end_job(TAG, true).await;
        cluster.pass(MINUTE).await;
        assert_eq!(cluster.phase(TAG).await, Phase::Pending);
        assert_eq!(
            cluster.all::<ProwJob>("ci").await.len(),
            0,
            "no image, no run"
        );
        let problems = cluster.state().await.problems;
        assert!(
            problems.iter().any(|it| it.starts_with(TAG)),
            "{problems:?}"
        );
        // With the name free again, the release goes on without any other change.
        cluster.delete_in::<Job>("ci-release", TAG).await;
        cluster.pass(MINUTE).await;
        cluster.end_job(TAG, true).await;
        cluster.pass(SECOND * 5).await;
        assert_eq!(cluster.phase(TAG).await, Phase::Ready);
        assert_eq!(cluster.state().await.problems, [""; 0]);
    }
}
