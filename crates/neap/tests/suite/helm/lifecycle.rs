//! A release from install to uninstall.

use serde_json::{Value, json};

use super::helm_cluster::HelmCluster;

const CONFIG: &str = "/api/v1/namespaces/bay/configmaps/tern-harbour";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/bay/deployments/tern-harbour";
const RELEASES: &str = "/api/v1/namespaces/bay/secrets?labelSelector=owner%3Dhelm";

fn deployed(said: &str, revision: u32) {
    for line in ["STATUS: deployed", &format!("REVISION: {revision}")] {
        assert!(said.lines().any(|said| said == line), "{line} in {said}");
    }
}

#[tokio::test]
async fn release_lives_from_install_to_uninstall() {
    let Some(cluster) = HelmCluster::start("release_lives_from_install_to_uninstall") else {
        return;
    };
    install_makes_namespace_and_objects(&cluster).await;
    release_is_listed_and_described(&cluster);
    upgrade_applies_changes_and_keeps_foreign_fields(&cluster).await;
    rollback_returns_to_an_earlier_revision(&cluster).await;
    uninstall_removes_objects_and_optionally_keeps_history(&cluster).await;
}

async fn install_makes_namespace_and_objects(cluster: &HelmCluster) {
    let refused = cluster.refused("install tern CHART");
    assert!(
        refused.contains("namespaces \"bay\" not found"),
        "{refused}"
    );
    let said = cluster.ok("install tern CHART --create-namespace --set boat=true");
    deployed(&said, 1);
    assert!(said.contains("The tide is low at tern-harbour, revision 1."));

    let namespace = cluster.object("/api/v1/namespaces/bay").await;
    assert_eq!(namespace["metadata"]["labels"]["name"], "bay");
    let config = cluster.object(CONFIG).await;
    // The templates used the capabilities of the server.
    assert_eq!(config["data"]["deployments"], "served");
    let meta = &config["metadata"];
    assert_eq!(meta["annotations"]["meta.helm.sh/release-name"], "tern");
    assert_eq!(meta["managedFields"][0]["manager"], "helm");
    let taken = cluster.refused("install tern CHART");
    assert!(
        taken.contains("cannot re-use a name that is still in use"),
        "{taken}"
    );
}

fn release_is_listed_and_described(cluster: &HelmCluster) {
    for line in [
        "list",
        "list -A",
        "list --deployed --filter te",
        "list --superseded=false",
    ] {
        let list = cluster.json(line);
        let of = |key: &str| list[0][key].clone();
        assert_eq!(
            [
                of("name"),
                of("namespace"),
                of("revision"),
                of("status"),
                of("chart")
            ],
            [
                json!("tern"),
                json!("bay"),
                json!("1"),
                json!("deployed"),
                json!("harbour-1.0.0")
            ],
            "{line}"
        );
    }
    assert_eq!(cluster.json("list --failed"), json!([]));
    let status = cluster.json("status tern --show-resources");
    assert_eq!(status["info"]["status"], "deployed");
    let shown = status["info"]["resources"].as_object().unwrap();
    let kinds: Vec<_> = shown.keys().map(String::as_str).collect();
    for kind in ["v1/Deployment", "v1/Service", "v1/Boat"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    assert_eq!(cluster.json("get values tern"), json!({"boat": true}));
    assert_eq!(cluster.json("get values tern --all")["tide"], "low");
    assert!(cluster.ok("get manifest tern").contains("kind: Deployment"));
    assert!(cluster.ok("get notes tern").contains("The tide is low"));
    assert_eq!(cluster.json("get metadata tern")["appVersion"], "7");
    assert!(cluster.ok("get all tern").contains("HOOKS:"));
}

async fn upgrade_applies_changes_and_keeps_foreign_fields(cluster: &HelmCluster) {
    let before = cluster.object(DEPLOYMENT).await;
    let path = "/apis/apps/v1/namespaces/bay/deployments/tern-harbour";
    annotate(cluster, path).await;
    cluster.file("more.yaml", "tide: high\nreplicas: 3\n");
    let said = cluster
        .ok("upgrade tern CHART --reuse-values -f more.yaml --set image=example.com/harbour:2");
    deployed(&said, 2);
    let after = cluster.object(DEPLOYMENT).await;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    // The annotation counts as well: a Deployment copies its annotations to its ReplicaSets.
    assert_eq!(after["metadata"]["generation"], 3);
    assert_eq!(after["metadata"]["annotations"]["port"], "Brest");
    assert_eq!(after["spec"]["replicas"], 3);
    let container = &after["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "example.com/harbour:2");
    assert_eq!(container["env"], json!([{"name": "TIDE", "value": "high"}]));
    let config = cluster.object(CONFIG).await;
    assert_eq!(config["data"]["tide"], "high");
    // The templates used `lookup`.
    let namespace = cluster.object("/api/v1/namespaces/bay").await;
    assert_eq!(config["data"]["namespace"], namespace["metadata"]["uid"]);
    let values = cluster.json("get values tern");
    assert_eq!(
        (&values["boat"], &values["tide"]),
        (&json!(true), &json!("high"))
    );

    // The same values again make a new revision of the release but change no object.
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    deployed(
        &cluster.ok("upgrade --install tern CHART --reuse-values"),
        3,
    );
    assert_eq!(version(&cluster.object(DEPLOYMENT).await), version(&after));
    // Objects that the chart no longer renders are deleted.
    deployed(
        &cluster.ok("upgrade tern CHART --reuse-values --set boat=false,replicas=0"),
        4,
    );
    assert_eq!(cluster.get(DEPLOYMENT).await.status, 404);
    let boat = "/apis/harbour.example/v1/namespaces/bay/boats/tern-harbour";
    assert_eq!(cluster.get(boat).await.status, 404);
}

async fn annotate(cluster: &HelmCluster, path: &str) {
    let body = json!({"metadata": {"annotations": {"port": "Brest"}}}).to_string();
    let mut connection = cluster.connect().await;
    let kind = "application/merge-patch+json";
    let answer = connection.send_as(http::Method::PATCH, path, kind, body);
    answer.await.unwrap().success().unwrap();
}

async fn rollback_returns_to_an_earlier_revision(cluster: &HelmCluster) {
    assert!(
        cluster
            .ok("rollback tern 2")
            .contains("Rollback was a success")
    );
    let states: Vec<_> = cluster.history("tern");
    let superseded = |number: u64| (number, "superseded".to_owned());
    let mut expected: Vec<_> = (1..5).map(superseded).collect();
    expected.push((5, "deployed".to_owned()));
    assert_eq!(states, expected);
    assert_eq!(cluster.object(DEPLOYMENT).await["spec"]["replicas"], 3);
    let history = cluster.json("history tern --max 1");
    assert_eq!(history[0]["description"], "Rollback to 2");
    let missing = cluster.refused("rollback tern 9");
    assert!(missing.contains("release has no 9 version"), "{missing}");
    // --history-max removes old revisions.
    cluster.ok("upgrade tern CHART --reuse-values --history-max 2");
    let numbers: Vec<_> = cluster
        .history("tern")
        .into_iter()
        .map(|(number, _)| number)
        .collect();
    assert_eq!(numbers, [5, 6]);
}

async fn uninstall_removes_objects_and_optionally_keeps_history(cluster: &HelmCluster) {
    let tried = cluster.ok("uninstall tern --dry-run");
    assert!(tried.contains("uninstalled"), "{tried}");
    assert_eq!(cluster.get(CONFIG).await.status, 200);
    let said = cluster.ok("uninstall tern --keep-history --wait --cascade foreground");
    assert!(said.contains("release \"tern\" uninstalled"), "{said}");
    for path in [CONFIG, DEPLOYMENT] {
        assert_eq!(cluster.get(path).await.status, 404, "{path}");
    }
    assert_eq!(cluster.json("list"), json!([]));
    assert_eq!(
        cluster.json("list --uninstalled")[0]["status"],
        "uninstalled"
    );
    assert!(cluster.ok("rollback tern 5").contains("success"));
    assert_eq!(cluster.get(DEPLOYMENT).await.status, 200);
    cluster.ok("uninstall tern --wait");
    let left = cluster.object(RELEASES).await;
    assert_eq!(left["items"], json!([]));
    assert!(
        cluster
            .refused("status tern")
            .contains("release: not found")
    );
    assert!(cluster.refused("uninstall tern").contains("not found"));
    cluster.ok("uninstall tern --ignore-not-found");
}
