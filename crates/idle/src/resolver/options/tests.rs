use std::collections::BTreeMap;

use neap_kit::why::{Code, Coded};

use super::*;
use crate::options::tests::REQUIRED;

fn options(more: &[(&str, &str)]) -> Result<ResolverOptions, Error> {
    let environment: BTreeMap<_, _> = REQUIRED.iter().chain(more).copied().collect();
    ResolverOptions::read(&|name| environment.get(name).map(ToString::to_string))
}

#[test]
fn defaults_are_those_of_kube_elasti() {
    let options = options(&[]).unwrap();
    let header = options.host_routing.header.unwrap();
    assert_eq!(header, "host");
    assert_eq!(options.host_routing.domain, "cluster.local");
    assert_eq!(options.route_defaults.deadline, Duration::from_mins(10));
    assert_eq!(options.route_defaults.limits.requests, 100);
    assert_eq!(
        options.operator_address,
        "elasti-operator-controller-service.elasti.svc.cluster.local:8013"
    );
    assert!(!options.allow_unauthenticated_operators);
    assert_eq!(options.drain.total(), Duration::from_secs(100));
}

#[test]
fn each_variable_is_read_by_its_name() {
    let options = options(&[
        ("HEADER_FOR_HOST", "X-Envoy-Decorator-Operation"),
        ("REQ_TIMEOUT", "1"),
        ("QUEUE_SIZE", "3"),
        ("ELASTI_OPERATOR_ADDRESS", "10.0.0.1:8013"),
        ("ELASTI_DRAIN_SECONDS", "8"),
        ("WATCH_NAMESPACES", "a,b"),
        ("SENTRY_DSN", "https://hush@sentry"),
    ])
    .unwrap();
    let header = options.host_routing.header.as_ref().unwrap();
    assert_eq!(header, "x-envoy-decorator-operation");
    assert_eq!(options.route_defaults.deadline, Duration::from_secs(1));
    assert_eq!(options.route_defaults.limits.requests, 3);
    assert_eq!(options.operator_address, "10.0.0.1:8013");
    assert_eq!(options.drain.data_plane_lag, Duration::from_secs(2));
    assert_eq!(options.namespaces.len(), 2);
    let shown = format!("{options:?}");
    assert!(!shown.contains("hush"), "{shown}");
}

#[test]
fn variables_that_a_user_set_without_effect_are_listed() {
    let ignored =
        |pairs: &[(&'static str, &'static str)]| options(pairs).unwrap().ignored_variables;
    assert_eq!(ignored(&[]), [] as [&str; 0]);
    // The values of the chart.
    let usual = [
        ("OPERATOR_RETRY_DURATION", "10"),
        ("ENABLE_H2C", "false"),
        ("MAX_IDLE_PROXY_CONNS", "100"),
    ];
    assert_eq!(ignored(&usual), [] as [&str; 0]);
    let chosen = [
        ("OPERATOR_RETRY_DURATION", "60"),
        ("ENABLE_H2C", "true"),
        ("MAX_IDLE_PROXY_CONNS", "7"),
        ("CRD_CACHE_POLL_INTERVAL_MINUTES", "-1"),
        ("QUEUE_SIZE", "7"),
    ];
    assert_eq!(
        ignored(&chosen),
        [
            "OPERATOR_RETRY_DURATION",
            "MAX_IDLE_PROXY_CONNS",
            "CRD_CACHE_POLL_INTERVAL_MINUTES"
        ]
    );
}

#[test]
fn a_missing_variable_is_named() {
    for (name, _) in REQUIRED {
        let environment: BTreeMap<_, _> = REQUIRED.iter().copied().collect();
        let read = |other: &str| {
            let value = environment.get(other).filter(|_| other != name);
            value.map(ToString::to_string)
        };
        let error = ResolverOptions::read(&read).unwrap_err();
        assert!(
            matches!(error, Error::Unset { name: unset, .. } if unset == name),
            "{error}"
        );
    }
}

#[test]
fn an_invalid_value_is_named() {
    for (name, value) in [
        ("QUEUE_SIZE", "-1"),
        ("REQ_TIMEOUT", "5m"),
        ("ENABLE_H2C", "yes"),
        ("INITIAL_CAPACITY", "many"),
        ("TRAFFIC_RE_ENABLE_DURATION", "5s"),
        ("CRD_CACHE_POLL_INTERVAL_MINUTES", "1.5"),
        ("HEADER_FOR_HOST", "a b"),
    ] {
        let error = options(&[(name, value)]).unwrap_err();
        assert_eq!(error.code(), Code("NT-IDLE-0002"));
        assert!(error.to_string().contains(name), "{error}");
    }
}
