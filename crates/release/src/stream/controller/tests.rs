//! Both controllers against an API server in the test's own process. The tests themselves do what Jobs and
//! Prow would do.

mod bad_input;
mod changed_tags;
mod cluster;
mod foreign_jobs;
mod foreign_payloads;
mod hand_over;
mod job_images;
mod run_keys;
mod scope;
mod slow_images;
mod traces;
mod verification;

use std::time::Duration;

use k8s_openapi::api::{batch::v1::Job, core::v1::Event};
use serde_json::json;

use self::cluster::{TestCluster, integration, periodics};
use crate::{
    api::{ProwJob, ReleasePayload, annotations},
    image_stream::api::ImageStream,
    payload::Phase,
    replay::replay,
    stream::{StreamState, options::Program, upgrade_graph::UpgradeState},
};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const TAG: &str = "4.21.0-0.nightly-2026-01-02-030405";

#[tokio::test(start_paused = true)]
#[expect(
    clippy::too_many_lines,
    reason = "one release from its images to users"
)]
async fn a_release_is_cut_assembled_verified_accepted_and_published() {
    let cluster = TestCluster::open(&periodics(&["e2e-aws", "e2e-gcp"])).await;
    cluster
        .declare(&integration(json!({
            "verify": {
                "aws": {"prowJob": {"name": "e2e-aws"}, "maxRetries": 1},
                "gcp": {"prowJob": {"name": "e2e-gcp"}, "optional": true},
            },
            "publish": {"latest": {"tagRef": {"name": "4.21"}}},
        })))
        .await;
    cluster.pass(SECOND * 5).await;

    let mirror: ImageStream = cluster
        .get("4.21-art-latest-2026-01-02-030405")
        .await
        .unwrap();
    let cli = mirror.spec.tag("cli").unwrap().from.clone().unwrap();
    assert_eq!(
        (cli.kind.as_str(), cli.name.as_str()),
        ("DockerImage", "reg.example/ocp/cli@sha256:aaa")
    );
    let job: Job = cluster.get_in("ci-release", TAG).await.unwrap();
    let pod = job.spec.unwrap().template.spec.unwrap();
    let command = pod.containers[0].args.clone().unwrap();
    assert_eq!(command[..2], ["release", "assemble"]);
    assert!(
        command.contains(&format!("--to-image=reg.example/ocp/release:{TAG}")),
        "{command:?}"
    );
    assert_eq!(cluster.phase(TAG).await, Phase::Pending);
    assert!(
        cluster.all::<ProwJob>("ci").await.is_empty(),
        "nothing is verified before there is an image"
    );

    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Ready);
    let runs = cluster.all::<ProwJob>("ci").await;
    assert_eq!(runs.len(), 2);
    let run = &runs[0];
    assert_eq!(run.metadata.name.as_deref(), Some(&*format!("{TAG}-aws")));
    assert_eq!(
        run.metadata.labels.as_ref().unwrap()["release.openshift.io/verify"],
        "true"
    );
    let environment = run.spec.pod_spec.as_ref().unwrap()["containers"][0]["env"].to_string();
    assert!(
        environment.contains(&format!("reg.example/ocp/release:{TAG}")),
        "{environment}"
    );

    cluster.end_run(&format!("{TAG}-aws"), "failure").await;
    cluster.end_run(&format!("{TAG}-gcp"), "failure").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Ready, "one retry is left");
    let payload: ReleasePayload = cluster.get(TAG).await.unwrap();
    let accepted = cluster::condition(&payload, "PayloadAccepted");
    assert_eq!(accepted.message, "waiting for blocking jobs: aws");

    cluster.end_run(&format!("{TAG}-aws-1"), "success").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Accepted);
    let target: ImageStream = cluster.get("release").await.unwrap();
    let published = target.spec.tag("4.21").unwrap().from.clone().unwrap();
    assert_eq!(
        (published.kind.as_str(), published.name.as_str()),
        ("ImageStreamTag", TAG)
    );
    assert_eq!(
        target.spec.tag(TAG).unwrap().annotations[annotations::PHASE],
        "Accepted"
    );
    let state = cluster.state().await;
    assert_eq!(
        (state.reason.as_str(), state.newest_accepted.as_deref()),
        ("UpToDate", Some(TAG))
    );

    let payload: ReleasePayload = cluster.get(TAG).await.unwrap();
    let replayed = replay(&payload);
    assert!(replayed.holds(), "{replayed:?}");
    assert_eq!(replayed.computed, Phase::Accepted);
    let metrics = cluster.metrics();
    assert!(
        metrics.contains(r#"neaptide_release_payloads{phase="Accepted"} 1"#),
        "{metrics}"
    );

    let before = cluster.writes();
    cluster.pass(MINUTE * 10).await;
    assert_eq!(
        cluster.writes(),
        before,
        "in quiet minutes nothing is written"
    );
}

#[tokio::test(start_paused = true)]
async fn a_release_is_rejected_with_the_names_of_its_failed_jobs_and_cut_again_on_request() {
    let cluster = TestCluster::open(&periodics(&["e2e-aws"])).await;
    let verify = json!({"verify": {"aws": {"prowJob": {"name": "e2e-aws"}}}});
    cluster.declare(&integration(verify)).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_run(&format!("{TAG}-aws"), "failure").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Rejected);
    let payload: ReleasePayload = cluster.get(TAG).await.unwrap();
    assert_eq!(
        cluster::condition(&payload, "PayloadRejected").message,
        "blocking jobs failed: aws"
    );
    let target: ImageStream = cluster.get("release").await.unwrap();
    let annotations_of = &target.spec.tag(TAG).unwrap().annotations;
    assert_eq!(
        annotations_of[annotations::MESSAGE],
        "blocking jobs failed: aws"
    );
    let events = cluster.all::<Event>("ocp").await;
    assert!(
        events
            .iter()
            .any(|it| it.reason.as_deref() == Some("PayloadRejected"))
    );
    let message = cluster.state().await.message;
    let retry = format!("neap release retry {TAG} -n ocp");
    assert!(message.contains(&retry), "{message}");
    cluster.pass(MINUTE * 30).await;
    assert_eq!(
        cluster.all::<ReleasePayload>("ocp").await.len(),
        1,
        "the same images are not tried again"
    );

    cluster
        .annotate("4.21-art-latest", annotations::RETRY, TAG)
        .await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.all::<ReleasePayload>("ocp").await.len(), 2);

    cluster
        .override_payload(TAG, "Accepted", "the failure is known")
        .await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Accepted);
}

#[tokio::test(start_paused = true)]
async fn a_release_whose_image_cannot_be_made_fails_with_what_the_job_said() {
    let cluster = TestCluster::open(&periodics(&[])).await;
    cluster.declare(&integration(json!({}))).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_job(TAG, false).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Failed);
    let target: ImageStream = cluster.get("release").await.unwrap();
    let tag = &target.spec.tag(TAG).unwrap().annotations;
    assert_eq!(tag[annotations::REASON], "CreateReleaseFailed");
    assert_eq!(
        tag[annotations::MESSAGE],
        "BackoffLimitExceeded: the image of etcd is missing"
    );
    cluster.override_payload(TAG, "Accepted", "anyway").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(
        cluster.phase(TAG).await,
        Phase::Failed,
        "there is no image to accept"
    );
}

#[tokio::test(start_paused = true)]
async fn forged_and_vanished_prow_jobs_do_not_count() {
    let cluster = TestCluster::open(&periodics(&["e2e-aws"])).await;
    let verify = json!({"verify": {"aws": {"prowJob": {"name": "e2e-aws"}, "maxRetries": 1}}});
    cluster.declare(&integration(verify)).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    let name = format!("{TAG}-aws");
    // A user copies the run, reports that it passed, and deletes the real one.
    let mut forged = cluster.get_in::<ProwJob>("ci", &name).await.unwrap();
    forged.metadata = kube::api::ObjectMeta {
        name: Some(format!("{name}-1")),
        labels: forged.metadata.labels,
        annotations: forged.metadata.annotations,
        ..kube::api::ObjectMeta::default()
    };
    cluster.create_in("ci", &forged).await;
    cluster.end_run(&format!("{name}-1"), "success").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(
        cluster.phase(TAG).await,
        Phase::Ready,
        "the token is that of another run"
    );
    let events = cluster.all::<Event>("ocp").await;
    assert!(
        events
            .iter()
            .any(|it| it.reason.as_deref() == Some("ForgedProwJob"))
    );
    cluster
        .delete_in::<ProwJob>("ci", &format!("{name}-1"))
        .await;
    cluster.delete_in::<ProwJob>("ci", &name).await;
    cluster.pass(MINUTE * 4).await;
    let payload: ReleasePayload = cluster.get(TAG).await.unwrap();
    let jobs = payload.status.unwrap().blocking_job_results;
    assert_eq!(jobs[0].results.len(), 2, "{jobs:?}");
    assert!(
        cluster
            .get_in::<ProwJob>("ci", &format!("{name}-1"))
            .await
            .is_some(),
        "it is launched again"
    );
    cluster.end_run(&format!("{name}-1"), "success").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Accepted);
}

#[tokio::test(start_paused = true)]
async fn one_bad_stream_and_one_bad_job_delay_no_other() {
    let cluster = TestCluster::open(&periodics(&["e2e-aws"])).await;
    let bad = json!({"metadata": {"name": "broken", "annotations": {annotations::CONFIG: "{"}}, "spec": {}});
    cluster.declare_object(&bad).await;
    let verify = json!({"verify": {
        "aws": {"prowJob": {"name": "e2e-aws"}}, "bad": {"prowJob": {"name": "unknown"}, "optional": true},
    }});
    cluster.declare(&integration(verify)).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_run(&format!("{TAG}-aws"), "success").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Accepted);
    let events = cluster.all::<Event>("ocp").await;
    let reasons: Vec<_> = events
        .iter()
        .filter_map(|it| it.reason.as_deref())
        .collect();
    assert!(
        reasons.contains(&"InvalidReleaseDefinition") && reasons.contains(&"ProwJobInvalid"),
        "{reasons:?}"
    );
    let broken: ImageStream = cluster.get("broken").await.unwrap();
    let state = &broken.metadata.annotations.unwrap()[annotations::STREAM_STATE];
    assert!(
        serde_json::from_str::<StreamState>(state)
            .unwrap()
            .message
            .contains("not JSON")
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_that_prow_learns_later_is_launched_at_once() {
    let cluster = TestCluster::open(&periodics(&["other"])).await;
    let verify = json!({"verify": {"aws": {"prowJob": {"name": "e2e-aws"}}}});
    cluster.declare(&integration(verify)).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    let problems = cluster.state().await.problems;
    assert_eq!(
        problems,
        [format!("{TAG}: aws: Prow has no periodic e2e-aws")]
    );
    cluster.configure_prow(&periodics(&["e2e-aws"]));
    cluster.pass(SECOND * 5).await;
    cluster.end_run(&format!("{TAG}-aws"), "success").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Accepted);
    assert_eq!(cluster.state().await.problems, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn results_of_upgrades_are_recorded_and_stay() {
    let cluster = TestCluster::open(&periodics(&["e2e-aws"])).await;
    let verify = json!({"verify": {"aws": {"prowJob": {"name": "e2e-aws"}, "upgrade": true}}});
    cluster.declare(&integration(verify)).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(
        cluster.phase(TAG).await,
        Phase::Accepted,
        "there is nothing to upgrade from"
    );
    cluster.new_image(1).await;
    cluster.pass(SECOND * 5).await;
    let second = cluster.state().await.newest.unwrap();
    cluster.end_job(&second, true).await;
    cluster.pass(SECOND * 5).await;
    let run = format!("{second}-aws");
    cluster.end_run(&run, "success").await;
    cluster.pass(MINUTE * 3).await;
    let graph = cluster.upgrades().await;
    let recorded: Vec<_> = graph.iter().collect();
    let [(from, to, results)] = &recorded[..] else {
        panic!("{recorded:?}");
    };
    assert_eq!((*from, *to), (TAG, second.as_str()));
    assert_eq!(
        results.values().collect::<Vec<_>>(),
        [&UpgradeState::Succeeded]
    );
    cluster.delete_in::<ProwJob>("ci", &run).await;
    let before = cluster.writes();
    cluster.pass(MINUTE * 10).await;
    assert_eq!(
        cluster.upgrades().await,
        graph,
        "results outlive their ProwJobs"
    );
    assert_eq!(cluster.writes(), before);
    let metrics = cluster.metrics();
    for line in [
        r#"release_controller_release_upgrade_graph_save_error{namespace="ocp",name="release-upgrade-graph"} 0"#,
        r#"neaptide_release_stream_staleness_seconds{namespace="ocp",stream="4.21.0-0.nightly"} "#,
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn old_releases_are_removed_and_what_belonged_to_them_is_collected() {
    let cluster = TestCluster::open(&periodics(&[])).await;
    cluster
        .declare(&integration(json!({"expires": "1h"})))
        .await;
    for release in 0..7 {
        if release > 0 {
            cluster.new_image(release).await;
        }
        cluster.pass(SECOND * 5).await;
        let newest = cluster.state().await.newest.unwrap();
        cluster.end_job(&newest, true).await;
        cluster.pass(MINUTE * 20).await;
        assert_eq!(cluster.phase(&newest).await, Phase::Accepted);
    }
    cluster.pass(MINUTE * 60).await;
    let releases = cluster.releases().await;
    assert_eq!(releases.len(), 5);
    let payloads = cluster.all::<ReleasePayload>("ocp").await;
    let names: Vec<_> = payloads
        .iter()
        .filter_map(|it| it.metadata.name.clone())
        .collect();
    assert_eq!(
        names, releases,
        "payloads of removed releases are collected"
    );
    assert_eq!(cluster.all::<Job>("ci-release").await.len(), 5);
    assert_eq!(cluster.all::<ImageStream>("ocp").await.len(), 5 + 2);
}

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "one stream through all of its steps")]
async fn tags_of_a_stable_stream_become_releases() {
    let cluster =
        TestCluster::with_tools(&periodics(&["e2e-aws", "upgrade-aws"]), Program::Oc).await;
    let config = json!({
        "name": "4-stable", "as": "Stable",
        "verify": {"aws": {"prowJob": {"name": "e2e-aws"}}},
        "upgrade": {"aws": {"prowJob": {"name": "upgrade-aws"}}},
    });
    let tag = |name: &str| {
        let from =
            json!({"kind": "DockerImage", "name": format!("reg.example/release@sha256:{name}")});
        json!({"name": name, "from": from})
    };
    let item = |name: &str| {
        let item = json!({
            "created": "2026-01-02T03:00:00Z", "image": "sha256:111", "generation": 1,
            "dockerImageReference": format!("reg.example/release@sha256:{name}"),
        });
        json!({"tag": name, "items": [item]})
    };
    let stream = json!({
        "metadata": {"name": "release", "annotations": {annotations::CONFIG: config.to_string()}},
        "spec": {"tags": [tag("4.11.22"), tag("not-a-version")]},
        "status": {"tags": [item("4.11.22"), item("not-a-version")]},
    });
    cluster.declare_object(&stream).await;
    cluster.pass(SECOND * 5).await;
    let release: ImageStream = cluster.get("release").await.unwrap();
    let adopted = &release.spec.tag("4.11.22").unwrap().annotations;
    assert_eq!(adopted[annotations::NAME], "4-stable");
    assert_eq!(adopted[annotations::REWRITE], "false");
    assert!(
        release
            .spec
            .tag("not-a-version")
            .unwrap()
            .annotations
            .is_empty()
    );
    let job: Job = cluster.get_in("ci-release", "4.11.22").await.unwrap();
    let pod = job.spec.unwrap().template.spec.unwrap();
    assert_eq!(
        pod.containers[0].command.as_ref().unwrap()[4..7],
        ["adm", "release", "mirror"]
    );
    cluster.end_job("4.11.22", true).await;
    cluster.pass(SECOND * 5).await;
    let runs = cluster.all::<ProwJob>("ci").await;
    let names: Vec<_> = runs
        .iter()
        .filter_map(|it| it.metadata.name.as_deref())
        .collect();
    assert_eq!(
        names,
        [
            "4.11.22-aws",
            "4.11.22-upgrade-from-4.10.18-aws",
            "4.11.22-upgrade-from-4.11.10-aws"
        ]
    );
    for name in names {
        cluster.end_run(name, "success").await;
    }
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase("4.11.22").await, Phase::Accepted);
    cluster.pass(MINUTE * 90).await;
    assert_eq!(
        cluster.releases().await.len(),
        2,
        "nothing is ever removed from a Stable stream"
    );
}

#[tokio::test(start_paused = true)]
async fn periodics_run_on_the_newest_accepted_release() {
    let cluster = TestCluster::open(&periodics(&["soak"])).await;
    let periodic = json!({"periodic": {"soak": {"interval": "6h", "prowJob": {"name": "soak"}}}});
    cluster.declare(&integration(periodic)).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    let runs = cluster.all::<ProwJob>("ci").await;
    assert_eq!(runs.len(), 1);
    let run = &runs[0];
    assert_eq!(
        run.metadata.annotations.as_ref().unwrap()[annotations::TO_TAG],
        TAG
    );
    let name = run.metadata.name.clone().unwrap();
    cluster.pass(MINUTE * 60 * 7).await;
    assert_eq!(
        cluster.all::<ProwJob>("ci").await.len(),
        1,
        "the first still runs"
    );
    cluster.end_run(&name, "success").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.all::<ProwJob>("ci").await.len(), 2);
}
