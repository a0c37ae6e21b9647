use serde_json::{Value, json};

use super::*;
use crate::api::TriggerKind;

const COOLDOWN: Duration = Duration::from_mins(15);

fn defaults() -> Defaults {
    Defaults {
        address: Some("http://home:9090".into()),
        authorization: Some(HeaderValue::from_static("Bearer hush")),
    }
}

fn asked(metadata: Value) -> Result<Questions, Problem> {
    let trigger = Trigger {
        kind: TriggerKind::Prometheus,
        metadata: Some(metadata),
    };
    Questions::of(&trigger, COOLDOWN, &defaults())
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
