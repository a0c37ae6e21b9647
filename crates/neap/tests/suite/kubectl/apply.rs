//! `apply`, on the client's side and on the server's, and `diff`.

use serde_json::{Value, json};

use super::{
    kubectl_cluster::KubectlCluster,
    manifests::{WEB, WEB_LATER},
};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn containers(cluster: &KubectlCluster) -> Value {
    let deployment = cluster.json("get deploy web");
    deployment["spec"]["template"]["spec"]["containers"].clone()
}

#[test]
fn apply_merges_with_changes_of_other_clients() {
    let Some(cluster) = KubectlCluster::start("apply_merges_with_changes_of_other_clients") else {
        return;
    };
    cluster.file("web.yaml", WEB);
    cluster.file("later.yaml", WEB_LATER);
    assert_eq!(
        cluster.ok("apply -f web.yaml"),
        "deployment.apps/web created\n"
    );
    assert_eq!(
        cluster.ok("apply -f web.yaml"),
        "deployment.apps/web unchanged\n"
    );
    let first = cluster.json("get deploy web");
    cluster.ok(r#"patch deploy web -p '{"spec":{"replicas":4,"template":{"spec":{"containers":[{"name":"main","env":[{"name":"Z","value":"9"}]}]}}}}'"#);
    assert_eq!(
        cluster.ok("apply -f later.yaml"),
        "deployment.apps/web configured\n"
    );

    let later = cluster.json("get deploy web");
    assert_eq!(later["metadata"]["uid"], first["metadata"]["uid"]);
    assert_eq!(later["metadata"]["generation"], 3);
    assert_eq!(
        later["metadata"]["labels"],
        json!({"app": "web", "tier": "back"})
    );
    // Replicas were applied as 1 both times, so apply reverts the other change.
    assert_eq!(later["spec"]["replicas"], 1);
    let containers = containers(&cluster);
    assert_eq!(containers.as_array().unwrap().len(), 1);
    assert_eq!(containers[0]["image"], "example.com/web:2");
    assert_eq!(
        containers[0]["env"],
        json!([{"name": "Z", "value": "9"}, {"name": "B", "value": "3"}, {"name": "C", "value": "4"}])
    );
    assert_eq!(
        containers[0]["ports"],
        json!([{"name": "http", "containerPort": 80, "protocol": "TCP"}])
    );
    let said = later["metadata"]["annotations"][LAST_APPLIED]
        .as_str()
        .unwrap();
    let last: Value = serde_json::from_str(said).unwrap();
    assert_eq!(last["metadata"]["labels"]["tier"], "back");
    assert!(
        cluster
            .ok("apply view-last-applied deploy/web")
            .contains("tier: back")
    );
}

#[test]
fn misspelled_field_is_refused_with_its_name() {
    let Some(cluster) = KubectlCluster::start("misspelled_field_is_refused_with_its_name") else {
        return;
    };
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, dta: {}}";
    cluster.file("map.yaml", map);
    let why = cluster.refused("apply -f map.yaml");
    assert!(
        why.contains("strict decoding error: unknown field \"dta\""),
        "{why}"
    );
    let warned = cluster.run("apply --validate=warn -f map.yaml");
    assert_eq!(warned.stdout, "configmap/x created\n");
    assert_eq!(warned.stderr, "Warning: unknown field \"dta\"\n");
}

#[test]
fn diff_shows_what_apply_would_do() {
    let Some(cluster) = KubectlCluster::start("diff_shows_what_apply_would_do") else {
        return;
    };
    cluster.file("web.yaml", WEB);
    cluster.file("later.yaml", WEB_LATER);
    let new = cluster.run("diff -f web.yaml");
    assert_eq!(new.code, Some(1), "{new:?}");
    assert!(new.stdout.contains("\n+kind: Deployment\n"));
    cluster.ok("apply -f web.yaml");
    let same = cluster.run("diff -f web.yaml");
    assert_eq!((same.code, same.stdout.as_str()), (Some(0), ""), "{same:?}");
    for line in [
        "diff -f later.yaml",
        "diff --server-side --force-conflicts -f later.yaml",
    ] {
        let changed = cluster.run(line);
        assert_eq!(changed.code, Some(1), "{changed:?}");
        for line in [
            "\n-        image: example.com/web:1\n",
            "\n+        image: example.com/web:2\n",
            "\n+    tier: back\n",
        ] {
            assert!(
                changed.stdout.contains(line),
                "{line:?}: {}",
                changed.stdout
            );
        }
    }
    assert_eq!(
        cluster.ok("apply -f later.yaml --dry-run=server"),
        "deployment.apps/web configured (server dry run)\n"
    );
    assert_eq!(containers(&cluster)[0]["image"], "example.com/web:1");
}

#[test]
fn server_side_apply_names_conflicts_and_forces_them() {
    let Some(cluster) = KubectlCluster::start("server_side_apply_names_conflicts_and_forces_them")
    else {
        return;
    };
    cluster.file("web.yaml", WEB);
    cluster.file("later.yaml", WEB_LATER);
    let apply = "apply --server-side -f";
    let applied = "deployment.apps/web serverside-applied\n";
    assert_eq!(cluster.ok(&format!("{apply} web.yaml")), applied);
    let version = cluster.json("get deploy web")["metadata"]["resourceVersion"].clone();
    assert_eq!(cluster.ok(&format!("{apply} web.yaml")), applied);
    let again = cluster.json("get deploy web");
    assert_eq!(again["metadata"]["resourceVersion"], version);

    let refused = cluster.refused(&format!("{apply} later.yaml --field-manager=other"));
    assert!(
        refused.starts_with("error: Apply failed with 2 conflicts: conflicts with \"kubectl\":"),
        "{refused}"
    );
    for field in [
        "- .spec.template.spec.containers[name=\"main\"].image",
        "- .spec.template.spec.containers[name=\"main\"].env[name=\"B\"].value",
        "--force-conflicts",
    ] {
        assert!(refused.contains(field), "{field}: {refused}");
    }
    let force = format!("{apply} later.yaml --field-manager=other --force-conflicts");
    assert_eq!(cluster.ok(&force), applied);
    let containers = containers(&cluster);
    assert_eq!(containers[0]["image"], "example.com/web:2");
    // Fields that only the first manager applied still belong to it.
    assert_eq!(containers[1]["name"], "side");
    let fields = cluster.json("get deploy web --show-managed-fields");
    let managers: Vec<&str> = fields["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["manager"].as_str().unwrap())
        .collect();
    assert_eq!(managers, ["kubectl", "other"]);
}

#[test]
fn client_side_apply_is_taken_over_by_server_side_apply() {
    let Some(cluster) =
        KubectlCluster::start("client_side_apply_is_taken_over_by_server_side_apply")
    else {
        return;
    };
    cluster.file("web.yaml", WEB);
    cluster.file("later.yaml", WEB_LATER);
    cluster.ok("apply -f web.yaml");
    cluster.ok("apply --server-side -f later.yaml");
    let containers = containers(&cluster);
    assert_eq!(containers.as_array().unwrap().len(), 1, "{containers}");
    assert_eq!(containers[0]["image"], "example.com/web:2");
    assert_eq!(containers[0]["ports"].as_array().unwrap().len(), 1);
}

#[test]
fn pruning_removes_what_is_no_longer_applied() {
    let Some(cluster) = KubectlCluster::start("pruning_removes_what_is_no_longer_applied") else {
        return;
    };
    let map = |name: &str| {
        format!(
            "---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, labels: {{a: b}}}}}}\n"
        )
    };
    cluster.file("both.yaml", &(map("one") + &map("two")));
    cluster.file("one.yaml", &map("one"));
    cluster.ok("apply -f both.yaml");
    let prune = "apply -f one.yaml --prune -l a=b --prune-allowlist=core/v1/ConfigMap";
    let said = cluster.ok(prune);
    assert_eq!(said, "configmap/one unchanged\nconfigmap/two pruned\n");
    assert_eq!(cluster.ok("get cm -l a=b -o name"), "configmap/one\n");
}
