//! Pods and objects that fail: the reason is visible, and other objects are not affected.

use super::kubectl_cluster::KubectlCluster;

/// The manifest of a pod with one container; `container` and `spec` add fields.
fn pod(name: &str, container: &str, spec: &str) -> String {
    let command = "command: [sleep, '1000']";
    format!(
        "
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 1
  {spec}
  containers: [{{name: main, image: busybox, {command}{container}}}]
"
    )
}

/// Runs `kubectl describe` until its output contains all of `words`.
fn description_has(cluster: &KubectlCluster, what: &str, words: &[&str]) {
    cluster.prints(&format!("describe {what}"), words);
}

#[test]
fn failing_pods_show_the_reason() {
    let Some(cluster) = KubectlCluster::up("failing_pods_show_the_reason", &[]) else {
        return;
    };
    let crash = pod("crash", "", "").replace("[sleep, '1000']", "[sh, -c, 'exit 3']");
    let deaf = ", readinessProbe: {httpGet: {port: 9}, periodSeconds: 1}";
    let sick = ", livenessProbe: {tcpSocket: {port: 9}, periodSeconds: 1, failureThreshold: 1}";
    let map = ", envFrom: [{configMapRef: {name: gone}}]";
    let secret = "volumes: [{name: v, secret: {secretName: gone}}]";
    let all = [
        crash,
        pod("deaf", deaf, ""),
        pod("sick", sick, ""),
        pod("map", map, ""),
        pod(
            "secret",
            ", volumeMounts: [{name: v, mountPath: /v}]",
            secret,
        ),
        pod("well", "", ""),
    ];
    cluster.file("pods.yaml", &all.concat());
    cluster.ok("apply -f pods.yaml");
    cluster.ok("wait pod/well --for=condition=Ready --timeout=60s");
    let crash = ["CrashLoopBackOff", "BackOff", "it ended with exit code 3"];
    description_has(&cluster, "pod crash", &crash);
    let deaf = [
        "Unhealthy",
        "Readiness probe failed: dial tcp",
        ":9: Connection refused",
    ];
    description_has(&cluster, "pod deaf", &deaf);
    let sick = ["Liveness probe failed", "failed liveness probe", "Killing"];
    description_has(&cluster, "pod sick", &sick);
    let map = ["CreateContainerConfigError", "configmap \"gone\" not found"];
    description_has(&cluster, "pod map", &map);
    let secret = ["FailedMount", "volume \"v\": secret \"gone\" not found"];
    description_has(&cluster, "pod secret", &secret);
    // The pods start once the missing objects exist.
    cluster.ok("create configmap gone");
    cluster.ok("create secret generic gone");
    cluster.ok("wait pod/map pod/secret --for=condition=Ready --timeout=60s");
}

#[test]
fn two_pods_cannot_share_a_host_port() {
    let Some(cluster) = KubectlCluster::up("two_pods_cannot_share_a_host_port", &[]) else {
        return;
    };
    let port = ", ports: [{containerPort: 80, hostPort: 8080}]";
    cluster.file("first.yaml", &pod("first", port, ""));
    cluster.ok("apply -f first.yaml");
    cluster.ok("wait pod/first --for=condition=Ready --timeout=60s");
    // The first is pending at the scheduler; the second bypasses the scheduler, and the node refuses it.
    let second = pod("second", port, "");
    cluster.file(
        "both.yaml",
        &(second + &pod("third", port, "nodeName: neap")),
    );
    cluster.ok("apply -f both.yaml");
    let waits = [
        "FailedScheduling",
        "didn't have free ports for the requested pod ports",
    ];
    description_has(&cluster, "pod second", &waits);
    let refused = "another pod of this node has its port 8080";
    description_has(&cluster, "pod third", &["Failed", "NodePorts", refused]);
    let phase = "get pod third -o jsonpath='{.status.phase}'";
    assert_eq!(cluster.ok(phase), "Failed");
    cluster.ok("delete pod third --timeout=60s");
    cluster.ok("delete pod first --timeout=60s");
    cluster.ok("wait pod/second --for=condition=Ready --timeout=60s");
}

#[test]
fn a_deployment_that_never_becomes_ready_exceeds_its_deadline() {
    let test = "a_deployment_that_never_becomes_ready_exceeds_its_deadline";
    let Some(cluster) = KubectlCluster::up(test, &[]) else {
        return;
    };
    cluster.file(
        "never.yaml",
        "
apiVersion: apps/v1
kind: Deployment
metadata: {name: never}
spec:
  progressDeadlineSeconds: 2
  selector: {matchLabels: {app: never}}
  template:
    metadata: {labels: {app: never}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: main
          image: busybox
          command: [sleep, '1000']
          readinessProbe: {exec: {command: ['false']}, periodSeconds: 1}
",
    );
    cluster.ok("apply -f never.yaml");
    let said = cluster.refused("rollout status deployment/never --timeout=60s");
    assert!(said.contains("exceeded its progress deadline"), "{said}");
    description_has(&cluster, "deployment never", &["ProgressDeadlineExceeded"]);
    let status = cluster.neap("status").stdout;
    assert!(status.contains("is running but not ready"), "{status}");
    assert_eq!(cluster.neap("check").code, Some(1));
}

#[test]
fn objects_that_own_each_other_can_be_deleted() {
    let Some(cluster) = KubectlCluster::up("objects_that_own_each_other_can_be_deleted", &[])
    else {
        return;
    };
    for how in ["foreground", "background"] {
        let uid = |name: &str| {
            cluster.ok(&format!("create configmap {name}"));
            cluster.ok(&format!(
                "get configmap {name} -o jsonpath='{{.metadata.uid}}'"
            ))
        };
        let (hen, egg) = (uid("hen"), uid("egg"));
        for (owned, owner, uid) in [("hen", "egg", egg), ("egg", "hen", hen)] {
            let owner = format!(
                r#"{{"metadata":{{"ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap","name":"{owner}","uid":"{uid}","blockOwnerDeletion":true}}]}}}}"#
            );
            cluster.ok(&format!(
                "patch configmap {owned} --type=merge -p '{owner}'"
            ));
        }
        cluster.ok(&format!(
            "delete configmap hen --cascade={how} --timeout=60s"
        ));
        cluster.ok("wait configmap/egg --for=delete --timeout=60s");
    }
}
