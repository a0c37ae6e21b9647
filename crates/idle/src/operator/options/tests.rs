use std::collections::BTreeMap;

use neap_kit::why::Coded;

use super::*;
use crate::options::tests::REQUIRED;

fn environment(more: &[(&str, &str)]) -> BTreeMap<String, String> {
    let all = REQUIRED.iter().chain(more);
    all.map(|(name, value)| (name.to_string(), value.to_string()))
        .collect()
}

fn operator(more: &[(&str, &str)]) -> Result<OperatorOptions, Error> {
    read(&[], more)
}

fn flags(arguments: &[&str]) -> Result<OperatorOptions, Error> {
    read(arguments, &[])
}

fn read(arguments: &[&str], more: &[(&str, &str)]) -> Result<OperatorOptions, Error> {
    let environment = environment(more);
    let arguments = arguments.iter().map(ToString::to_string);
    OperatorOptions::read(arguments, &|name| environment.get(name).cloned())
}

#[test]
fn defaults_are_those_of_kube_elasti() {
    let settings = operator(&[("PROMETHEUS_TRIGGER_SERVER_ADDRESS", "")]).unwrap();
    assert_eq!(settings.polling_interval, Duration::from_secs(30));
    assert_eq!(settings.prometheus, PrometheusDefaults::default());
    assert_eq!(settings.namespaces, BTreeSet::new());
    assert_eq!(settings.resolver_ports, PortRange::default());
    assert_eq!(settings.installation.resolver_proxy_port, 8012);
    let defaults = OperatorOptions::new(Installation::standard());
    assert_eq!(settings, defaults);
}

#[test]
fn each_variable_is_read_by_its_name() {
    let settings = operator(&[
        ("POLLING_INTERVAL", "1m30s"),
        ("PROMETHEUS_TRIGGER_SERVER_ADDRESS", "http://prom:9090"),
        ("PROMETHEUS_TRIGGER_AUTHORIZATION_HEADER", "Bearer hush"),
        ("WATCH_NAMESPACES", " a, ,b,"),
        ("ELASTI_RESOLVER_PORT_RANGE", "30000-30009"),
        ("SENTRY_DSN", "https://hush@sentry"),
        ("SENTRY_ENVIRONMENT", "test"),
    ])
    .unwrap();
    assert_eq!(settings.polling_interval, Duration::from_secs(90));
    assert_eq!(
        settings.prometheus.authorization.as_ref().unwrap(),
        "Bearer hush"
    );
    let namespaces: Vec<_> = settings.namespaces.iter().map(String::as_str).collect();
    assert_eq!(namespaces, ["a", "b", "elasti"]);
    assert_eq!(settings.resolver_ports.to_string(), "30000-30009");
    let shown = format!("{settings:?}");
    assert!(
        shown.contains("http://prom:9090") && !shown.contains("hush"),
        "{shown}"
    );
}

#[test]
fn an_authorization_header_without_a_destination_is_noticed() {
    const HEADER: (&str, &str) = ("PROMETHEUS_TRIGGER_AUTHORIZATION_HEADER", "Bearer hush");
    for (more, unused) in [
        (None, true),
        (
            Some(("PROMETHEUS_TRIGGER_SERVER_ADDRESS", "http://a")),
            false,
        ),
        (
            Some(("PROMETHEUS_TRIGGER_AUTHORIZATION_ORIGINS", "http://a")),
            false,
        ),
        (
            Some(("PROMETHEUS_TRIGGER_AUTHORIZATION_ORIGINS", "*")),
            false,
        ),
        (
            Some(("PROMETHEUS_TRIGGER_AUTHORIZATION_ORIGINS", ",")),
            true,
        ),
    ] {
        let all: Vec<_> = std::iter::once(HEADER).chain(more).collect();
        let settings = operator(&all).unwrap();
        assert_eq!(
            settings.prometheus.has_unused_authorization(),
            unused,
            "{more:?}"
        );
    }
    assert!(!operator(&[]).unwrap().prometheus.has_unused_authorization());
}

#[test]
fn an_invalid_value_is_named_with_a_remedy_and_a_code() {
    for (name, value) in [
        ("POLLING_INTERVAL", "30"),
        ("POLLING_INTERVAL", "0s"),
        ("ELASTI_OPERATOR_PORT", "0"),
        ("ELASTI_RESOLVER_PORT", "65536"),
        ("ELASTI_RESOLVER_PORT_RANGE", "20000"),
        ("ELASTI_RESOLVER_PORT_RANGE", "3000-2000"),
        ("ELASTI_RESOLVER_PORT_RANGE", "80-90"),
        ("ELASTI_RESOLVER_PORT_RANGE", "8000-9000"),
        ("PROMETHEUS_TRIGGER_SERVER_ADDRESS", "me:hush@prom:9090"),
        ("PROMETHEUS_TRIGGER_AUTHORIZATION_HEADER", "hush\nhush"),
        (
            "PROMETHEUS_TRIGGER_AUTHORIZATION_ORIGINS",
            "http://a,http://me:hush@b",
        ),
        ("ELASTI_ANNOTATION_SERVERS", "http://me:hush@b"),
        ("ELASTI_ANNOTATION_MAX_REPLICAS", "0"),
        ("ELASTI_ANNOTATION_MAX_REPLICAS", "many"),
        ("ELASTI_FAILED_SLEEP_SECONDS", "1h"),
        ("ELASTI_START_SECONDS", "-1"),
    ] {
        let error = operator(&[(name, value)]).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("{name} is ")) && text.contains("; set it to "),
            "{text}"
        );
        assert!(!text.contains("hush"), "{text}");
        assert!(is_in_catalogue(&error), "{}", error.code());
    }
}

#[test]
fn flags_are_those_of_kube_elasti() {
    let at = |port| Some(ListenAddress { host: None, port });
    let usual = flags(&[]).unwrap();
    assert_eq!((usual.metrics, usual.health), (at(8080), at(8081)));
    assert!(!usual.leader_elect && !usual.metrics_secure && !usual.enable_http2);
    // The arguments of the chart.
    let chart = [
        "--leader-elect",
        "--health-probe-bind-address=:9081",
        "--metrics-bind-address=0",
    ];
    let chart = flags(&chart).unwrap();
    assert_eq!(
        (chart.metrics, chart.health, chart.leader_elect),
        (None, at(9081), true)
    );
    let more = flags(&[
        "-zap-devel",
        "--zap-log-level",
        "debug",
        "--watch-namespace",
        "a",
        "--leader-elect=false",
        "--kubeconfig=/k",
        "-metrics-bind-address",
        "[::1]:1",
        "--allow-unauthenticated-resolvers",
    ])
    .unwrap();
    let host = Some("::1".parse().unwrap());
    assert_eq!(more.metrics, Some(ListenAddress { host, port: 1 }));
    assert!(more.namespaces.contains("a"));
    assert_eq!(more.kubeconfig.as_deref(), Some("/k"));
    assert!(!more.leader_elect && more.allow_unauthenticated_resolvers);
}

#[test]
fn a_listen_address_may_be_a_host_name_or_empty() {
    let at = |host: Option<&str>, port| {
        let host = host.map(|host| host.parse().unwrap());
        Some(ListenAddress { host, port })
    };
    for (value, metrics, health) in [
        (
            "localhost:9",
            at(Some("127.0.0.1"), 9),
            at(Some("127.0.0.1"), 9),
        ),
        ("[::1]:9", at(Some("::1"), 9), at(Some("::1"), 9)),
        (":9", at(None, 9), at(None, 9)),
        ("0", None, None),
        ("", at(None, 8080), None),
    ] {
        let flags = flags(&[
            &format!("--metrics-bind-address={value}"),
            &format!("--health-probe-bind-address={value}"),
        ]);
        let flags = flags.unwrap();
        assert_eq!(
            (flags.metrics, flags.health),
            (metrics, health),
            "{value:?}"
        );
    }
}

#[test]
fn the_variable_with_namespaces_overrides_the_flag() {
    let watched = |listed: &str| {
        let options = read(&["--watch-namespace=a"], &[("WATCH_NAMESPACES", listed)]);
        options.unwrap().namespaces
    };
    assert_eq!(watched(""), ["a", "elasti"].map(str::to_owned).into());
    assert_eq!(watched("b"), ["b", "elasti"].map(str::to_owned).into());
}

#[test]
fn invalid_flags_are_named() {
    for (words, says) in [
        (
            &["--leader-elect=maybe"][..],
            "--leader-elect is \"maybe\"; set it to true or false",
        ),
        (
            &["--metrics-bind-address=8080"],
            "--metrics-bind-address is \"8080\"",
        ),
        (
            &["--metrics-bind-address=localhost:"],
            "--metrics-bind-address is \"localhost:\"",
        ),
        (
            &["--watch-namespace"],
            "--watch-namespace is \"\"; set it to a value",
        ),
        (
            &["--leaderelect"],
            "no flag --leaderelect; did you mean --leader-elect?",
        ),
        (&["run"], "no flag run"),
        (&["---leader-elect"], "no flag ---leader-elect"),
    ] {
        let error = flags(words).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert!(is_in_catalogue(&error), "{}", error.code());
    }
}

/// Whether the area has registered the code of an error.
fn is_in_catalogue(error: &Error) -> bool {
    let mut entries = crate::area::AREA.codes.iter();
    entries.any(|entry| entry.code == error.code())
}
