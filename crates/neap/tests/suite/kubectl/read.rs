//! `get`, `api-resources` and `version`.

use serde_json::json;

use super::kubectl_cluster::{KubectlCluster, assert_lines, assert_table};

#[test]
fn every_kind_in_discovery_can_be_listed() {
    let Some(cluster) = KubectlCluster::start("every_kind_in_discovery_can_be_listed") else {
        return;
    };
    let version = cluster.json("version");
    assert_eq!(version["serverVersion"]["minor"], "36");
    assert_lines(
        &cluster.ok("api-resources"),
        &[
            "NAME SHORTNAMES APIVERSION NAMESPACED KIND",
            "pods po v1 true Pod",
            "deployments deploy apps/v1 true Deployment",
            "customresourcedefinitions crd,crds apiextensions.k8s.io/v1 false CustomResourceDefinition",
        ],
    );
    assert_lines(&cluster.ok("api-versions"), &["v1", "apps/v1", "batch/v1"]);
    let kinds = cluster.ok("api-resources --verbs=list -o name");
    let kinds: Vec<&str> = kinds.lines().collect();
    assert!(kinds.len() > 30, "{kinds:?}");
    cluster.ok(&format!("get {} -A", kinds.join(",")));
    let items = cluster.json(&format!("get {} -A", kinds.join(",")));
    assert!(items["items"].as_array().unwrap().len() >= 6);
    assert_table(
        &cluster.ok("get all -A"),
        &[
            "NAMESPACE NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE",
            "default service/kubernetes ClusterIP 10.0.0.1 <none> 443/TCP *",
        ],
    );
    assert!(cluster.ok("cluster-info").contains("https://127.0.0.1:"));
    assert_eq!(cluster.ok("get --raw /readyz"), "ok");
}

#[test]
fn objects_are_found_by_label_and_field() {
    let Some(cluster) = KubectlCluster::start("objects_are_found_by_label_and_field") else {
        return;
    };
    cluster.ok("run p1 --image=nginx --labels=app=x,tier=front");
    cluster.ok("run p2 --image=nginx --labels=app=y");
    for (line, expected) in [
        ("get pods -l app=x", "pod/p1\n"),
        ("get pods -l 'app in (x,y),!tier'", "pod/p2\n"),
        ("get pods -l app!=x", "pod/p2\n"),
        (
            "get pods --field-selector=metadata.name=p2,status.phase=Pending",
            "pod/p2\n",
        ),
        (
            "get pods -A --field-selector=metadata.namespace!=default",
            "",
        ),
        (
            "get pods --sort-by=.metadata.labels.app",
            "pod/p1\npod/p2\n",
        ),
        ("get pods -n nowhere", ""),
    ] {
        assert_eq!(cluster.ok(&format!("{line} -o name")), expected, "{line}");
    }
    assert!(
        cluster
            .refused("get pods --field-selector=spec.nope=1")
            .contains("field label not supported: spec.nope")
    );
    assert_eq!(
        cluster.run("get pods -n nowhere").stderr,
        "No resources found in nowhere namespace.\n"
    );
    let both = cluster.run("get pod p1 p3");
    assert_eq!(both.code, Some(1));
    assert!(both.stdout.contains("p1"));
    assert_eq!(
        both.stderr,
        "Error from server (NotFound): pods \"p3\" not found\n"
    );
    assert_eq!(
        cluster.refused("get ships").trim_end(),
        "error: the server doesn't have a resource type \"ships\""
    );
}

#[test]
fn tables_have_the_usual_columns() {
    let Some(cluster) = KubectlCluster::start("tables_have_the_usual_columns") else {
        return;
    };
    cluster.ok("run p1 --image=nginx --labels=app=x,tier=front");
    let pod = "p1 0/1 Pending 0 *";
    assert_table(
        &cluster.ok("get pods"),
        &["NAME READY STATUS RESTARTS AGE", pod],
    );
    assert_table(
        &cluster.ok("get pods -o wide --show-labels"),
        &[
            "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES LABELS",
            &format!("{pod} <none> <none> <none> <none> app=x,tier=front"),
        ],
    );
    assert_table(
        &cluster.ok("get pods -L app,tier"),
        &[
            "NAME READY STATUS RESTARTS AGE APP TIER",
            &format!("{pod} x front"),
        ],
    );
    assert_table(
        &cluster.ok("get pods -A"),
        &[
            "NAMESPACE NAME READY STATUS RESTARTS AGE",
            &format!("default {pod}"),
        ],
    );
    assert_table(&cluster.ok("get pods --no-headers"), &[pod]);
    let columns = "get pods -o custom-columns=N:.metadata.name,I:.spec.containers[*].image";
    assert_table(&cluster.ok(columns), &["N I", "p1 nginx"]);
    let path = "get pod p1 -o jsonpath={.spec.containers[0].image}/{.status.phase}";
    assert_eq!(cluster.ok(path), "nginx/Pending");
    let yaml = cluster.ok("get pod p1 -o yaml");
    assert_lines(&yaml, &["apiVersion: v1", "kind: Pod", "- image: nginx"]);
    assert!(!yaml.contains("managedFields"));
    let list = cluster.json("get pods");
    assert_eq!(list["kind"], "List");
    assert_eq!(list["items"][0]["kind"], "Pod");
    assert_eq!(list["items"][0]["metadata"]["generation"], json!(1));
}
