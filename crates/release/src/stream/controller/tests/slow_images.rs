//! Images of Stable releases that a registry is slow to give.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_image_that_is_not_answered_delays_no_other_release_of_its_stream() {
    let cluster = TestCluster::open(&periodics(&[])).await;
    let config = json!({"name": "4-stable", "as": "Stable"});
    let image = |name: &str| format!("reg.example/release@sha256:{name}");
    let tag = |name: &str, image: &str| json!({"name": name, "from": {"kind": "DockerImage", "name": image}});
    let item = |name: &str, image: &str| {
        let item = json!({
            "created": "2026-01-02T03:00:00Z", "image": "sha256:111", "generation": 1,
            "dockerImageReference": image,
        });
        json!({"tag": name, "items": [item]})
    };
    let (good, slow) = (image("4.11.22"), image("slow"));
    let stream = json!({
        "metadata": {"name": "release", "annotations": {annotations::CONFIG: config.to_string()}},
        "spec": {"tags": [tag("4.11.22", &good), tag("4.11.23", &slow)]},
        "status": {"tags": [item("4.11.22", &good), item("4.11.23", &slow)]},
    });
    cluster.declare_object(&stream).await;
    // Less than the read of one image may take.
    cluster.pass(SECOND * 2).await;
    let job: Option<Job> = cluster.get_in("ci-release", "4.11.22").await;
    assert!(job.is_some());
    let state = |stream: ImageStream| -> StreamState {
        let all = stream.metadata.annotations.unwrap();
        serde_json::from_str(&all[annotations::STREAM_STATE]).unwrap()
    };
    let read = state(cluster.get("release").await.unwrap());
    assert_eq!(read.problems, [""; 0], "it is being read");
    cluster.pass(SECOND * 15).await;
    let read = state(cluster.get("release").await.unwrap());
    let why = "4.11.23: the labels of its image cannot be read: no answer in 10 seconds";
    assert_eq!(read.problems, [why]);
    let before = cluster.writes();
    cluster.pass(MINUTE * 5).await;
    assert_eq!(cluster.writes(), before, "it is tried again, and told once");
}
