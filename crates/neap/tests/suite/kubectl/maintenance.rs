//! Scaling, draining, deletion and completion of running workloads.

use super::{
    kubectl_cluster::KubectlCluster,
    workloads::{sleeper, until},
};

#[test]
fn wait_does_not_end_before_a_rollout() {
    let Some(cluster) = KubectlCluster::up("wait_does_not_end_before_a_rollout", &[]) else {
        return;
    };
    // Pods become ready a second after their start, so a stale status would end the wait too early.
    let probe = "readinessProbe: {exec: {command: ['true']}, initialDelaySeconds: 1}";
    let slow = sleeper(1, 1000).replace("'1000']", &format!("'1000'], {probe}"));
    cluster.file("web.yaml", &slow);
    cluster.ok("apply -f web.yaml");
    for replicas in [1, 3, 5] {
        cluster.ok(&format!("scale deployment web --replicas={replicas}"));
        cluster.ok("wait deployment/web --for=condition=Available --timeout=60s");
        let available = cluster.ok("get deployment web -o jsonpath='{.status.availableReplicas}'");
        // maxUnavailable is a quarter.
        let available: u32 = available.parse().unwrap();
        let least = replicas - replicas / 4;
        assert!(
            (least..=replicas).contains(&available),
            "{available} of {replicas}"
        );
    }
}

#[test]
fn a_deleted_pod_is_replaced() {
    let Some(cluster) = KubectlCluster::up("a_deleted_pod_is_replaced", &[]) else {
        return;
    };
    cluster.file("web.yaml", &sleeper(1, 1000));
    cluster.ok("apply -f web.yaml");
    cluster.ok("rollout status deployment/web --timeout=60s");
    let name = "get pods -l app=web -o jsonpath='{.items[*].metadata.name}'";
    let first = cluster.ok(name);
    cluster.ok(&format!("delete pod {first} --timeout=60s"));
    cluster.ok("wait deployment/web --for=condition=Available --timeout=60s");
    cluster.ok("rollout status deployment/web --timeout=60s");
    let second = cluster.ok(name);
    assert!(second != first && !second.contains(' '), "{first} {second}");
}

#[test]
fn a_drained_node_gets_no_pods_until_it_is_uncordoned() {
    let test = "a_drained_node_gets_no_pods_until_it_is_uncordoned";
    let Some(cluster) = KubectlCluster::up(test, &[]) else {
        return;
    };
    cluster.file("web.yaml", &sleeper(2, 1000));
    cluster.ok("apply -f web.yaml");
    cluster.ok("rollout status deployment/web --timeout=60s");
    cluster.ok("create pdb web --selector=app=web --min-available=1");
    cluster.ok("wait pdb/web --for=jsonpath='{.status.disruptionsAllowed}'=1 --timeout=60s");

    // The budget allows one eviction; the second needs a replacement that cannot be scheduled.
    let said = cluster.run("drain neap --timeout=3s");
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("disruption budget"), "{said:?}");
    let events = cluster.prints("get events", &["FailedScheduling"]);
    assert!(events.contains("node(s) were unschedulable"), "{events}");
    cluster.ok("delete pdb web");
    cluster.ok("drain neap --timeout=60s");
    let phases = cluster.ok("get pods -l app=web -o jsonpath='{.items[*].status.phase}'");
    assert_eq!(phases, "Pending Pending");
    cluster.ok("uncordon neap");
    cluster.ok("rollout status deployment/web --timeout=60s");
}

const KEEPER: &str = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: keeper}
spec:
  serviceName: keeper
  selector: {matchLabels: {app: keeper}}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
  template:
    metadata: {labels: {app: keeper}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: main
          image: busybox
          volumeMounts: [{name: data, mountPath: /data}]
          command: [sh, -c, 'echo start >> /data/starts; exec sleep 1000']
";

#[test]
fn data_in_a_claim_survives_its_pod() {
    let Some(cluster) = KubectlCluster::up("data_in_a_claim_survives_its_pod", &[]) else {
        return;
    };
    cluster.file("keeper.yaml", KEEPER);
    cluster.ok("apply -f keeper.yaml");
    cluster.ok("rollout status statefulset/keeper --timeout=60s");
    cluster.ok("exec keeper-0 -- sh -c 'echo treasure > /data/chest'");
    let uid = "get pod keeper-0 --ignore-not-found -o jsonpath='{.metadata.uid}'";
    let first = cluster.ok(uid);
    cluster.ok("delete pod keeper-0 --timeout=60s");
    until("a successor", || {
        let now = cluster.ok(uid);
        !now.is_empty() && now != first
    });
    cluster.ok("wait pod/keeper-0 --for=condition=Ready --timeout=60s");
    let kept = cluster.ok("exec keeper-0 -- cat /data/chest /data/starts");
    assert_eq!(kept, "treasure\nstart\nstart\n");
}

#[test]
fn wait_ends_when_a_job_completes_or_fails() {
    let Some(cluster) = KubectlCluster::up("wait_ends_when_a_job_completes_or_fails", &[]) else {
        return;
    };
    cluster.ok("create job sum --image=busybox -- sh -c 'echo $((40 + 2))'");
    cluster.ok("wait job/sum --for=condition=complete --timeout=60s");
    assert_eq!(cluster.ok("logs job/sum"), "42\n");
    let done = cluster.ok("get job sum -o jsonpath='{.status.succeeded}'");
    assert_eq!(done, "1");
    cluster.file(
        "bad.yaml",
        "{apiVersion: batch/v1, kind: Job, metadata: {name: bad}, spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox, command: ['false']}]}}}}",
    );
    cluster.ok("apply -f bad.yaml");
    cluster.ok("wait job/bad --for=condition=failed --timeout=60s");
    cluster.prints("describe job bad", &["BackoffLimitExceeded"]);
}
