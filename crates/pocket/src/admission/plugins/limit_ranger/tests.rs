use super::*;

#[expect(
    clippy::needless_pass_by_value,
    reason = "cases read better with the literal in place"
)]
fn range(limits: Value) -> Vec<Value> {
    vec![json!({"spec": {"limits": limits}})]
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "cases read better with the literal in place"
)]
fn pod(resources: Value) -> Value {
    json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": resources}]}})
}

#[test]
fn containers_that_say_nothing_get_the_defaults() {
    let ranges = range(
        json!([{"type": "Container", "default": {"cpu": "500m", "memory": "512Mi"}, "defaultRequest": {"cpu": "100m", "memory": "512Mi"}}]),
    );
    for (given, filled, note) in [
        (
            json!({}),
            json!({"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "512Mi"}}),
            "cpu, memory request for container c; cpu, memory limit for container c",
        ),
        (
            json!({"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}),
            json!({"limits": {"cpu": "2", "memory": "512Mi"}, "requests": {"cpu": "2", "memory": "512Mi"}}),
            "memory request for container c; memory limit for container c",
        ),
        (
            json!({"requests": {"cpu": "50m"}}),
            json!({"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "50m", "memory": "512Mi"}}),
            "memory request for container c; cpu, memory limit for container c",
        ),
    ] {
        let mut pod = pod(given);
        fill(&mut pod, &ranges);
        assert_eq!(pod["spec"]["containers"][0]["resources"], filled);
        assert_eq!(
            pod["metadata"]["annotations"][NOTE],
            format!("LimitRanger plugin set: {note}")
        );
    }
    let mut untouched = pod(json!({}));
    fill(
        &mut untouched,
        &range(json!([{"type": "Pod", "max": {"cpu": "1"}}])),
    );
    assert_eq!(untouched, pod(json!({})));
}

#[test]
fn pods_outside_of_their_bounds_are_told_how() {
    let container = json!([{"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "1", "memory": "1Gi"}, "maxLimitRequestRatio": {"cpu": "4"}}]);
    let whole = json!([{"type": "Pod", "min": {"cpu": "200m"}, "max": {"cpu": "1", "memory": "1Gi"}, "maxLimitRequestRatio": {"cpu": "2"}}]);
    let both = |limits: Value| json!({"limits": limits, "requests": limits});
    for (limits, resources, refusals) in [
        (
            &container,
            json!({"requests": {"cpu": "50m", "memory": "1Gi"}, "limits": {"cpu": "60m", "memory": "1Gi"}}),
            vec!["minimum cpu usage per Container is 100m, but request is 50m"],
        ),
        (
            &container,
            both(json!({"cpu": "2", "memory": "2Gi"})),
            vec![
                "maximum cpu usage per Container is 1, but limit is 2",
                "maximum memory usage per Container is 1Gi, but limit is 2Gi",
            ],
        ),
        (
            &container,
            json!({"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "900m", "memory": "1Gi"}}),
            vec![
                "cpu max limit to request ratio per Container is 4, but provided ratio is 9.000000",
            ],
        ),
        (
            &whole,
            json!({}),
            vec![
                "minimum cpu usage per Pod is 200m.  No request is specified",
                "maximum cpu usage per Pod is 1.  No limit is specified",
                "maximum memory usage per Pod is 1Gi.  No limit is specified",
                "cpu max limit to request ratio per Pod is 2, but no request is specified or request is 0",
            ],
        ),
        (
            &whole,
            both(json!({"cpu": "500m", "memory": "1Gi"})),
            vec![],
        ),
        (
            &whole,
            json!({"requests": {"cpu": "500m"}}),
            vec![
                "maximum cpu usage per Pod is 1.  No limit is specified",
                "maximum memory usage per Pod is 1Gi.  No limit is specified",
                "cpu max limit to request ratio per Pod is 2, but no limit is specified or limit is 0",
            ],
        ),
    ] {
        let found = complaints("pods", &pod(resources.clone()), &range(limits.clone()));
        assert_eq!(found, refusals, "{resources}");
    }
}

#[test]
fn claims_have_bounds_too() {
    let ranges = range(
        json!([{"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}]),
    );
    let claim = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
    let refusals = |size: &str| complaints("persistentvolumeclaims", &claim(size), &ranges);
    assert_eq!(
        refusals("500Mi"),
        ["minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"]
    );
    assert_eq!(
        refusals("3Gi"),
        ["maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"]
    );
    assert_eq!(refusals("1Gi"), [""; 0]);
}
