//! `describe` and `events`.

use super::kubectl_cluster::{KubectlCluster, assert_lines, assert_table};

#[test]
fn objects_are_described_in_full() {
    let Some(cluster) = KubectlCluster::start("objects_are_described_in_full") else {
        return;
    };
    cluster.ok("run p --image=nginx --port=80 --env=A=1");
    cluster.ok("create deployment web --image=nginx --replicas=2");
    cluster.ok("expose deployment web --port=80");
    cluster.ok("create cm c --from-literal=a=b");
    cluster.ok("create secret generic s --from-literal=a=b");
    for (object, lines) in [
        (
            "pod p",
            &[
                "Name: p",
                "Service Account: default",
                "Status: Pending",
                "Image: nginx",
                "Port: 80/TCP",
                "A: 1",
                "QoS Class: BestEffort",
                "Events: <none>",
            ] as &[_],
        ),
        (
            "deploy web",
            &[
                "Selector: app=web",
                "Replicas: 2 desired | 0 updated | 0 total | 0 available | 0 unavailable",
                "StrategyType: RollingUpdate",
                "RollingUpdateStrategy: 25% max unavailable, 25% max surge",
            ],
        ),
        (
            "svc web",
            &[
                "Selector: app=web",
                "Type: ClusterIP",
                "Port: <unset> 80/TCP",
            ],
        ),
        ("cm c", &["Data", "a:", "b"]),
        ("secret s", &["Type: Opaque", "a: 1 bytes"]),
        (
            "ns default",
            &[
                "Labels: kubernetes.io/metadata.name=default",
                "Status: Active",
                "No resource quota.",
            ],
        ),
    ] {
        assert_lines(&cluster.ok(&format!("describe {object}")), lines);
    }
    assert_eq!(
        cluster.refused("describe pod q").trim_end(),
        "Error from server (NotFound): pods \"q\" not found"
    );
}

#[test]
fn events_are_listed_and_described() {
    let Some(cluster) = KubectlCluster::start("events_are_listed_and_described") else {
        return;
    };
    cluster.ok("create cm c");
    let uid = cluster.ok("get cm c -o jsonpath={.metadata.uid}");
    cluster.file(
        "event.yaml",
        &format!(
            "{{apiVersion: v1, kind: Event, metadata: {{name: e}}, type: Warning, reason: Seen,
              message: it was seen, count: 3, source: {{component: eye}},
              firstTimestamp: '2026-01-01T00:00:00Z', lastTimestamp: '2026-01-01T00:00:00Z',
              involvedObject: {{apiVersion: v1, kind: ConfigMap, namespace: default, name: c, uid: {uid}}}}}"
        ),
    );
    cluster.ok("create -f event.yaml");
    let table = &[
        "LAST SEEN TYPE REASON OBJECT MESSAGE",
        "* Warning Seen configmap/c it was seen",
    ];
    assert_table(&cluster.ok("get events"), table);
    assert_table(&cluster.ok("get events.events.k8s.io"), table);
    let line = cluster.ok("events --for configmap/c --no-headers");
    assert!(
        line.contains("Warning") && line.contains("ConfigMap/c"),
        "{line}"
    );
    assert!(cluster.ok("describe cm c").contains("it was seen"));
    assert_eq!(cluster.ok("events --for configmap/d"), "");
}
