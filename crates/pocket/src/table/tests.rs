//! What kubectl users see, kind by kind.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn now() -> Timestamp {
    "2026-05-01T12:00:00Z".parse().unwrap()
}

/// The object with a name and an age of three hours.
fn born(mut object: Value) -> Value {
    let metadata = json!({"name": "x", "creationTimestamp": "2026-05-01T09:00:00Z"});
    let given = object["metadata"].take();
    object["metadata"] = metadata;
    for (key, value) in given.as_object().into_iter().flatten() {
        object["metadata"][key] = value.clone();
    }
    object
}

fn cells(resource: &str, object: Value) -> Vec<Value> {
    let (place, plural) = resource.rsplit_once('/').unwrap();
    let (group, version) = place.rsplit_once('/').unwrap_or(("", place));
    Printer::builtin(group, version, plural).cells(&born(object), now())
}

/// The cells as kubectl shows them, without the first.
fn shown(resource: &str, object: Value) -> String {
    let show = |cell: Value| match cell {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let cells = cells(resource, object).into_iter().skip(1).map(show);
    cells.collect::<Vec<_>>().join(" | ")
}

#[test]
fn every_kind_has_a_cell_for_every_column() {
    assert!(columns::all().len() > 40);
    for (resource, columns) in columns::all() {
        let (place, plural) = resource.rsplit_once('/').unwrap();
        let (group, version) = place.rsplit_once('/').unwrap_or(("", place));
        let printer = Printer::builtin(group, version, plural);
        assert_eq!(printer.columns(), columns.as_slice(), "{resource}");
        let cells = printer.cells(&json!({}), now());
        assert_eq!(cells.len(), columns.len(), "{resource}");
    }
}

#[test]
fn a_kind_without_columns_prints_name_and_age() {
    assert_eq!(shown("tide.dev/v1/boats", json!({})), "3h");
}

fn pod(status: Value) -> Value {
    json!({
        "spec": {"nodeName": "n1", "containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]},
        "status": status,
    })
}

/// READY, STATUS and RESTARTS.
fn pod_line(pod: Value) -> String {
    let cells = cells("v1/pods", pod);
    let text = |index: usize| cells[index].as_str().unwrap_or_default().to_owned();
    format!("{} {} {}", text(1), text(2), text(3))
}

#[test]
fn a_pod_shows_the_reason_that_explains_it_best() {
    let running = json!({"ready": true, "state": {"running": {}}});
    let done = json!({"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}});
    let table = [
        (json!({"phase": "Pending"}), "0/2 Pending 0"),
        (
            json!({"phase": "Failed", "reason": "Evicted"}),
            "0/2 Evicted 0",
        ),
        (
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
            "0/2 SchedulingGated 0",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [running, running]}),
            "2/2 Running 0",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [
                {"restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                 "lastState": {"terminated": {"finishedAt": "2026-05-01T11:57:00Z"}}}, running]}),
            "1/2 CrashLoopBackOff 4 (3m ago)",
        ),
        (
            json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}),
            "0/2 ExitCode:3 0",
        ),
        (
            json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 137, "signal": 9}}}]}),
            "0/2 Signal:9 0",
        ),
        (
            json!({"phase": "Succeeded", "containerStatuses": [done, done]}),
            "0/2 Completed 0",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [done, running], "conditions": [{"type": "Ready", "status": "True"}]}),
            "1/2 Running 0",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [done, running]}),
            "1/2 NotReady 0",
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "restartCount": 1, "state": {"running": {}}}]}),
            "0/2 Init:0/1 1",
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "PodInitializing"}}}]}),
            "0/2 Init:0/1 0",
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 2}}}]}),
            "0/2 Init:ExitCode:2 0",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [running, running],
                "initContainerStatuses": [{"name": "i", "restartCount": 7, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]}),
            "2/2 Running 0",
        ),
    ];
    for (status, expected) in table {
        assert_eq!(pod_line(pod(status.clone())), expected, "{status}");
    }
}

#[test]
fn a_sidecar_counts_as_a_container() {
    let mut object = pod(json!({
        "phase": "Running",
        "initContainerStatuses": [{"name": "i", "ready": true, "started": true, "restartCount": 2, "state": {"running": {}}}],
        "containerStatuses": [{"ready": true, "state": {"running": {}}}],
    }));
    object["spec"]["initContainers"][0]["restartPolicy"] = json!("Always");
    assert_eq!(pod_line(object), "2/3 Running 2");
}

#[test]
fn a_deleted_pod_is_terminating_until_it_is_done() {
    for (status, expected) in [
        (json!({"phase": "Running"}), "0/2 Terminating 0"),
        (json!({"phase": "Succeeded"}), "0/2 Succeeded 0"),
        (
            json!({"phase": "Running", "reason": "NodeLost"}),
            "0/2 Unknown 0",
        ),
    ] {
        let mut object = pod(status);
        object["metadata"] = json!({"deletionTimestamp": "2026-05-01T11:00:00Z"});
        assert_eq!(pod_line(object), expected);
    }
}

#[test]
fn a_wide_pod_says_where_it_is() {
    let mut object = pod(json!({
        "podIPs": [{"ip": "10.0.0.7"}],
        "conditions": [{"type": "lit", "status": "True"}],
    }));
    object["spec"]["readinessGates"] = json!([{"conditionType": "lit"}, {"conditionType": "fed"}]);
    let cells = cells("v1/pods", object);
    assert_eq!(
        cells[4..],
        [
            json!("3h"),
            json!("10.0.0.7"),
            json!("n1"),
            json!("<none>"),
            json!("1/2")
        ]
    );
}

#[test]
fn workloads_read_as_kubectl_users_know_them() {
    let template = json!({"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}]}});
    let selector = json!({"matchLabels": {"app": "x"}, "matchExpressions": [
        {"key": "t", "operator": "In", "values": ["a", "b"]}, {"key": "old", "operator": "DoesNotExist"}]});
    let spec = json!({"replicas": 3, "template": template, "selector": selector});
    let table = [
        (
            "apps/v1/deployments",
            json!({"spec": spec, "status": {"readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2}}),
            "2/3 | 1 | 2 | 3h | a,b | a:1,b:2 | app=x,t in (a,b),!old",
        ),
        (
            "apps/v1/replicasets",
            json!({"spec": spec, "status": {"replicas": 3, "readyReplicas": 2}}),
            "3 | 3 | 2 | 3h | a,b | a:1,b:2 | app=x,t in (a,b),!old",
        ),
        (
            "apps/v1/statefulsets",
            json!({"spec": spec, "status": {}}),
            "0/3 | 3h | a,b | a:1,b:2",
        ),
        (
            "apps/v1/daemonsets",
            json!({"spec": spec, "status": {"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3,
                "updatedNumberScheduled": 2, "numberAvailable": 1}}),
            "5 | 4 | 3 | 2 | 1 | <none> | 3h | a,b | a:1,b:2 | app=x,t in (a,b),!old",
        ),
        (
            "batch/v1/jobs",
            json!({"spec": {"completions": 4, "template": template}, "status": {"succeeded": 4,
                "startTime": "2026-05-01T11:00:00Z", "completionTime": "2026-05-01T11:00:42Z",
                "conditions": [{"type": "Complete", "status": "True"}]}}),
            "Complete | 4/4 | 42s | 3h | a,b | a:1,b:2 | <none>",
        ),
        (
            "batch/v1/jobs",
            json!({"spec": {"parallelism": 3, "template": template}, "status": {"startTime": "2026-05-01T11:59:00Z"}}),
            "Running | 0/1 of 3 | 60s | 3h | a,b | a:1,b:2 | <none>",
        ),
        (
            "batch/v1/cronjobs",
            json!({"spec": {"schedule": "* * * * *", "suspend": false, "jobTemplate": {"spec": {"template": template}}},
                "status": {"active": [{}], "lastScheduleTime": "2026-05-01T11:59:30Z"}}),
            "* * * * * | <none> | False | 1 | 30s | 3h | a,b | a:1,b:2 | <none>",
        ),
        (
            "apps/v1/controllerrevisions",
            json!({"revision": 2, "metadata": {"ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "controller": true}]}}),
            "statefulset.apps/web | 2 | 3h",
        ),
    ];
    for (resource, object, expected) in table {
        assert_eq!(shown(resource, object), expected, "{resource}");
    }
}

#[test]
fn autoscalers_show_what_they_measure() {
    let target = json!({"kind": "Deployment", "name": "d"});
    let v2 = |metrics: Value, current: Value| {
        json!({
            "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9, "metrics": metrics},
            "status": {"currentReplicas": 2, "currentMetrics": current}})
    };
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}});
    let seen = json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 12, "averageValue": "30m"}}});
    let pods = json!({"type": "Pods", "pods": {"target": {"averageValue": "10"}}});
    let queue = json!({"type": "External", "external": {"target": {"averageValue": "5"}}});
    let old = json!({"spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9,
        "targetCPUUtilizationPercentage": 50}, "status": {"currentReplicas": 2}});
    let three = v2(json!([cpu, pods, queue]), json!([seen]));
    let table = [
        ("v2", v2(json!([]), json!([])), "<none>"),
        ("v2", v2(json!([cpu]), json!([])), "cpu: <unknown>/80%"),
        ("v2", v2(json!([cpu]), json!([seen])), "cpu: 12%/80%"),
        ("v2", three, "cpu: 12%/80%, <unknown>/10 + 1 more..."),
        ("v2", v2(json!([queue]), json!([])), "<unknown>/5 (avg)"),
        ("v1", old, "cpu: <unknown>/50%"),
    ];
    for (version, object, targets) in table {
        let resource = format!("autoscaling/{version}/horizontalpodautoscalers");
        let expected = format!("Deployment/d | {targets} | 1 | 9 | 2 | 3h");
        assert_eq!(shown(&resource, object), expected);
    }
}

#[test]
fn a_replication_controller_has_a_plain_selector() {
    let object = json!({"spec": {"replicas": 2, "selector": {"a": "b"}}});
    let line = "2 | 0 | 0 | 3h | <none> | <none> | a=b";
    assert_eq!(shown("v1/replicationcontrollers", object), line);
}

#[test]
fn the_network_reads_as_kubectl_users_know_it() {
    let ports = json!([{"port": 80, "protocol": "TCP"}, {"port": 53, "nodePort": 30053, "protocol": "UDP"}]);
    let addresses = |n: u8| {
        (1..=n)
            .map(|i| json!({"ip": format!("10.0.0.{i}")}))
            .collect::<Vec<_>>()
    };
    let table = [
        (
            "v1/services",
            json!({"spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1", "ports": ports, "selector": {"a": "b"}}}),
            "ClusterIP | 10.0.0.1 | <none> | 80/TCP,53:30053/UDP | 3h | a=b",
        ),
        (
            "v1/services",
            json!({"spec": {"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"]}}),
            "LoadBalancer | 10.0.0.1 | <pending> | <none> | 3h | <none>",
        ),
        (
            "v1/services",
            json!({"spec": {"type": "LoadBalancer", "externalIPs": ["2.2.2.2"]}, "status": {"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}}}),
            "LoadBalancer | <none> | 1.1.1.1,2.2.2.2 | <none> | 3h | <none>",
        ),
        (
            "v1/services",
            json!({"spec": {"type": "ExternalName", "externalName": "tide.dev"}}),
            "ExternalName | <none> | tide.dev | <none> | 3h | <none>",
        ),
        ("v1/endpoints", json!({}), "<none> | 3h"),
        (
            "v1/endpoints",
            json!({"subsets": [{"addresses": addresses(4), "ports": [{"port": 80}]}]}),
            "10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 1 more... | 3h",
        ),
        (
            "discovery.k8s.io/v1/endpointslices",
            json!({"addressType": "IPv4", "ports": [{"port": 80}, {}], "endpoints": [{"addresses": ["10.0.0.1"]}]}),
            "IPv4 | 80,* | 10.0.0.1 | 3h",
        ),
        (
            "networking.k8s.io/v1/ingresses",
            json!({"spec": {"rules": [{"host": "a.dev"}], "tls": [{}]}}),
            "<none> | a.dev |  | 80, 443 | 3h",
        ),
        (
            "networking.k8s.io/v1/networkpolicies",
            json!({"spec": {"podSelector": {}}}),
            "<none> | 3h",
        ),
    ];
    for (resource, object, expected) in table {
        assert_eq!(shown(resource, object), expected, "{resource}");
    }
}

#[test]
fn cluster_storage_and_access_read_as_kubectl_users_know_them() {
    let table = [
        (
            "v1/nodes",
            json!({"metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge"}},
                "spec": {"unschedulable": true}, "status": {"conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"kubeletVersion": "v1.36.0"}, "addresses": [{"type": "InternalIP", "address": "10.1.1.1"}]}}),
            "Ready,SchedulingDisabled | edge,worker | 3h | v1.36.0 | 10.1.1.1 | <none> | <unknown> | <unknown> | <unknown>",
        ),
        (
            "v1/namespaces",
            json!({"status": {"phase": "Active"}}),
            "Active | 3h",
        ),
        (
            "v1/configmaps",
            json!({"data": {"a": "b"}, "binaryData": {"c": ""}}),
            "2 | 3h",
        ),
        (
            "v1/secrets",
            json!({"type": "Opaque", "data": {"a": ""}}),
            "Opaque | 1 | 3h",
        ),
        ("v1/serviceaccounts", json!({}), "3h"),
        (
            "coordination.k8s.io/v1/leases",
            json!({"spec": {"holderIdentity": "me"}}),
            "me | 3h",
        ),
        (
            "rbac.authorization.k8s.io/v1/roles",
            json!({}),
            "2026-05-01T09:00:00Z",
        ),
        (
            "apiextensions.k8s.io/v1/customresourcedefinitions",
            json!({}),
            "2026-05-01T09:00:00Z",
        ),
        (
            "rbac.authorization.k8s.io/v1/rolebindings",
            json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "ann"},
                {"kind": "ServiceAccount", "namespace": "n", "name": "s"}]}),
            "Role/r | 3h | ann |  | n/s",
        ),
        (
            "v1/persistentvolumeclaims",
            json!({"spec": {"volumeName": "v", "storageClassName": "fast"}, "status": {"phase": "Bound",
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}}),
            "Bound | v | 1Gi | RWO | fast | <unset> | 3h | <unset>",
        ),
        (
            "v1/persistentvolumes",
            json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "n", "name": "c"}, "volumeMode": "Filesystem"},
                "status": {"phase": "Bound"}}),
            "1Gi | RWO,RWX | Retain | Bound | n/c |  | <unset> |  | 3h | Filesystem",
        ),
        (
            "v1/resourcequotas",
            json!({"status": {"hard": {"limits.cpu": "2", "pods": "4"}, "used": {"limits.cpu": "1", "pods": "3"}}}),
            "pods: 3/4 | limits.cpu: 1/2 | 3h",
        ),
        (
            "policy/v1/poddisruptionbudgets",
            json!({"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}}),
            "50% | N/A | 1 | 3h",
        ),
        (
            "scheduling.k8s.io/v1/priorityclasses",
            json!({"value": 7, "globalDefault": true}),
            "7 | true | 3h | PreemptLowerPriority",
        ),
        (
            "storage.k8s.io/v1/storageclasses",
            json!({"provisioner": "p"}),
            "p | Delete | Immediate | false | 3h",
        ),
        (
            "admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            json!({"webhooks": [{}, {}]}),
            "2 | 3h",
        ),
    ];
    for (resource, object, expected) in table {
        assert_eq!(shown(resource, object), expected, "{resource}");
    }
}

#[test]
fn the_default_storage_class_says_so() {
    let annotations = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    let object = json!({"metadata": {"annotations": annotations}});
    assert_eq!(
        cells("storage.k8s.io/v1/storageclasses", object)[0],
        "x (default)"
    );
}

#[test]
fn both_event_apis_print_alike() {
    let old = json!({
        "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"}, "type": "Normal", "reason": "Started",
        "message": "up\n", "source": {"component": "kubelet", "host": "n1"}, "count": 3,
        "firstTimestamp": "2026-05-01T11:00:00Z", "lastTimestamp": "2026-05-01T11:59:00Z",
    });
    let new = json!({
        "regarding": {"kind": "Pod", "name": "p", "fieldPath": "spec"}, "type": "Normal", "reason": "Started",
        "note": "up", "reportingController": "kubelet", "reportingInstance": "n1",
        "eventTime": "2026-05-01T11:00:00.000000Z", "series": {"count": 3, "lastObservedTime": "2026-05-01T11:59:00.000000Z"},
    });
    let line = "Normal | Started | pod/p | spec | kubelet, n1 | up | 60m | 3 | x";
    for (resource, object) in [("v1/events", old), ("events.k8s.io/v1/events", new)] {
        assert_eq!(cells(resource, object.clone())[0], "60s");
        assert_eq!(shown(resource, object), line, "{resource}");
    }
}

fn column(kind: &str, key: &'static str) -> Column {
    Column {
        definition: Definition {
            name: key.into(),
            kind: kind.into(),
            format: String::new(),
            description: String::new(),
            priority: 0,
        },
        path: Box::new(move |object| object["spec"].get(key).cloned()),
    }
}

#[test]
fn custom_columns_follow_their_declared_types() {
    let printer = Printer::custom(vec![
        column("string", "a"),
        column("string", "b"),
        column("integer", "c"),
        column("integer", "d"),
        column("boolean", "e"),
        column("date", "f"),
        column("number", "g"),
        column("string", "missing"),
    ]);
    let object = born(
        json!({"spec": {"a": "t", "b": [1], "c": 2.0, "d": "two", "e": "true",
        "f": "2026-05-01T11:00:00Z", "g": 1.5}}),
    );
    let cells = printer.cells(&object, now());
    assert_eq!(
        cells,
        json!(["x", "t", "[1]", 2, null, null, "60m", 1.5, null])
            .as_array()
            .unwrap()
            .as_slice()
    );
    assert_eq!(printer.columns().len(), cells.len());
}

#[test]
fn a_table_carries_columns_rows_and_what_was_asked_for() {
    let printer = Printer::builtin("", "v1", "configmaps");
    let object = born(json!({"kind": "ConfigMap", "data": {}}));
    let metadata = json!({"resourceVersion": "7"});
    let table = printer.table([&object], now(), Include::default(), metadata.clone(), true);
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["metadata"], metadata);
    assert_eq!(table["columnDefinitions"][1]["name"], "Data");
    assert_eq!(table["columnDefinitions"][0]["format"], "name");
    assert_eq!(table["rows"][0]["cells"], json!(["x", 0, "3h"]));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(table["rows"][0]["object"]["metadata"]["name"], "x");

    let watched = printer.table([&object], now(), Include::None, json!({}), false);
    assert_eq!(watched["columnDefinitions"], json!([]));
    assert_eq!(watched["rows"][0].get("object"), None);
    assert_eq!(
        printer.row(&object, now(), Include::Object)["object"],
        object
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec![
        "metadata",
        "spec",
        "status",
        "name",
        "conditions",
        "containers",
        "containerStatuses",
        "state",
        "terminated",
        "ports",
        "subsets",
        "addresses",
        "metrics",
        "template",
        "type",
        "kind",
        "subjects",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z/]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(keys.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_object_however_strange_fails_to_print(object in any_json()) {
        for (resource, columns) in columns::all() {
            let (place, plural) = resource.rsplit_once('/').unwrap();
            let (group, version) = place.rsplit_once('/').unwrap_or(("", place));
            let printer = Printer::builtin(group, version, plural);
            prop_assert_eq!(printer.cells(&object, now()).len(), columns.len());
        }
    }
}
