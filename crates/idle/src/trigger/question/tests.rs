use serde_json::{Value, json};

use super::*;
use crate::api::TriggerKind;

const COOLDOWN: Duration = Duration::from_mins(15);

fn defaults() -> Defaults {
    Defaults {
        address: Some("http://home:9090".into()),
        authorization: Some(HeaderValue::from_static("Bearer hush")),
        origins: Origins::default(),
    }
}

fn asked(metadata: Value) -> Result<Questions, Problem> {
    asked_with(metadata, &defaults())
}

fn asked_with(metadata: Value, defaults: &Defaults) -> Result<Questions, Problem> {
    let trigger = Trigger {
        kind: TriggerKind::Prometheus,
        metadata: Some(metadata),
    };
    Questions::of(&trigger, COOLDOWN, defaults)
}

fn now() -> Timestamp {
    "2026-01-01T00:00:00.5Z".parse().unwrap()
}

fn authorization(questions: &Questions) -> Option<String> {
    let headers = questions.value.headers();
    let found = headers.iter().find(|(name, _)| name == AUTHORIZATION);
    found.map(|(_, value)| value.to_str().unwrap().to_owned())
}

#[test]
fn questions_are_asked_as_by_the_original() {
    let questions = asked(json!({
        "query": r#"sum(rate(x{a="b"}[1m])) or vector(0)"#,
        "serverAddress": "http://prom.monitoring.svc:9090/",
        "threshold": "0.01",
    }))
    .unwrap();
    assert_eq!(
        questions.value.address(now()),
        "http://prom.monitoring.svc:9090/api/v1/query?query=sum%28rate%28x%7Ba%3D%22b%22%7D%5B1m%5D%29%29%20or%20vector%280%29&time=2026-01-01T00:00:00Z"
    );
    assert_eq!(
        questions.health.address(now()),
        "http://prom.monitoring.svc:9090/api/v1/query?query=min_over_time%28%28max%28up%7Bcontainer%3D%22prometheus%22%7D%29%20or%20vector%280%29%29%5B900s%3A%5D%29&time=2026-01-01T00:00:00Z"
    );
    assert!((questions.threshold - 0.01).abs() < f64::EPSILON);
}

#[test]
fn a_path_before_the_api_and_a_filter_of_ones_own_are_kept() {
    let questions = asked(json!({
        "query": "up",
        "serverAddress": "https://Metrics.example/tenant/a/",
        "uptimeFilter": r#"job="mimir""#,
    }))
    .unwrap();
    let address = questions.health.address(now());
    assert!(
        address.starts_with("https://metrics.example:443/tenant/a/api/v1/query?"),
        "{address}"
    );
    assert!(address.contains("up%7Bjob%3D%22mimir%22%7D"), "{address}");
    assert_eq!(questions.health.asked_of(), "https://metrics.example:443");
}

#[test]
fn the_operators_secret_goes_to_the_operators_server_alone() {
    let shown = Some("Bearer hush".to_owned());
    for (address, expected) in [
        (None, shown.clone()),
        (Some(""), shown.clone()),
        (Some("http://home:9090/prefix"), shown.clone()),
        (Some("http://HOME:9090"), shown),
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
        let questions = asked(metadata).unwrap();
        assert_eq!(authorization(&questions), expected, "{address:?}");
    }
}

#[test]
fn servers_that_are_listed_are_shown_it_too() {
    let sent = |origins: &str, address: &str| {
        let defaults = Defaults {
            origins: origins.parse().unwrap(),
            ..defaults()
        };
        let metadata = json!({"query": "up", "serverAddress": address});
        authorization(&asked_with(metadata, &defaults).unwrap()).is_some()
    };
    let listed = "https://metrics.example, http://elsewhere:9090";
    assert!(sent(listed, "http://home:9090"));
    assert!(sent(listed, "http://elsewhere:9090/tenant"));
    assert!(sent(listed, "https://Metrics.example:443"));
    assert!(!sent(listed, "http://metrics.example"));
    assert!(!sent(listed, "http://elsewhere"));
    assert!(!sent(listed, "http://elsewhere:9090.example"));
    assert!(sent("*", "http://anybody"));
}

#[test]
fn who_was_not_shown_it_and_refuses_is_told_of_with_what_to_do() {
    let met = |metadata: Value, status| {
        let questions = asked(metadata).unwrap();
        let said = None;
        questions.value.met(Problem::Status { status, said })
    };
    let elsewhere = json!({"query": "up", "serverAddress": "http://elsewhere:9090/a"});
    for status in [401, 403] {
        let problem = met(elsewhere.clone(), status);
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
        let said = None;
        assert_eq!(met(metadata, status), Problem::Status { status, said });
    }
}

#[test]
fn what_is_null_is_absent_and_names_are_read_in_any_case() {
    let questions = asked(json!({
        "Query": "up", "SERVERADDRESS": "http://elsewhere:9090", "Threshold": 2,
        "UptimeFilter": "a", "HEADERS": {"X-Scope-OrgID": "a"},
    }));
    let questions = questions.unwrap();
    let address = questions.health.address(now());
    assert!(address.starts_with("http://elsewhere:9090/"), "{address}");
    assert!(address.contains("up%7Ba%7D"), "{address}");
    assert!((questions.threshold - 2.0).abs() < f64::EPSILON);
    assert_eq!(questions.value.headers().len(), 1);
    let absent = asked(json!({
        "query": "up", "serverAddress": null, "threshold": null, "uptimeFilter": null, "headers": null,
    }));
    assert_eq!(absent, asked(json!({"query": "up"})));
    assert_eq!(asked(json!({"query": null})), Err(Problem::NoQuery));
    assert_eq!(asked(json!(null)), Err(Problem::NoQuery));
}

#[test]
fn headers_of_the_trigger_come_first() {
    let metadata =
        json!({"query": "up", "headers": {"authorization": "mine", "X-Scope-OrgID": "a"}});
    let questions = asked(metadata).unwrap();
    assert_eq!(authorization(&questions), Some("mine".into()));
    assert_eq!(questions.value.headers().len(), 2);
    let metadata = json!({"query": "up", "serverAddress": "http://me:p%40ss%3A@home:9090"});
    // me:p@ss:
    assert_eq!(
        authorization(&asked(metadata).unwrap()),
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
    let shown = format!("{:?} {:?}", asked(metadata).unwrap(), defaults().address);
    assert!(
        shown.contains("x-key") && !shown.contains("hush"),
        "{shown}"
    );
    let mut hidden = defaults();
    hidden.authorization.as_mut().unwrap().set_sensitive(true);
    assert!(!format!("{hidden:?}").contains("hush"));
}

#[test]
fn what_cannot_be_asked_says_why_and_keeps_secrets() {
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
            "of another type",
        ),
        (json!("hush"), "TriggerInvalid", "of another type"),
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
        let problem = asked(metadata.clone()).unwrap_err();
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
    let nobody = Questions::of(&trigger, COOLDOWN, &Defaults::default());
    assert_eq!(nobody.unwrap_err(), Problem::NoAddress);
}
