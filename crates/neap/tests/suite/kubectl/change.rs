//! Changes of existing objects: `label`, `annotate`, `patch`, `edit`, `replace`, `scale`, `set`,
//! `taint`.

use serde_json::json;

use super::kubectl_cluster::{KubectlCluster, assert_table};

#[test]
fn labels_and_annotations_are_set_and_removed() {
    let Some(cluster) = KubectlCluster::start("labels_and_annotations_are_set_and_removed") else {
        return;
    };
    cluster.ok("create cm x");
    for (line, said) in [
        ("label cm x app=a", "configmap/x labeled\n"),
        ("label cm x app=a", "configmap/x not labeled\n"),
        ("label cm x app=b --overwrite", "configmap/x labeled\n"),
        ("annotate cm x note='two words'", "configmap/x annotated\n"),
        ("annotate cm x note-", "configmap/x annotated\n"),
        ("label cm x other=1", "configmap/x labeled\n"),
        ("label cm x app-", "configmap/x unlabeled\n"),
    ] {
        assert_eq!(cluster.ok(line), said, "{line}");
    }
    let refused = cluster.refused("label cm x other=2");
    assert!(
        refused.contains("'other' already has a value (1), and --overwrite is false"),
        "{refused}"
    );
    let refused = cluster.refused("label cm x 'bad key=1'");
    assert!(refused.contains("bad key"), "{refused}");
    let map = cluster.json("get cm x");
    assert_eq!(map["metadata"]["labels"], json!({"other": "1"}));
    assert_eq!(map["metadata"].get("annotations"), None);
}

#[test]
fn patches_of_all_types_are_applied() {
    let Some(cluster) = KubectlCluster::start("patches_of_all_types_are_applied") else {
        return;
    };
    cluster.ok("run p --image=nginx");
    let strategic = r#"patch pod p -p '{"spec":{"activeDeadlineSeconds":60}}'"#;
    assert_eq!(cluster.ok(strategic), "pod/p patched\n");
    assert_eq!(cluster.ok(strategic), "pod/p patched (no change)\n");
    cluster.ok(r#"patch pod p --type=merge -p '{"metadata":{"labels":{"run":null,"a":"b"}}}'"#);
    cluster.ok(r#"patch pod p --type=json -p '[{"op":"test","path":"/metadata/labels/a","value":"b"},{"op":"replace","path":"/spec/containers/0/image","value":"nginx:2"}]'"#);
    let pod = cluster.json("get pod p");
    assert_eq!(pod["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(pod["spec"]["containers"][0]["image"], "nginx:2");
    let refused =
        cluster.refused(r#"patch pod p --type=json -p '[{"op":"remove","path":"/spec/nope"}]'"#);
    assert_eq!(
        refused,
        "The request is invalid: the server rejected our request due to an error in our request\n"
    );
    let refused = cluster.refused(r#"patch pod p -p '{"spec":{"restartPolicy":"Never"}}'"#);
    assert!(
        refused.contains("pod updates may not change fields other than"),
        "{refused}"
    );
}

#[test]
fn objects_are_edited_and_replaced() {
    let Some(cluster) = KubectlCluster::start("objects_are_edited_and_replaced") else {
        return;
    };
    cluster.ok("create cm x --from-literal=a=old");
    let edited = cluster.edit("cm x", "s/old/new/");
    assert_eq!(edited.stdout, "configmap/x edited\n", "{edited:?}");
    let same = cluster.edit("cm x", "s/old/new/");
    assert_eq!(
        same.stdout + &same.stderr,
        "Edit cancelled, no changes made.\n"
    );

    let yaml = cluster.ok("get cm x -o yaml");
    cluster.file("x.yaml", &yaml.replace("a: new", "b: newer"));
    assert_eq!(cluster.ok("replace -f x.yaml"), "configmap/x replaced\n");
    let before = cluster.json("get cm x");
    assert_eq!(before["data"], json!({"b": "newer"}));
    // The file has the old resource version.
    let stale = cluster.refused("replace -f x.yaml");
    assert!(
        stale.contains("Error from server (Conflict)")
            && stale.contains("the object has been modified"),
        "{stale}"
    );
    let forced = cluster.ok("replace --force -f x.yaml");
    assert!(forced.ends_with("configmap/x replaced\n"), "{forced}");
    let after = cluster.json("get cm x");
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
}

#[test]
fn workloads_are_scaled_and_set() {
    let Some(cluster) = KubectlCluster::start("workloads_are_scaled_and_set") else {
        return;
    };
    cluster.ok("create deployment web --image=nginx:1");
    for (line, said) in [
        ("scale deploy web --replicas=3", "scaled"),
        ("set image deploy/web nginx=nginx:2", "image updated"),
        ("set env deploy/web A=B", "env updated"),
        (
            "set serviceaccount deploy/web bot",
            "serviceaccount updated",
        ),
        ("rollout restart deploy web", "restarted"),
        ("rollout pause deploy web", "paused"),
        ("rollout resume deploy web", "resumed"),
    ] {
        assert_eq!(
            cluster.ok(line),
            format!("deployment.apps/web {said}\n"),
            "{line}"
        );
    }
    assert_eq!(
        cluster
            .refused("scale deploy web --replicas=4 --current-replicas=9")
            .trim_end(),
        "error: Expected replicas to be 9, was 3"
    );
    assert_table(
        &cluster.ok("get deploy web -o wide"),
        &[
            "NAME READY UP-TO-DATE AVAILABLE AGE CONTAINERS IMAGES SELECTOR",
            "web 0/3 0 0 * nginx nginx:2 app=web",
        ],
    );
    let deployment = cluster.json("get deploy web");
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(
        pod["containers"][0]["env"],
        json!([{"name": "A", "value": "B"}])
    );
    assert_eq!(pod["serviceAccountName"], "bot");
    assert_eq!(deployment["spec"].get("paused"), None);
}

#[test]
fn nodes_are_tainted_and_cordoned() {
    let Some(cluster) = KubectlCluster::start("nodes_are_tainted_and_cordoned") else {
        return;
    };
    cluster.file(
        "node.yaml",
        "{apiVersion: v1, kind: Node, metadata: {name: node}}",
    );
    cluster.ok("create -f node.yaml");
    for (line, said) in [
        (
            "taint node node key=value:NoSchedule",
            "node/node tainted\n",
        ),
        ("cordon node", "node/node cordoned\n"),
        ("taint node node key-", "node/node untainted\n"),
    ] {
        assert_eq!(cluster.ok(line), said, "{line}");
    }
    assert_table(
        &cluster.ok("get nodes"),
        &[
            "NAME STATUS ROLES AGE VERSION",
            "node Unknown,SchedulingDisabled <none> *",
        ],
    );
    assert_eq!(cluster.ok("uncordon node"), "node/node uncordoned\n");
    assert!(cluster.ok("drain node").contains("node/node drained"));
}
