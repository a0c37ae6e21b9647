//! What a controller handles: namespaces, single sources, nothing at all.

use super::*;

async fn tags_in(cluster: &TestCluster, namespace: &str) -> usize {
    let target: ImageStream = cluster.get_in(namespace, "release").await.unwrap();
    target.spec.tags.len()
}

#[tokio::test(start_paused = true)]
async fn streams_of_all_release_namespaces_are_handled_and_of_no_others() {
    let cluster = TestCluster::open(&periodics(&[])).await;
    cluster.declare(&integration(json!({}))).await;
    cluster.declare_in("origin", &integration(json!({}))).await;
    cluster.pass(MINUTE).await;
    assert_eq!(tags_in(&cluster, "ocp").await, 1);
    assert_eq!(tags_in(&cluster, "origin").await, 0);

    let cluster = TestCluster::with_options(&periodics(&[]), |options| {
        options.release_namespaces.push("origin".to_owned());
    })
    .await;
    cluster.declare(&integration(json!({}))).await;
    let okd = json!({"name": "4.21.0-0.okd", "publish": {"next": {
        "imageStreamRef": {"name": "published", "namespace": "ocp"},
    }}});
    let published = json!({"metadata": {"name": "published"}, "spec": {}});
    cluster.declare_object(&published).await;
    cluster.declare_in("origin", &integration(okd)).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(tags_in(&cluster, "ocp").await, 1);
    assert_eq!(tags_in(&cluster, "origin").await, 1);
    // Jobs of all namespaces are in one; each release has the verdict of its own.
    let other = TAG.replace("nightly", "okd");
    cluster.end_job(TAG, false).await;
    cluster.end_job(&other, true).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Failed);
    let payload: ReleasePayload = cluster.get_in("origin", &other).await.unwrap();
    assert_eq!(Phase::of_payload(&payload), Phase::Accepted);
    let published: ImageStream = cluster.get("published").await.unwrap();
    assert!(
        published.spec.tag("etcd").is_some(),
        "into another namespace"
    );
    let annotations = published.metadata.annotations.unwrap();
    assert_eq!(
        annotations["release.openshift.io/source-4.21.0-0.okd"],
        other
    );
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_writes_nothing_and_one_source_alone_is_handled_on_request() {
    let dry = TestCluster::with_options(&periodics(&[]), |options| options.dry_run = true).await;
    dry.declare(&integration(json!({}))).await;
    dry.pass(MINUTE * 30).await;
    assert_eq!(tags_in(&dry, "ocp").await, 0);
    assert_eq!(dry.writes(), 0);
    assert_eq!(dry.all::<ImageStream>("ocp").await.len(), 2);

    let only = TestCluster::with_options(&periodics(&[]), |options| {
        options.only_sources.push("another".to_owned());
    })
    .await;
    only.declare(&integration(json!({}))).await;
    only.pass(MINUTE * 30).await;
    assert_eq!(tags_in(&only, "ocp").await, 0);
}

#[tokio::test(start_paused = true)]
async fn of_two_namespaces_with_a_release_of_the_same_name_the_second_says_so() {
    let cluster = TestCluster::with_options(&periodics(&["e2e-aws"]), |options| {
        options.release_namespaces.push("origin".to_owned());
    })
    .await;
    let verify = json!({"verify": {"aws": {"prowJob": {"name": "e2e-aws"}}}});
    cluster.declare(&integration(verify.clone())).await;
    cluster.declare_in("origin", &integration(verify)).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(tags_in(&cluster, "ocp").await, 1);
    assert_eq!(tags_in(&cluster, "origin").await, 1);
    let both = ["ocp", "origin"];
    let mut told = Vec::new();
    for namespace in both {
        let source: ImageStream = cluster.get_in(namespace, "4.21-art-latest").await.unwrap();
        let state = &source.metadata.annotations.unwrap()[annotations::STREAM_STATE];
        let state: StreamState = serde_json::from_str(state).unwrap();
        told.extend(state.problems);
    }
    let job: Job = cluster.get_in("ci-release", TAG).await.unwrap();
    let owner = &job.metadata.annotations.unwrap()[annotations::TARGET];
    let second = both.iter().find(|it| !owner.starts_with(&format!("{it}/")));
    assert_eq!(told.len(), 1, "{told:?}");
    let text = format!(
        "the name {TAG} is taken by a Job of {owner}: the release of that name in {} cannot create its own",
        second.unwrap()
    );
    assert!(told[0].starts_with(&text), "{told:?}");
    // The run of the first claims nothing of the second.
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_run(&format!("{TAG}-aws"), "success").await;
    let before = cluster.writes();
    cluster.pass(MINUTE * 3).await;
    let attempts = cluster.writes() - before;
    assert!(
        attempts < 10,
        "{attempts} writes, of which none is tried in vain"
    );
    for namespace in both {
        let payload: ReleasePayload = cluster.get_in(namespace, TAG).await.unwrap();
        let is_first = owner.starts_with(&format!("{namespace}/"));
        let phase = if is_first {
            Phase::Accepted
        } else {
            Phase::Pending
        };
        assert_eq!(Phase::of_payload(&payload), phase, "{namespace}");
        assert_eq!(payload.status.unwrap().verdict.unwrap().forged, [""; 0]);
    }
}
