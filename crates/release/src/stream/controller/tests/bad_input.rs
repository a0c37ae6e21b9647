//! Input that is wrong, contradicts itself, or is too much. Each has an outcome that is explained.

use k8s_openapi::api::core::v1::ConfigMap;

use super::*;

/// The Events of the release namespace with this reason.
async fn messages(cluster: &TestCluster, reason: &str) -> Vec<String> {
    let events = cluster.all::<Event>("ocp").await;
    let events = events.into_iter();
    events
        .filter(|event| event.reason.as_deref() == Some(reason))
        .filter_map(|event| event.message)
        .collect()
}

async fn has_release(cluster: &TestCluster, name: &str) -> bool {
    cluster.get::<ReleasePayload>(name).await.is_some()
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_updates_cuts_one_release_at_a_time_and_writes_in_proportion() {
    const UPDATES: usize = 1_500;
    let cluster = TestCluster::open(&periodics(&["e2e-aws"])).await;
    let config = json!({
        "maxUnreadyReleases": 3, "verify": {"aws": {"prowJob": {"name": "e2e-aws"}}},
    });
    cluster.declare(&integration(config)).await;
    // Five minutes with five updates a second. The Job of a release takes half a minute.
    for update in 1..=UPDATES {
        cluster.new_image(update).await;
        cluster.pass(SECOND / 5).await;
        if update % 150 == 0
            && let Some(newest) = cluster.state().await.newest
            && cluster.phase(&newest).await == Phase::Pending
        {
            cluster.end_job(&newest, true).await;
        }
    }
    cluster.pass(SECOND * 5).await;
    let releases = cluster.releases().await;
    assert_eq!(releases.len(), 3, "no more than may have no verdict");
    assert_eq!(cluster.state().await.reason, "TooManyUnreadyReleases");
    assert_eq!(cluster.all::<ProwJob>("ci").await.len(), 3);
    let writes = cluster.writes();
    assert!(writes < 100, "{writes} writes about {UPDATES} updates");
    // Once there is a verdict, the newest images are released, and only they.
    cluster
        .end_run(&format!("{}-aws", releases[0]), "success")
        .await;
    cluster.pass(SECOND * 5).await;
    let newest = cluster.state().await.newest.unwrap();
    assert!(!releases.contains(&newest));
    let mirror = newest.replace("4.21.0-0.nightly", "4.21-art-latest");
    let mirror: ImageStream = cluster.get(&mirror).await.unwrap();
    let etcd = mirror.spec.tag("etcd").unwrap().from.clone().unwrap();
    assert_eq!(etcd.name, format!("reg.example/ocp/etcd@sha256:e{UPDATES}"));
    let names = cluster.all::<ImageStream>("ocp").await.len();
    assert_eq!(
        names,
        2 + 4,
        "no mirror is left of a release that was not cut"
    );
}

#[tokio::test(start_paused = true)]
async fn what_prow_takes_back_or_says_twice_changes_no_result() {
    let cluster = TestCluster::open(&periodics(&["e2e-aws", "e2e-gcp"])).await;
    let verify = json!({"verify": {
        "aws": {"prowJob": {"name": "e2e-aws"}}, "gcp": {"prowJob": {"name": "e2e-gcp"}},
    }});
    cluster.declare(&integration(verify)).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    let (aws, gcp) = (format!("{TAG}-aws"), format!("{TAG}-gcp"));
    let states = async || {
        let payload: ReleasePayload = cluster.get(TAG).await.unwrap();
        let jobs = payload.status.unwrap().blocking_job_results;
        let states: Vec<_> = jobs.iter().map(|job| format!("{:?}", job.state)).collect();
        assert!(jobs.iter().all(|job| job.results.len() == 1), "{jobs:?}");
        states.join(" ")
    };
    cluster.end_run(&aws, "success").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(states().await, "Success Pending");
    // The same run passed, fails, and runs again.
    for state in ["success", "failure", "pending", "aborted"] {
        cluster.end_run(&aws, state).await;
        cluster.pass(SECOND * 5).await;
        assert_eq!(states().await, "Success Pending", "{state}");
    }
    // An end without the time of the end, a state that nobody knows, and none.
    for state in [json!("failure"), json!("exploded"), json!("")] {
        cluster.report_run(&gcp, json!({"state": state})).await;
        cluster.pass(SECOND * 5).await;
        assert_eq!(cluster.phase(TAG).await, Phase::Ready, "{state}");
    }
    cluster.end_run(&gcp, "success").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Accepted);
    cluster.end_run(&gcp, "failure").await;
    cluster.delete_in::<ProwJob>("ci", &aws).await;
    cluster.pass(MINUTE * 30).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Accepted);
    assert_eq!(states().await, "Success Success");
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_a_run_under_its_own_name_is_not_the_run() {
    let cluster = TestCluster::open(&periodics(&["e2e-aws"])).await;
    let verify = json!({"verify": {"aws": {"prowJob": {"name": "e2e-aws"}, "maxRetries": 1}}});
    cluster.declare(&integration(verify)).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    let name = format!("{TAG}-aws");
    let mut copy = cluster.get_in::<ProwJob>("ci", &name).await.unwrap();
    copy.metadata = kube::api::ObjectMeta {
        name: Some(name.clone()),
        labels: copy.metadata.labels,
        annotations: copy.metadata.annotations,
        ..kube::api::ObjectMeta::default()
    };
    cluster.delete_in::<ProwJob>("ci", &name).await;
    cluster.create_in("ci", &copy).await;
    cluster.end_run(&name, "success").await;
    cluster.pass(MINUTE * 4).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Ready);
    cluster.end_run(&format!("{name}-1"), "failure").await;
    cluster.pass(SECOND * 5).await;
    let payload: ReleasePayload = cluster.get(TAG).await.unwrap();
    let jobs = payload.status.unwrap().blocking_job_results;
    let states: Vec<_> = jobs[0]
        .results
        .iter()
        .map(|run| format!("{:?}", run.state))
        .collect();
    assert_eq!(states, ["Unknown", "Failure"]);
    assert_eq!(cluster.phase(TAG).await, Phase::Rejected);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_deleted_by_hand_runs_again_and_one_that_has_ended_does_not() {
    let cluster = TestCluster::open(&periodics(&["e2e-aws"])).await;
    let verify = json!({"verify": {"aws": {"prowJob": {"name": "e2e-aws"}}}});
    cluster.declare(&integration(verify)).await;
    cluster.pass(SECOND * 5).await;
    cluster.delete_in::<Job>("ci-release", TAG).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Pending);
    assert_eq!(cluster.all::<Job>("ci-release").await.len(), 1);
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    cluster.delete_in::<Job>("ci-release", TAG).await;
    cluster.end_run(&format!("{TAG}-aws"), "success").await;
    cluster.pass(MINUTE).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Accepted);
    assert_eq!(cluster.all::<Job>("ci-release").await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_images_of_a_release_whose_tag_is_deleted_are_released_anew() {
    let cluster = TestCluster::open(&periodics(&["e2e-aws"])).await;
    let verify = json!({"verify": {"aws": {"prowJob": {"name": "e2e-aws"}}}});
    cluster.declare(&integration(verify)).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    cluster.set_releases(json!([])).await;
    cluster.pass(MINUTE * 30).await;
    assert!(
        !has_release(&cluster, TAG).await,
        "its payload is collected"
    );
    let releases = cluster.releases().await;
    let [again] = &releases[..] else {
        panic!("{releases:?}");
    };
    assert_ne!(again, TAG);
    assert!(has_release(&cluster, again).await);
    cluster.end_job(again, true).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_run(&format!("{again}-aws"), "success").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(again).await, Phase::Accepted);
    // A release whose payload is deleted by hand stays what its tag says, and is not verified again.
    cluster.delete_in::<ReleasePayload>("ocp", again).await;
    cluster.pass(MINUTE).await;
    assert!(!has_release(&cluster, again).await);
    let target: ImageStream = cluster.get("release").await.unwrap();
    let phase = &target.spec.tag(again).unwrap().annotations[annotations::PHASE];
    assert_eq!(phase, "Accepted");
    assert_eq!(cluster.state().await.newest_accepted.as_ref(), Some(again));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_large_objects_leaves_a_reason_and_nothing_half_written() {
    let cluster = TestCluster::open(&periodics(&[])).await;
    cluster.declare(&integration(json!({}))).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Accepted);
    // The target is as large as the server allows, but for a few bytes.
    let target: ImageStream = cluster.get("release").await.unwrap();
    let size = serde_json::to_vec(&target).unwrap().len();
    let rest = neap_pocket::store::MAX_OBJECT_BYTES - size - 800;
    let notes = json!({"name": "notes", "annotations": {"example.com/notes": "n".repeat(rest)}});
    let kept = serde_json::to_value(&target.spec.tags).unwrap();
    cluster.set_releases(json!([kept[0], notes])).await;
    cluster.new_image(1).await;
    cluster.pass(MINUTE * 30).await;
    let told = messages(&cluster, "WriteRefused").await;
    assert!(
        told[0].starts_with("ImageStream ocp/release was not written: ")
            && told[0].ends_with("remove tags that are not needed, or set expires"),
        "{told:?}"
    );
    assert_eq!(told.len(), 1, "it is told once");
    let releases = cluster.releases().await;
    assert_eq!(releases, [TAG, "notes"]);
    let names = cluster.all::<ImageStream>("ocp").await.len();
    assert_eq!(names, 2 + 1, "no attempt leaves a mirror");
    let attempts = cluster.writes();
    cluster.pass(MINUTE * 60).await;
    let hourly = cluster.writes() - attempts;
    assert!(hourly < 60, "{hourly} attempts in an hour");
    let state = cluster.state().await;
    assert_eq!(
        (state.reason.as_str(), &state.message),
        ("WriteRefused", &told[0])
    );
    // Room is made, and the release is cut.
    cluster.set_releases(kept).await;
    cluster.pass(MINUTE * 20).await;
    assert_eq!(cluster.releases().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_is_elsewhere_is_waited_for_and_read_again() {
    let cluster = TestCluster::open(&periodics(&[])).await;
    cluster.declare(&json!({})).await;
    let elsewhere = json!({annotations::CONFIG: null, annotations::CONFIG_REF: "config"});
    cluster.annotate_all("4.21-art-latest", elsewhere).await;
    cluster.pass(SECOND * 5).await;
    let state = cluster.state().await;
    assert_eq!(
        (state.reason.as_str(), state.message.as_str()),
        (
            "InvalidReleaseDefinition",
            "the ConfigMap ocp/config, which has the configuration, does not exist"
        )
    );
    let map = |text: &str| -> ConfigMap {
        let map = json!({"metadata": {"name": "config"}, "data": {"config.json": text}});
        serde_json::from_value(map).unwrap()
    };
    cluster.create_in("ocp", &map("{")).await;
    cluster.pass(MINUTE * 2).await;
    assert!(cluster.state().await.message.contains("not JSON"));
    assert_eq!(cluster.releases().await, [""; 0]);
    cluster.delete_in::<ConfigMap>("ocp", "config").await;
    cluster
        .create_in("ocp", &map(&integration(json!({})).to_string()))
        .await;
    cluster.pass(MINUTE * 2).await;
    assert_eq!(cluster.releases().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn qualifiers_that_change_are_summed_up_anew_at_once() {
    let cluster = TestCluster::open(&periodics(&["e2e-aws"])).await;
    let verify = json!({"verify": {"aws": {
        "prowJob": {"name": "e2e-aws"}, "qualifiers": {"fips": {}},
    }}});
    cluster.declare(&integration(verify)).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_run(&format!("{TAG}-aws"), "success").await;
    cluster.pass(SECOND * 5).await;
    let earned = async || {
        let payload: ReleasePayload = cluster.get(TAG).await.unwrap();
        let summary = payload.status.unwrap().qualifiers_summary.unwrap();
        let badges = summary.qualifiers.into_iter();
        let badges = badges.map(|(id, one)| (id, one.badge_name, one.badge_earned));
        badges.collect::<Vec<_>>()
    };
    assert_eq!(earned().await, [], "nobody has defined it");
    for badge in ["FIPS", "Fips"] {
        let text = format!("qualifiers:\n  fips: {{enabled: true, badgeName: {badge}}}\n");
        cluster.configure_qualifiers(&text);
        cluster.pass(SECOND).await;
        assert_eq!(
            earned().await,
            [("fips".to_owned(), badge.to_owned(), true)]
        );
    }
}
