//! `delete`: the object, its dependents, finalizers and grace periods.

use super::kubectl_cluster::KubectlCluster;

/// Creates a Deployment and a ConfigMap that it owns.
fn create_owner_and_dependent(cluster: &KubectlCluster, name: &str) {
    cluster.ok(&format!("create deployment {name} --image=nginx"));
    let uid = cluster.ok(&format!("get deploy {name} -o jsonpath={{.metadata.uid}}"));
    cluster.file(
        "child.yaml",
        &format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: of-{name}, ownerReferences: [
              {{apiVersion: apps/v1, kind: Deployment, name: {name}, uid: {uid}, blockOwnerDeletion: true}}]}}}}"
        ),
    );
    cluster.ok("create -f child.yaml");
}

#[test]
fn cascade_decides_the_fate_of_dependents() {
    let Some(cluster) = KubectlCluster::start("cascade_decides_the_fate_of_dependents") else {
        return;
    };
    for cascade in ["background", "foreground", "orphan"] {
        create_owner_and_dependent(&cluster, cascade);
        let said = cluster.ok(&format!("delete deploy {cascade} --cascade={cascade}"));
        assert!(
            said.starts_with(&format!("deployment.apps \"{cascade}\" deleted")),
            "{said}"
        );
    }
    // Foreground deletion removes the dependent before its owner.
    let left = cluster.ok("get cm of-foreground of-orphan --ignore-not-found -o name");
    assert_eq!(left, "configmap/of-orphan\n");
    cluster.ok("wait --for=delete cm/of-background --timeout=60s");
    let orphan = cluster.json("get cm of-orphan");
    assert_eq!(orphan["metadata"].get("ownerReferences"), None);
}

#[test]
fn objects_are_deleted_by_name_label_file_and_all() {
    let Some(cluster) = KubectlCluster::start("objects_are_deleted_by_name_label_file_and_all")
    else {
        return;
    };
    cluster.ok("create ns n");
    for name in ["a", "b", "c", "d", "e"] {
        cluster.ok(&format!("create cm {name} -n n"));
    }
    cluster.ok("label cm b c app=x -n n");
    cluster.file(
        "d.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: d, namespace: 'n'}}",
    );
    for (line, gone) in [
        ("delete cm a -n n", &["a"] as &[_]),
        ("delete cm -l app=x -n n", &["b", "c"]),
        ("delete -f d.yaml", &["d"]),
        ("delete cm --all -n n", &["e", "kube-root-ca.crt"]),
    ] {
        let said = cluster.ok(line);
        assert_eq!(said.lines().count(), gone.len(), "{line}: {said}");
        for (line, name) in said.lines().zip(gone) {
            assert!(line.starts_with(&format!("configmap \"{name}\" deleted")));
        }
    }
    // The server restores this ConfigMap in every namespace.
    cluster.ok("wait --for=create cm/kube-root-ca.crt -n n --timeout=60s");
    assert_eq!(
        cluster.refused("delete cm a -n n").trim_end(),
        "Error from server (NotFound): configmaps \"a\" not found"
    );
    assert_eq!(cluster.ok("delete cm a -n n --ignore-not-found"), "");
    let kept = cluster.refused("delete ns default");
    assert!(
        kept.contains("namespaces \"default\" is forbidden: this namespace may not be deleted"),
        "{kept}"
    );
}

#[test]
fn pods_are_deleted_with_and_without_grace() {
    let Some(cluster) = KubectlCluster::start("pods_are_deleted_with_and_without_grace") else {
        return;
    };
    for (line, said) in [
        ("delete pod p", "pod \"p\" deleted"),
        (
            "delete pod p --grace-period=0 --force",
            "pod \"p\" force deleted",
        ),
        ("delete pod p --now", "pod \"p\" deleted"),
    ] {
        cluster.ok("run p --image=nginx");
        let output = cluster.ok(line);
        assert!(output.starts_with(said), "{output}");
        assert_eq!(cluster.ok("get pods -o name"), "");
    }
    // A pod that is bound to a node stays until the node confirms its end.
    cluster.file(
        "pod.yaml",
        "{apiVersion: v1, kind: Pod, metadata: {name: q}, spec: {nodeName: node, containers: [{name: c, image: i}]}}",
    );
    cluster.ok("create -f pod.yaml");
    cluster.refused("delete pod q --timeout=200ms");
    assert!(cluster.ok("get pods").contains("Terminating"));
    cluster.ok("delete pod q --grace-period=0 --force");
    assert_eq!(cluster.ok("get pods -o name"), "");
}

#[test]
fn kubectl_waits_for_finalizers_and_namespaces() {
    let Some(cluster) = KubectlCluster::start("kubectl_waits_for_finalizers_and_namespaces") else {
        return;
    };
    cluster.ok("create ns n");
    cluster.ok("create cm held -n n");
    cluster.ok(
        r#"patch cm held -n n --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'"#,
    );
    let late = cluster.refused("delete cm held -n n --timeout=200ms");
    assert!(
        late.contains("timed out waiting for the condition on configmaps/held"),
        "{late}"
    );
    let namespace = cluster.follow("delete ns n");
    cluster.ok("wait --for=jsonpath={.status.phase}=Terminating ns/n --timeout=60s");
    let refused = cluster.refused("create cm more -n n");
    assert!(
        refused.contains("because it is being terminated"),
        "{refused}"
    );
    cluster.ok("wait --for=condition=NamespaceFinalizersRemaining ns/n --timeout=60s");
    cluster.ok(
        r#"patch cm held -n n --type=json -p '[{"op":"remove","path":"/metadata/finalizers"}]'"#,
    );
    assert_eq!(namespace.end(), Some(0));
    assert_eq!(
        cluster.refused("get ns n").trim_end(),
        "Error from server (NotFound): namespaces \"n\" not found"
    );
}
