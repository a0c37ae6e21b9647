//! The images that Jobs run.

use super::*;

async fn image_of(cluster: &TestCluster, job: &str) -> String {
    let job: Job = cluster.get_in("ci-release", job).await.unwrap();
    let pod = job.spec.unwrap().template.spec.unwrap();
    pod.containers[0].image.clone().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_image_in_the_registry_of_the_cluster_is_taken_from_where_its_tag_points() {
    const INSIDE: &str = "image-registry.openshift-image-registry.svc:5000";
    for (tag, wanted) in [
        ("pinned", "quay.io/tools/cli@sha256:1".to_owned()),
        ("referred", "quay.io/tools/cli@sha256:2".to_owned()),
        ("pushed", format!("{INSIDE}/ocp/tools:pushed")),
        ("missing", format!("{INSIDE}/ocp/tools:missing")),
    ] {
        let cluster = TestCluster::with_tools(&periodics(&[]), Program::Oc).await;
        let from = |name: &str| json!({"kind": "DockerImage", "name": name});
        let item = json!({
            "created": "2026-01-02T03:00:00Z", "image": "sha256:2", "generation": 1,
            "dockerImageReference": "quay.io/tools/cli@sha256:2",
        });
        cluster
            .declare_object(&json!({
                "metadata": {"name": "tools"},
                "spec": {"tags": [
                    {"name": "pinned", "from": from("quay.io/tools/cli@sha256:1")},
                    {"name": "referred", "reference": true, "from": from("quay.io/tools/cli:2")},
                    {"name": "pushed"},
                ]},
                "status": {"tags": [{"tag": "referred", "items": [item]}]},
            }))
            .await;
        let image = format!("{INSIDE}/ocp/tools:{tag}");
        let config = integration(json!({"overrideCLIImage": image}));
        cluster.declare(&config).await;
        cluster.pass(SECOND * 5).await;
        // The second release is cut when the registry is known.
        cluster.has_registry(INSIDE).await;
        cluster.end_job(TAG, true).await;
        cluster.new_image(1).await;
        cluster.pass(SECOND * 5).await;
        let newest = cluster.state().await.newest.unwrap();
        assert_eq!(image_of(&cluster, &newest).await, wanted, "{tag}");
    }
}

#[tokio::test(start_paused = true)]
async fn with_oc_a_stable_release_is_taken_over_by_its_own_image() {
    let cluster = TestCluster::with_options(&periodics(&[]), |options| {
        options.tools.program = Program::Oc;
        options.tools.image = None;
    })
    .await;
    let config = json!({"name": "4-stable", "as": "Stable"});
    let image = "reg.example/release@sha256:4.11.22";
    let item = json!({
        "created": "2026-01-02T03:00:00Z", "image": "sha256:111", "generation": 1,
        "dockerImageReference": image,
    });
    cluster
        .declare_object(&json!({
            "metadata": {"name": "release", "annotations": {annotations::CONFIG: config.to_string()}},
            "spec": {"tags": [{"name": "4.11.22", "from": {"kind": "DockerImage", "name": image}}]},
            "status": {"tags": [{"tag": "4.11.22", "items": [item]}]},
        }))
        .await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(
        image_of(&cluster, "4.11.22").await,
        "reg.example/ocp/cli@sha256:ccc"
    );
}
