//! One line for each kind with columns of its own.

use serde_json::{Value, json};

use super::{cells, shown};

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
fn the_cluster_and_access_read_as_kubectl_users_know_them() {
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
    ];
    for (resource, object, expected) in table {
        assert_eq!(shown(resource, object), expected, "{resource}");
    }
}

#[test]
fn storage_and_limits_read_as_kubectl_users_know_them() {
    let table = [
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
