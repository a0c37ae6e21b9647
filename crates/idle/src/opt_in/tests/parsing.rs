//! What annotations say, as values.

use super::*;

fn parse_enabled(rows: &[(&str, &str)]) -> Result<Option<OptIn>, InvalidAnnotation> {
    let mut annotations = BTreeMap::from([(ENABLED.to_owned(), "true".to_owned())]);
    let row = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    annotations.extend(rows.iter().map(row));
    parse(&annotations)
}

fn spec(rows: &[(&str, &str)]) -> Value {
    let spec: ElastiServiceSpec = parse_enabled(rows).unwrap().unwrap().spec;
    let mut spec = serde_json::to_value(spec).unwrap();
    for name in ["service", "scaleTargetRef"] {
        spec.as_object_mut().unwrap().remove(name);
    }
    spec
}

#[test]
fn annotations_cover_the_spec_of_an_elasti_service() {
    assert_eq!(parse(&BTreeMap::new()), Ok(None));
    assert_eq!(
        parse_enabled(&[(ENABLED, "false"), (COOLDOWN, "x")]),
        Ok(None)
    );
    let requests = json!([{"type": "requests"}]);
    assert_eq!(
        spec(&[]),
        json!({"cooldownPeriod": 900, "triggers": requests})
    );
    let all = spec(&[
        (COOLDOWN, "2m"),
        (MIN_REPLICAS, "2"),
        (QUERY, "sum(rate(requests[1m]))"),
        (THRESHOLD, "0.5"),
        (SERVER_ADDRESS, "http://prometheus:9090"),
        (AUTOSCALER, "keda/scale-web"),
        (SCHEDULE, "0 20 * * *"),
        (SCHEDULE_DURATION, "10h"),
        (TIME_ZONE, "Europe/Berlin"),
        (DEPENDENCIES, "api, store"),
        (OBSERVE_ONLY, "true"),
        (WAITING_PAGE, "true"),
    ]);
    let metadata = json!({
        "query": "sum(rate(requests[1m]))", "threshold": "0.5",
        "serverAddress": "http://prometheus:9090",
    });
    let wanted = json!({
        "minTargetReplicas": 2, "cooldownPeriod": 120,
        "triggers": [{"type": "prometheus", "metadata": metadata}],
        "autoscaler": {"type": "keda", "name": "scale-web"},
        "enabledPeriod": {"schedule": "0 20 * * *", "duration": "10h", "timeZone": "Europe/Berlin"},
        "dependencies": ["api", "store"], "observeOnly": true, "waitingPage": true,
    });
    assert_eq!(all, wanted);
    let target = |text| {
        parse_enabled(&[(TARGET, text)])
            .unwrap()
            .unwrap()
            .target
            .unwrap()
    };
    assert_eq!(target("StatefulSet/db").api_version, "apps/v1");
    let rollout = target("argoproj.io/v1alpha1/Rollout/web");
    assert_eq!(
        (&*rollout.api_version, &*rollout.kind),
        ("argoproj.io/v1alpha1", "Rollout")
    );
}

#[test]
fn invalid_annotations_are_refused_by_name() {
    for (name, value) in [
        (ENABLED, "yes"),
        (COOLDOWN, "soon"),
        (COOLDOWN, "0s"),
        (COOLDOWN, "169h"),
        (MIN_REPLICAS, "0"),
        (THRESHOLD, "1"),
        (SERVER_ADDRESS, "http://prometheus"),
        (AUTOSCALER, "vpa/web"),
        (AUTOSCALER, "keda/"),
        (TIME_ZONE, "Europe/Berlin"),
        (TARGET, "web"),
        (TARGET, "Deployment/"),
        (OBSERVE_ONLY, "perhaps"),
        ("idle.neaptide.dev/cooldwon", "5m"),
    ] {
        let invalid = parse_enabled(&[(name, value)]).unwrap_err();
        assert_eq!((&*invalid.annotation, &*invalid.value), (name, value));
        assert!(
            invalid.to_string().starts_with("metadata.annotations["),
            "{invalid}"
        );
    }
    assert!(parse_enabled(&[(QUERY, "up"), (THRESHOLD, "many")]).is_err());
    assert!(parse_enabled(&[(SCHEDULE, "0 1 * * *"), (SCHEDULE_DURATION, "long")]).is_err());
}
