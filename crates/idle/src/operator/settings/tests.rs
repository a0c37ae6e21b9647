use std::collections::BTreeMap;

use neap_kit::why::find;

use super::*;

const NEEDED: [(&str, &str); 10] = [
    ("ELASTI_RESOLVER_NAMESPACE", "elasti"),
    ("ELASTI_RESOLVER_DEPLOYMENT_NAME", "elasti-resolver"),
    ("ELASTI_RESOLVER_SERVICE_NAME", "elasti-resolver-service"),
    ("ELASTI_RESOLVER_PORT", "8013"),
    ("ELASTI_RESOLVER_PROXY_PORT", "8012"),
    ("ELASTI_OPERATOR_NAMESPACE", "elasti"),
    (
        "ELASTI_OPERATOR_DEPLOYMENT_NAME",
        "elasti-operator-controller-manager",
    ),
    (
        "ELASTI_OPERATOR_SERVICE_NAME",
        "elasti-operator-controller-service",
    ),
    ("ELASTI_OPERATOR_PORT", "8013"),
    ("KUBERNETES_CLUSTER_DOMAIN", "cluster.local"),
];

fn environment(more: &[(&str, &str)]) -> BTreeMap<String, String> {
    let all = NEEDED.iter().chain(more);
    all.map(|(name, value)| (name.to_string(), value.to_string()))
        .collect()
}

fn operator(more: &[(&str, &str)]) -> Result<Settings, Error> {
    let environment = environment(more);
    Settings::read(&|name| environment.get(name).cloned(), Flags::default())
}

fn resolver(more: &[(&str, &str)]) -> Result<ResolverSettings, Error> {
    let environment = environment(more);
    ResolverSettings::read(&|name| environment.get(name).cloned())
}

fn flags(words: &[&str]) -> Result<Flags, Error> {
    Flags::read(words.iter().map(ToString::to_string))
}

#[test]
fn without_more_the_defaults_are_those_of_the_original() {
    let settings = operator(&[("PROMETHEUS_TRIGGER_SERVER_ADDRESS", "")]).unwrap();
    assert_eq!(settings.polling_interval, Duration::from_secs(30));
    assert_eq!(settings.prometheus, Defaults::default());
    assert_eq!(settings.namespaces, BTreeSet::new());
    assert_eq!(settings.resolver_ports, 20_000..=29_999);
    assert_eq!(settings.places.resolver_proxy_port, 8012);
    let settings = resolver(&[]).unwrap();
    let seconds = |duration: Duration| duration.as_secs();
    assert_eq!(settings.header_for_host, "host");
    assert_eq!(seconds(settings.request_timeout), 600);
    assert_eq!(seconds(settings.queue_retry), 5);
    assert_eq!(settings.queue_size, 100);
    assert_eq!(settings.max_queue_concurrency, 10);
    assert_eq!(settings.initial_capacity, 100);
    assert_eq!(seconds(settings.traffic_re_enable), 30);
    assert_eq!(seconds(settings.traffic_disable_grace), 15);
    assert_eq!(seconds(settings.operator_retry), 30);
    assert_eq!(settings.max_idle_connections, 1000);
    assert_eq!(settings.max_idle_connections_per_host, 100);
    assert!(!settings.enable_h2c && !settings.allow_unauthenticated_operators);
    assert_eq!(seconds(settings.crd_cache_poll_interval), 300);
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
    assert_eq!(settings.resolver_ports, 30_000..=30_009);
    let shown = format!("{settings:?}");
    assert!(
        shown.contains("http://prom:9090") && !shown.contains("hush"),
        "{shown}"
    );
    let settings = resolver(&[
        ("HEADER_FOR_HOST", "X-Envoy-Decorator-Operation"),
        ("REQ_TIMEOUT", "1"),
        ("QUEUE_RETRY_DURATION", "2"),
        ("QUEUE_SIZE", "3"),
        ("MAX_QUEUE_CONCURRENCY", "4"),
        ("INITIAL_CAPACITY", "5"),
        ("TRAFFIC_RE_ENABLE_DURATION", "6"),
        ("TRAFFIC_DISABLE_GRACE_DURATION", "7"),
        ("OPERATOR_RETRY_DURATION", "8"),
        ("MAX_IDLE_PROXY_CONNS", "9"),
        ("MAX_IDLE_PROXY_CONNS_PER_HOST", "10"),
        ("ENABLE_H2C", "true"),
        ("CRD_CACHE_POLL_INTERVAL_MINUTES", "-1"),
    ])
    .unwrap();
    let read = [
        settings.request_timeout.as_secs() as usize,
        settings.queue_retry.as_secs() as usize,
        settings.queue_size,
        settings.max_queue_concurrency,
        settings.initial_capacity,
        settings.traffic_re_enable.as_secs() as usize,
        settings.traffic_disable_grace.as_secs() as usize,
        settings.operator_retry.as_secs() as usize,
        settings.max_idle_connections,
        settings.max_idle_connections_per_host,
    ];
    assert_eq!(read, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(settings.header_for_host, "x-envoy-decorator-operation");
    assert!(settings.enable_h2c);
    assert_eq!(settings.crd_cache_poll_interval.as_secs(), 300);
}

#[test]
fn a_secret_that_nobody_is_shown_is_noticed() {
    const HEADER: (&str, &str) = ("PROMETHEUS_TRIGGER_AUTHORIZATION_HEADER", "Bearer hush");
    for (more, nobody) in [
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
        assert_eq!(settings.prometheus.is_sent_to_nobody(), nobody, "{more:?}");
    }
    assert!(!operator(&[]).unwrap().prometheus.is_sent_to_nobody());
}

#[test]
fn whoever_chose_what_has_no_effect_is_told() {
    let unheeded = |pairs: &[(&'static str, &'static str)]| resolver(pairs).unwrap().unheeded;
    assert_eq!(unheeded(&[]), [] as [&str; 0]);
    // What the chart sets for everybody.
    let usual = [
        ("OPERATOR_RETRY_DURATION", "10"),
        ("ENABLE_H2C", "false"),
        ("MAX_IDLE_PROXY_CONNS", "100"),
    ];
    assert_eq!(unheeded(&usual), [] as [&str; 0]);
    let chosen = [
        ("OPERATOR_RETRY_DURATION", "60"),
        ("ENABLE_H2C", "true"),
        ("MAX_IDLE_PROXY_CONNS", "7"),
        ("QUEUE_SIZE", "7"),
    ];
    assert_eq!(
        unheeded(&chosen),
        ["OPERATOR_RETRY_DURATION", "MAX_IDLE_PROXY_CONNS"]
    );
}

#[test]
fn what_is_missing_is_named() {
    for (name, _) in NEEDED {
        let mut environment = environment(&[]);
        environment.remove(name);
        let error = ResolverSettings::read(&|name| environment.get(name).cloned()).unwrap_err();
        assert!(
            matches!(error, Error::Unset { name: unset, .. } if unset == name),
            "{error}"
        );
    }
}

#[test]
fn what_cannot_be_meant_is_named_with_what_to_do_and_a_code() {
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
    ] {
        let error = operator(&[(name, value)]).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("{name} is ")) && text.contains("; set it to "),
            "{text}"
        );
        assert!(!text.contains("hush"), "{text}");
        assert!(find(error.code().0).is_some(), "{}", error.code());
    }
    for (name, value) in [
        ("QUEUE_SIZE", "-1"),
        ("REQ_TIMEOUT", "5m"),
        ("ENABLE_H2C", "yes"),
        ("HEADER_FOR_HOST", "a b"),
    ] {
        let error = resolver(&[(name, value)]).unwrap_err();
        assert_eq!(error.code(), Code("NT-IDLE-0002"));
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn flags_are_those_of_the_original() {
    let at = |port| Some(Listen { host: None, port });
    let usual = flags(&[]).unwrap();
    assert_eq!((usual.metrics, usual.health), (at(8080), at(8081)));
    assert!(!usual.leader_elect && !usual.metrics_secure && !usual.enable_http2);
    // As the chart starts it.
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
    assert_eq!(more.metrics, Some(Listen { host, port: 1 }));
    assert_eq!(more.watch_namespace.as_deref(), Some("a"));
    assert_eq!(more.kubeconfig.as_deref(), Some("/k"));
    assert!(!more.leader_elect && more.allow_unauthenticated_resolvers);
}

#[test]
fn where_to_listen_may_be_a_name_or_nothing() {
    let at = |host: Option<&str>, port| {
        let host = host.map(|host| host.parse().unwrap());
        Some(Listen { host, port })
    };
    for (said, metrics, health) in [
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
            &format!("--metrics-bind-address={said}"),
            &format!("--health-probe-bind-address={said}"),
        ]);
        let flags = flags.unwrap();
        assert_eq!((flags.metrics, flags.health), (metrics, health), "{said:?}");
    }
}

#[test]
fn a_namespace_given_by_flag_gives_way_to_the_variable() {
    let flags = flags(&["--watch-namespace=a"]).unwrap();
    let seen = |listed: &str| {
        let environment = environment(&[("WATCH_NAMESPACES", listed)]);
        let settings = Settings::read(&|name| environment.get(name).cloned(), flags.clone());
        settings.unwrap().namespaces
    };
    assert_eq!(seen(""), ["a", "elasti"].map(str::to_owned).into());
    assert_eq!(seen("b"), ["b", "elasti"].map(str::to_owned).into());
}

#[test]
fn flags_that_cannot_be_meant_are_named() {
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
            "no flag --leaderelect; is --leader-elect meant?",
        ),
        (&["run"], "no flag run"),
        (&["---leader-elect"], "no flag ---leader-elect"),
    ] {
        let error = flags(words).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert!(find(error.code().0).is_some(), "{}", error.code());
    }
}
