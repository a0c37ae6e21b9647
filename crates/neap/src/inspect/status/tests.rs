use neap_kit::explain::Verdict;
use serde_json::{Value, json};

use super::*;

fn snapshot(objects: Vec<Value>) -> ClusterSnapshot {
    ClusterSnapshot {
        address: "https://127.0.0.1:6443".into(),
        version: "v1.36.3".into(),
        namespace: Some("shop".into()),
        objects: objects.into(),
        ..ClusterSnapshot::default()
    }
}

fn report_of(snapshot: &ClusterSnapshot) -> StatusReport {
    report(snapshot, "2026-01-01T12:00:00Z".parse().unwrap())
}

fn objects() -> Vec<Value> {
    vec![
        json!({"kind": "Node", "metadata": {"name": "here"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        json!({"kind": "Deployment", "metadata": {"name": "web", "namespace": "shop", "uid": "d", "generation": 1}, "spec": {"replicas": 2},
            "status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1}}),
        json!({"kind": "ReplicaSet", "metadata": {"name": "web-1", "namespace": "shop", "uid": "r",
            "ownerReferences": [{"uid": "d", "controller": true}]}}),
        json!({"kind": "Pod", "metadata": {"name": "web-1-a", "namespace": "shop", "labels": {"app": "web"},
            "ownerReferences": [{"uid": "r", "controller": true}]},
            "spec": {"nodeName": "here"}, "status": {"phase": "Running", "containerStatuses": [
                {"name": "main", "image": "web:2", "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}]}}),
        json!({"kind": "Service", "metadata": {"name": "web", "namespace": "shop"}, "spec": {
            "type": "NodePort", "clusterIP": "127.1.128.5", "selector": {"app": "web"}, "ports": [{"port": 80, "nodePort": 30080}]}}),
        json!({"kind": "EndpointSlice", "metadata": {"namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}},
            "endpoints": [{"addresses": ["127.1.1.1"]}]}),
        json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "full", "namespace": "shop"}, "status": {"phase": "Bound"}}),
    ]
}

#[test]
fn the_text_shows_counts_addresses_and_reasons() {
    let mut snapshot = snapshot(objects());
    snapshot.events = vec![serde_json::from_value(json!({
        "metadata": {}, "type": "Warning", "reason": "AddressNotServed",
        "message": "127.1.128.5:80 is not served: ports below 1024 need root; use the node port 30080",
        "involvedObject": {"kind": "Service", "namespace": "shop", "name": "web"},
    }))
    .unwrap()]
    .into();
    let expected = "\
Server     https://127.0.0.1:6443 - Kubernetes v1.36.3

Nodes
  ok node/here                          ready

Workloads in shop
  x  deployment/web                     1/2 ready
       pod web-1-a: the image web:2 of the container main cannot be pulled: no such image
       1 of 2 pods are ready

Pods with problems
  x  pod/web-1-a                        Running
       the image web:2 of the container main cannot be pulled: no such image

Services in shop
  x  service/web                        127.1.128.5:80 (node port 30080)
       127.1.128.5:80 is not served: ports below 1024 need root; use the node port 30080

! 3 objects are not ready. For details: neap explain deployment/web -n shop";
    assert_eq!(text::text(&report_of(&snapshot), Symbols::ASCII), expected);
}

#[test]
fn what_a_newer_release_replaced_is_not_counted() {
    let mut report = report_of(&snapshot(objects()));
    report.workloads[0].is_superseded = true;
    report.pods[0].is_superseded = true;
    let shown = text::text(&report, Symbols::ASCII);
    let line = "  -  deployment/web                     1/2 ready
       replaced by a newer release
";
    assert!(shown.contains(line), "{shown}");
    assert!(!shown.contains("1 of 2 pods are ready"), "{shown}");
    report.services.clear();
    let shown = text::text(&report, Symbols::ASCII);
    assert!(shown.ends_with("ok No problems."), "{shown}");
}

#[test]
fn a_long_name_moves_the_column_of_its_section() {
    let mut report = report_of(&snapshot(objects()));
    let mut long = report.workloads[0].clone();
    long.name = "a-name-that-is-longer-than-the-column-of-names".into();
    long.detail = "0/1 ready".into();
    report.workloads.push(long);
    let shown = text::text(&report, Symbols::ASCII);
    let column = |detail: &str| {
        let mut lines = shown.lines();
        lines.find_map(|line| line.find(detail)).unwrap()
    };
    assert_eq!(column("0/1 ready"), column("1/2 ready"));
    assert_eq!(column("Running"), 40, "{shown}");
}

#[test]
fn an_unserved_address_with_a_node_port_is_a_note() {
    let service = objects().swap_remove(4);
    let slice = objects().swap_remove(5);
    let mut snapshot = snapshot(vec![service, slice]);
    let message =
        "127.1.128.5:80 is not served: ports below 1024 need root; use the node port 30080";
    let event = json!({
        "metadata": {}, "type": "Normal", "reason": "AddressNotServed", "message": message,
        "involvedObject": {"kind": "Service", "namespace": "shop", "name": "web"},
    });
    snapshot.events = vec![serde_json::from_value(event).unwrap()].into();
    let report = report_of(&snapshot);
    let [line] = &report.services[..] else {
        panic!("{:?}", report.services);
    };
    assert_eq!(
        (line.verdict, &line.why[..]),
        (Verdict::Healthy, &[message.to_owned()][..])
    );
    let text = text::text(&report, Symbols::ASCII);
    assert!(text.contains("\n  !  service/web "), "{text}");
    assert!(text.contains("No problems."), "{text}");
}

#[test]
fn an_owned_replica_set_is_not_listed() {
    let report = report_of(&snapshot(objects()));
    let names: Vec<_> = report.workloads.iter().map(|line| &*line.name).collect();
    assert_eq!(names, ["web"]);
    assert!(report.claims.is_empty());
}

#[test]
fn an_empty_cluster_has_no_problems() {
    let report = report_of(&snapshot(vec![]));
    let text = text::text(&report, Symbols::ASCII);
    assert!(text.contains("Nodes\n  none: pods stay pending"), "{text}");
    assert!(text.ends_with("ok No problems."), "{text}");
}

#[test]
fn elasti_services_are_shown_with_their_state() {
    let service = |name: &str, status: Value| {
        json!({
            "kind": "ElastiService", "apiVersion": "elasti.truefoundry.com/v1alpha1",
            "metadata": {"name": name, "namespace": "shop", "ownerReferences": [{"uid": "s", "controller": true}]},
            "spec": {"service": name, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}},
            "status": status,
        })
    };
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T09:00:00Z"})
    };
    let asleep = json!({"observedGeneration": 1, "asleepSince": "2026-01-01T09:00:00Z",
        "conditions": [condition("Ready", "Asleep", "it sleeps")]});
    let stalled = json!({"observedGeneration": 1,
        "conditions": [condition("Stalled", "ServiceMissing", "there is no Service cart")]});
    // A condition with status False is no problem; an unresolved reference is worth a note.
    let mut over = condition(
        "TriggersUnknown",
        "TriggersEvaluated",
        "its triggers say so",
    );
    over["status"] = "False".into();
    let unmatched = condition(
        "UnresolvedReferences",
        "NoSuchPort",
        "spec.ports[0].port: none",
    );
    let awake = json!({"observedGeneration": 1, "mode": "serve",
        "conditions": [condition("Ready", "Awake", "its pods answer"), over, unmatched]});
    let report = report_of(&snapshot(vec![
        service("web", asleep),
        service("cart", stalled),
        service("shelf", awake),
        service("new", Value::Null),
    ]));
    let services = &report.areas.0[0].1;
    let shown: Vec<_> = services
        .iter()
        .map(|line| (&*line.name, &*line.detail, line.verdict))
        .collect();
    assert_eq!(
        shown,
        [
            ("web", "asleep for 3h", Verdict::Healthy),
            ("cart", "stalled", Verdict::Degraded),
            ("shelf", "awake", Verdict::Healthy),
            ("new", "unseen", Verdict::Progressing),
        ]
    );
    assert!(services[0].is_fine());
    let why = &services[2].why;
    assert!(why.iter().any(|it| it.contains("spec.ports[0]")), "{why:?}");
    let text = text::text(&report, Symbols::ASCII);
    assert!(text.contains("Services that can sleep in shop"), "{text}");
    assert!(text.contains("there is no Service cart"), "{text}");
}

#[test]
fn unfinished_operations_are_shown_with_their_step() {
    let operation = |name: &str, phase: &str| {
        serde_json::from_value(json!({
            "apiVersion": "neaptide.dev/v1alpha1", "kind": "Operation", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"work": "roll out", "target": {"kind": "Boat", "name": "tug"}},
            "status": {"phase": phase, "step": "pour", "progress": "1/3", "message": "not hot"},
        }))
        .unwrap()
    };
    let mut snapshot = snapshot(vec![]);
    snapshot.operations = vec![operation("tea", "Running"), operation("old", "Failed")];
    let report = report_of(&snapshot);
    assert_eq!(report.operations.len(), 1);
    let line = &report.operations[0];
    assert_eq!(
        (&*line.name, &*line.detail, line.verdict),
        ("tea", "1/3", Verdict::Progressing)
    );
    assert_eq!(line.why[0], "its current step is pour");
}

#[test]
fn unreadable_kinds_are_named_in_their_section() {
    let mut snapshot = snapshot(vec![]);
    snapshot.hidden = vec!["Node", "Deployment", "Pod"];
    let text = text::text(&report_of(&snapshot), Symbols::ASCII);
    for part in [
        "Nodes\n  !  you may not read: Node\n",
        "Workloads in shop\n  !  you may not read: Deployment\n",
        "Pods with problems\n  !  you may not read: Pod\n",
        "Services in shop\n  none\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(
        text.ends_with("! No problems in what you may read."),
        "{text}"
    );
}
