use neap_kit::explain::Verdict;
use serde_json::{Value, json};

use super::*;

fn seen(objects: Vec<Value>) -> Seen {
    Seen {
        address: "https://127.0.0.1:6443".into(),
        version: "v1.36.3".into(),
        namespace: Some("shop".into()),
        objects: objects.into(),
        ..Seen::default()
    }
}

fn looked(seen: &Seen) -> Survey {
    survey(seen, "2026-01-01T12:00:00Z".parse().unwrap())
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
fn the_screen_shows_counts_addresses_and_reasons() {
    let mut seen = seen(objects());
    seen.events = vec![serde_json::from_value(json!({
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
       pod web-1-a: the container main has no image web:2: no such image
       1 of 2 pods are ready

Pods that are not well
  x  pod/web-1-a                        Running
       the container main has no image web:2: no such image

Services in shop
  x  service/web                        127.1.128.5:80 (node port 30080)
       127.1.128.5:80 is not served: ports below 1024 need root; use the node port 30080

! 3 objects are not well, or not yet. More of each: neap explain deployment/web -n shop";
    assert_eq!(words::text(&looked(&seen), Symbols::ASCII), expected);
}

#[test]
fn an_address_with_a_way_round_is_noted_and_no_trouble() {
    let service = objects().swap_remove(4);
    let slice = objects().swap_remove(5);
    let mut seen = seen(vec![service, slice]);
    let told = "127.1.128.5:80 is not served: ports below 1024 need root; use the node port 30080";
    let event = json!({
        "metadata": {}, "type": "Normal", "reason": "AddressNotServed", "message": told,
        "involvedObject": {"kind": "Service", "namespace": "shop", "name": "web"},
    });
    seen.events = vec![serde_json::from_value(event).unwrap()].into();
    let survey = looked(&seen);
    let [line] = &survey.services[..] else {
        panic!("{:?}", survey.services);
    };
    assert_eq!(
        (line.verdict, &line.why[..]),
        (Verdict::Well, &[told.to_owned()][..])
    );
    let text = words::text(&survey, Symbols::ASCII);
    assert!(text.contains("\n  !  service/web "), "{text}");
    assert!(text.contains("All that is there is well"), "{text}");
}

#[test]
fn a_set_that_is_owned_is_told_of_by_its_owner_alone() {
    let survey = looked(&seen(objects()));
    let names: Vec<_> = survey.workloads.iter().map(|line| &*line.name).collect();
    assert_eq!(names, ["web"]);
    assert!(survey.claims.is_empty());
}

#[test]
fn an_empty_cluster_is_well_and_has_no_node() {
    let survey = looked(&seen(vec![]));
    let text = words::text(&survey, Symbols::ASCII);
    assert!(
        text.contains("Nodes\n  none: pods stay where they are"),
        "{text}"
    );
    assert!(text.ends_with("ok All that is there is well."), "{text}");
}

#[test]
fn a_service_that_may_sleep_is_shown_with_what_it_does() {
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
    // What once was so and no longer is is no trouble, and what is named and not there is worth a word.
    let mut over = condition("Undecided", "Decided", "its triggers say so");
    over["status"] = "False".into();
    let unmatched = condition("Unmatched", "NoSuchPort", "spec.ports[0].port: none");
    let awake = json!({"observedGeneration": 1, "mode": "serve",
        "conditions": [condition("Ready", "Awake", "its pods answer"), over, unmatched]});
    let survey = looked(&seen(vec![
        service("web", asleep),
        service("cart", stalled),
        service("shelf", awake),
        service("new", Value::Null),
    ]));
    let shown: Vec<_> = survey
        .sleepers
        .iter()
        .map(|line| (&*line.name, &*line.detail, line.verdict))
        .collect();
    assert_eq!(
        shown,
        [
            ("web", "asleep for 3h", Verdict::Well),
            ("cart", "stalled", Verdict::Troubled),
            ("shelf", "awake", Verdict::Well),
            ("new", "unseen", Verdict::OnItsWay),
        ]
    );
    assert!(survey.sleepers[0].is_fine());
    let why = &survey.sleepers[2].why;
    assert!(why.iter().any(|it| it.contains("spec.ports[0]")), "{why:?}");
    let text = words::text(&survey, Symbols::ASCII);
    assert!(text.contains("Services that may sleep in shop"), "{text}");
    assert!(text.contains("there is no Service cart"), "{text}");
}

#[test]
fn operations_under_way_are_shown_with_their_step() {
    let operation = |name: &str, phase: &str| {
        serde_json::from_value(json!({
            "apiVersion": "neaptide.dev/v1alpha1", "kind": "Operation", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"work": "roll out", "target": {"kind": "Boat", "name": "tug"}},
            "status": {"phase": phase, "step": "pour", "progress": "1/3", "message": "not hot"},
        }))
        .unwrap()
    };
    let mut seen = seen(vec![]);
    seen.operations = vec![operation("tea", "Running"), operation("old", "Failed")];
    let survey = looked(&seen);
    assert_eq!(survey.operations.len(), 1);
    let line = &survey.operations[0];
    assert_eq!(
        (&*line.name, &*line.detail, line.verdict),
        ("tea", "1/3", Verdict::OnItsWay)
    );
    assert_eq!(line.why[0], "it is at its step pour");
}

#[test]
fn what_may_not_be_read_is_said_where_it_would_be() {
    let mut seen = seen(vec![]);
    seen.hidden = vec!["Node", "Deployment", "Pod"];
    let text = words::text(&looked(&seen), Symbols::ASCII);
    for part in [
        "Nodes\n  !  you may not read: Node\n",
        "Workloads in shop\n  !  you may not read: Deployment\n",
        "Pods that are not well\n  !  you may not read: Pod\n",
        "Services in shop\n  none\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(text.ends_with("! All that you may see is well."), "{text}");
}
