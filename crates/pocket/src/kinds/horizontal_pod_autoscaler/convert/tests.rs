use super::*;

fn v2() -> Value {
    json!({
        "kind": "HorizontalPodAutoscaler",
        "apiVersion": "autoscaling/v2",
        "metadata": {"name": "a", "annotations": {"x": "y"}},
        "spec": {
            "maxReplicas": 3,
            "metrics": [
                {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
                {"type": "Object", "object": {
                    "metric": {"name": "rps"},
                    "describedObject": {"kind": "Service", "name": "main", "apiVersion": "v1"},
                    "target": {"type": "AverageValue", "averageValue": "10k"}}},
                {"type": "External", "external": {
                    "metric": {"name": "q", "selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
                    "target": {"type": "Value", "value": "30"}}},
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
            ],
            "behavior": {"scaleDown": {"selectPolicy": "Max", "tolerance": "100m",
                "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}},
        },
        "status": {
            "desiredReplicas": 2,
            "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": null}],
            "currentMetrics": [
                {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 10, "averageValue": "5m"}}},
                {"type": "Pods", "pods": {"metric": {"name": "p"}, "current": {"averageValue": "1k"}}},
            ],
        },
    })
}

#[test]
fn what_v1_has_no_field_for_is_in_annotations() {
    let v1 = to_v1(v2());
    assert_eq!(v1["apiVersion"], "autoscaling/v1");
    assert_eq!(
        v1["spec"],
        json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 60})
    );
    let seen =
        json!({"currentReplicas": 0, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 10});
    assert_eq!(v1["status"], seen);
    let notes = &v1["metadata"]["annotations"];
    for (key, note) in [
        ("x", "y"),
        (
            METRICS,
            r#"[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}},{"type":"Object","object":{"target":{"kind":"Service","name":"main","apiVersion":"v1"},"metricName":"rps","targetValue":"0","averageValue":"10k"}},{"type":"External","external":{"metricName":"q","metricSelector":{"matchExpressions":[{"key":"a","operator":"Exists"}]},"targetValue":"30"}}]"#,
        ),
        (
            BEHAVIOR,
            r#"{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max","Policies":[{"Type":"Percent","Value":100,"PeriodSeconds":15}],"Tolerance":"100m"}}"#,
        ),
        (
            CURRENT,
            r#"[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":10,"currentAverageValue":"5m"}},{"type":"Pods","pods":{"metricName":"p","currentAverageValue":"1k"}}]"#,
        ),
        (
            CONDITIONS,
            r#"[{"type":"AbleToScale","status":"True","lastTransitionTime":null}]"#,
        ),
    ] {
        assert_eq!(notes[key], note, "{key}");
    }
}

#[test]
fn what_was_read_in_v1_can_be_written_back() {
    assert_eq!(to_v2(to_v1(v2())), v2());
}

#[test]
fn a_share_of_the_cpu_is_a_metric() {
    let v1 = json!({"spec": {"targetCPUUtilizationPercentage": 50},
        "status": {"currentReplicas": 0, "currentCPUUtilizationPercentage": 44}});
    let v2 = to_v2(v1);
    assert_eq!(v2["spec"], json!({"metrics": [wanted_share(&json!(50))]}));
    let seen = json!({"currentMetrics": [seen_share(&json!(44))]});
    assert_eq!(v2["status"], seen);
}

#[test]
fn unreadable_notes_are_dropped() {
    let v1 = json!({"metadata": {"annotations": {(METRICS): "xx", (BEHAVIOR): "[]"}}, "spec": {}});
    let v2 = to_v2(v1);
    assert_eq!(v2["metadata"], json!({}));
    assert_eq!(v2["spec"], json!({}));
}
