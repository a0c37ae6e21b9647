//! What cannot be is told of in plain words, and holds nothing else up.

use crate::cluster::Cluster;

/// A pod of one container, with more of its own.
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

/// Describes what is described until all of these words are there.
fn told(cluster: &Cluster, what: &str, words: &[&str]) {
    cluster.says(&format!("describe {what}"), words);
}

#[test]
fn pods_that_cannot_be_say_why() {
    let Some(cluster) = Cluster::up("pods_that_cannot_be_say_why", &[]) else {
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
    told(&cluster, "pod crash", &crash);
    let deaf = [
        "Unhealthy",
        "Readiness probe failed: dial tcp",
        ":9: Connection refused",
    ];
    told(&cluster, "pod deaf", &deaf);
    let sick = ["Liveness probe failed", "failed liveness probe", "Killing"];
    told(&cluster, "pod sick", &sick);
    let map = ["CreateContainerConfigError", "configmap \"gone\" not found"];
    told(&cluster, "pod map", &map);
    let secret = ["FailedMount", "volume \"v\": secret \"gone\" not found"];
    told(&cluster, "pod secret", &secret);
    // What was missing may come.
    cluster.ok("create configmap gone");
    cluster.ok("create secret generic gone");
    cluster.ok("wait pod/map pod/secret --for=condition=Ready --timeout=60s");
}

#[test]
fn two_pods_do_not_get_the_same_port_of_the_node() {
    let Some(cluster) = Cluster::up("two_pods_do_not_get_the_same_port_of_the_node", &[]) else {
        return;
    };
    let port = ", ports: [{containerPort: 80, hostPort: 8080}]";
    cluster.file("first.yaml", &pod("first", port, ""));
    cluster.ok("apply -f first.yaml");
    cluster.ok("wait pod/first --for=condition=Ready --timeout=60s");
    // One asks the scheduler, and waits; the other does not, and is refused by the node.
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
    told(&cluster, "pod second", &waits);
    let refused = "another pod of this node has its port 8080";
    told(&cluster, "pod third", &["Failed", "NodePorts", refused]);
    let phase = "get pod third -o jsonpath='{.status.phase}'";
    assert_eq!(cluster.ok(phase), "Failed");
    cluster.ok("delete pod third --timeout=60s");
    cluster.ok("delete pod first --timeout=60s");
    cluster.ok("wait pod/second --for=condition=Ready --timeout=60s");
}

#[test]
fn a_deployment_that_never_gets_ready_runs_out_of_time() {
    let test = "a_deployment_that_never_gets_ready_runs_out_of_time";
    let Some(cluster) = Cluster::up(test, &[]) else {
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
    told(&cluster, "deployment never", &["ProgressDeadlineExceeded"]);
    let status = cluster.neap("status").stdout;
    assert!(status.contains("runs and is not ready"), "{status}");
    assert_eq!(cluster.neap("check").code, Some(1));
}

#[test]
fn owners_in_a_circle_can_be_deleted() {
    let Some(cluster) = Cluster::up("owners_in_a_circle_can_be_deleted", &[]) else {
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
