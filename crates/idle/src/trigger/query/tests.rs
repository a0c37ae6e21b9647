use serde_json::{Value, json};

use super::*;
use crate::api::TriggerKind;

const COOLDOWN: Duration = Duration::from_mins(15);

fn defaults() -> PrometheusDefaults {
    PrometheusDefaults {
        address: Some("http://home:9090".into()),
        authorization: Some(HeaderValue::from_static("Bearer hush")),
        origins: Origins::default(),
    }
}

fn parse(metadata: Value) -> Result<TriggerQueries, Problem> {
    parse_with(metadata, &defaults())
}

fn parse_with(metadata: Value, defaults: &PrometheusDefaults) -> Result<TriggerQueries, Problem> {
    let trigger = Trigger {
        kind: TriggerKind::Prometheus,
        metadata: Some(metadata),
    };
    TriggerQueries::of(&trigger, COOLDOWN, defaults)
}

fn now() -> Timestamp {
    "2026-01-01T00:00:00.5Z".parse().unwrap()
}

fn authorization(queries: &TriggerQueries) -> Option<String> {
    let headers = queries.value.headers();
    let found = headers.iter().find(|(name, _)| name == AUTHORIZATION);
    found.map(|(_, value)| value.to_str().unwrap().to_owned())
}

#[test]
fn queries_are_those_of_kube_elasti() {
    let queries = parse(json!({
        "query": r#"sum(rate(x{a="b"}[1m])) or vector(0)"#,
        "serverAddress": "http://prom.monitoring.svc:9090/",
        "threshold": "0.01",
    }))
    .unwrap();
    assert_eq!(
        queries.value.address(now()),
        "http://prom.monitoring.svc:9090/api/v1/query?query=sum%28rate%28x%7Ba%3D%22b%22%7D%5B1m%5D%29%29%20or%20vector%280%29&time=2026-01-01T00:00:00Z"
    );
    assert_eq!(
        queries.health.address(now()),
        "http://prom.monitoring.svc:9090/api/v1/query?query=min_over_time%28%28max%28up%7Bcontainer%3D%22prometheus%22%7D%29%20or%20vector%280%29%29%5B900s%3A%5D%29&time=2026-01-01T00:00:00Z"
    );
    assert!((queries.threshold - 0.01).abs() < f64::EPSILON);
}

#[test]
fn the_path_and_the_filter_of_the_trigger_are_used() {
    let queries = parse(json!({
        "query": "up",
        "serverAddress": "https://Metrics.example/tenant/a/",
        "uptimeFilter": r#"job="mimir""#,
    }))
    .unwrap();
    let address = queries.health.address(now());
    assert!(
        address.starts_with("https://metrics.example:443/tenant/a/api/v1/query?"),
        "{address}"
    );
    assert!(address.contains("up%7Bjob%3D%22mimir%22%7D"), "{address}");
    assert_eq!(
        queries.health.server_origin(),
        "https://metrics.example:443"
    );
}

#[test]
fn the_operators_credentials_go_only_to_its_server() {
    let sent_header = Some("Bearer hush".to_owned());
    for (address, expected) in [
        (None, sent_header.clone()),
        (Some(""), sent_header.clone()),
        (Some("http://home:9090/prefix"), sent_header.clone()),
        (Some("http://HOME:9090"), sent_header),
        (Some("http://home:9091"), None),
        (Some("https://home:9090"), None),
        (Some("http://home"), None),
        (Some("http://elsewhere:9090"), None),
        (Some("http://elsewhere:9090/http://home:9090"), None),
        (
            Some("http://me@elsewhere:9090"),
            Some("Basic bWU6".to_owned()),
        ),
    ] {
        let mut metadata = json!({"query": "up"});
        if let Some(address) = address {
            metadata["serverAddress"] = address.into();
        }
        let queries = parse(metadata).unwrap();
        assert_eq!(authorization(&queries), expected, "{address:?}");
    }
}

#[test]
fn listed_servers_receive_the_credentials_too() {
    let sent = |origins: &str, address: &str| {
        let defaults = PrometheusDefaults {
            origins: origins.parse().unwrap(),
            ..defaults()
        };
        let metadata = json!({"query": "up", "serverAddress": address});
        authorization(&parse_with(metadata, &defaults).unwrap()).is_some()
    };
    let listed = "https://metrics.example, http://elsewhere:9090";
    assert!(sent(listed, "http://home:9090"));
    assert!(sent(listed, "http://elsewhere:9090/tenant"));
    assert!(sent(listed, "https://Metrics.example:443"));
    assert!(!sent(listed, "http://metrics.example"));
    assert!(!sent(listed, "http://elsewhere"));
    assert!(!sent(listed, "http://elsewhere:9090.example"));
    assert!(sent("*", "http://any"));
}

#[test]
fn a_refusal_without_credentials_has_a_remedy() {
    let explain = |metadata: Value, status| {
        let queries = parse(metadata).unwrap();
        let message = None;
        queries.value.explain(Problem::Status { status, message })
    };
    let elsewhere = json!({"query": "up", "serverAddress": "http://elsewhere:9090/a"});
    for status in [401, 403] {
        let problem = explain(elsewhere.clone(), status);
        let text = problem.to_string();
        assert_eq!(problem.reason(), "PrometheusFailed");
        for part in [
            &status.to_string(),
            "http://elsewhere:9090:",
            "PROMETHEUS_TRIGGER_AUTHORIZATION_ORIGINS",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
    let own = json!({"authorization": "mine"});
    for (metadata, status) in [
        (elsewhere, 500),
        (json!({"query": "up"}), 401),
        (
            json!({"query": "up", "serverAddress": "http://a", "headers": own}),
            401,
        ),
        (json!({"query": "up", "serverAddress": "http://me@a"}), 401),
    ] {
        let message = None;
        assert_eq!(
            explain(metadata, status),
            Problem::Status { status, message }
        );
    }
}

#[test]
fn null_is_absent_and_names_match_in_any_case() {
    let queries = parse(json!({
        "Query": "up", "SERVERADDRESS": "http://elsewhere:9090", "Threshold": 2,
        "UptimeFilter": "a", "HEADERS": {"X-Scope-OrgID": "a"},
    }));
    let queries = queries.unwrap();
    let address = queries.health.address(now());
    assert!(address.starts_with("http://elsewhere:9090/"), "{address}");
    assert!(address.contains("up%7Ba%7D"), "{address}");
    assert!((queries.threshold - 2.0).abs() < f64::EPSILON);
    assert_eq!(queries.value.headers().len(), 1);
    let absent = parse(json!({
        "query": "up", "serverAddress": null, "threshold": null, "uptimeFilter": null, "headers": null,
    }));
    assert_eq!(absent, parse(json!({"query": "up"})));
    assert_eq!(parse(json!({"query": null})), Err(Problem::NoQuery));
    assert_eq!(parse(json!(null)), Err(Problem::NoQuery));
}

#[test]
fn headers_of_the_trigger_take_precedence() {
    let metadata =
        json!({"query": "up", "headers": {"authorization": "mine", "X-Scope-OrgID": "a"}});
    let queries = parse(metadata).unwrap();
    assert_eq!(authorization(&queries), Some("mine".into()));
    assert_eq!(queries.value.headers().len(), 2);
    let metadata = json!({"query": "up", "serverAddress": "http://me:p%40ss%3A@home:9090"});
    // me:p@ss:
    assert_eq!(
        authorization(&parse(metadata).unwrap()),
        Some("Basic bWU6cEBzczo=".into())
    );
}

#[test]
fn nothing_secret_is_shown() {
    let metadata = json!({
        "query": "up",
        "serverAddress": "http://me:hush@home:9090",
        "headers": {"X-Key": "hush"},
    });
    let sent_header = format!("{:?} {:?}", parse(metadata).unwrap(), defaults().address);
    assert!(
        sent_header.contains("x-key") && !sent_header.contains("hush"),
        "{sent_header}"
    );
    let mut hidden = defaults();
    hidden.authorization.as_mut().unwrap().set_sensitive(true);
    assert!(!format!("{hidden:?}").contains("hush"));
}

#[test]
fn invalid_triggers_have_a_reason_without_secrets() {
    for (metadata, reason, says) in [
        (json!({}), "TriggerInvalid", "no query"),
        (json!({"query": " "}), "TriggerInvalid", "no query"),
        (
            json!({"query": "up", "threshold": "hi"}),
            "TriggerInvalid",
            "threshold is a number",
        ),
        (
            json!({"query": "up", "headers": "hush"}),
            "TriggerInvalid",
            "has the wrong type",
        ),
        (json!("hush"), "TriggerInvalid", "has the wrong type"),
        (
            json!({"query": "up", "serverAddress": "home:9090"}),
            "TriggerInvalid",
            "http://",
        ),
        (
            json!({"query": "up", "serverAddress": "ftp://home"}),
            "TriggerInvalid",
            "http://",
        ),
        (
            json!({"query": "up", "serverAddress": "http://home?hush"}),
            "TriggerInvalid",
            "http://",
        ),
        (
            json!({"query": "up", "headers": {"a b": "hush"}}),
            "TriggerInvalid",
            "\"a b\"",
        ),
        (
            json!({"query": "up", "headers": {"a": "hu\nsh"}}),
            "TriggerInvalid",
            "\"a\"",
        ),
        (
            json!({"query": "up", "headers": {"Transfer-Encoding": "chunked"}}),
            "TriggerInvalid",
            "Transfer-Encoding",
        ),
    ] {
        let problem = parse(metadata.clone()).unwrap_err();
        let text = problem.to_string();
        assert_eq!(problem.reason(), reason, "{metadata}");
        assert!(
            text.contains(says) && !text.contains("hush"),
            "{metadata}: {text}"
        );
    }
    let trigger = Trigger {
        metadata: Some(json!({"query": "up"})),
        ..Trigger::default()
    };
    let missing = TriggerQueries::of(&trigger, COOLDOWN, &PrometheusDefaults::default());
    assert_eq!(missing.unwrap_err(), Problem::NoAddress);
}
