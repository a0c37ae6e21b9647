#[cfg(any(feature = "otlp", feature = "sentry"))]
mod export;

use std::{sync::Arc, time::Duration};

use http::{Method, Uri};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, api::ListParams};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use tower::Layer;

use super::{calls::verb, export::ExportConfig, log::subscriber, *};
use crate::{
    clock::Clock,
    server::{Server, transport_of},
};

/// The lines of a metric, sorted.
fn metric_lines(telemetry: &Telemetry, family: &str) -> Vec<String> {
    let text = telemetry.text();
    let lines = text.lines().filter(|line| line.starts_with(family));
    let mut lines: Vec<_> = lines.map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

fn failed() -> Reconciled<'static> {
    Reconciled {
        controller: "sorter",
        key: &"shop/cart",
        result: ReconcileResult::Failed,
        error: Some("no room".into()),
        code: None,
        took: Duration::from_millis(20),
    }
}

/// What is logged while `work` runs.
fn logged(format: Format, work: impl FnOnce()) -> String {
    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let buffer = SharedBuffer::default();
    let output = buffer.clone();
    let subscriber = subscriber(format, "info", move || output.clone(), vec![]).unwrap();
    tracing::subscriber::with_default(subscriber, work);
    let bytes = buffer.0.lock().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn an_event_is_logged_and_counted() {
    let telemetry = Telemetry::default();
    let text = logged(Format::Text, || telemetry.emit(&failed()));
    assert!(
        text.contains("WARN") && text.contains("reconcile failed"),
        "{text}"
    );
    assert!(
        text.contains("no room") && text.contains("shop/cart"),
        "{text}"
    );
    assert_eq!(
        metric_lines(&telemetry, "neaptide_reconciles_total"),
        [r#"neaptide_reconciles_total{controller="sorter",result="failed"} 1"#]
    );
    assert_eq!(
        metric_lines(&telemetry, "neaptide_reconcile_errors_total"),
        [r#"neaptide_reconcile_errors_total{controller="sorter",class="failed"} 1"#]
    );
    let buckets = metric_lines(&telemetry, "neaptide_reconcile_duration_seconds_bucket");
    let at = |bound: &str| buckets.iter().find(|line| line.contains(bound)).unwrap();
    assert!(at(r#"le="0.01""#).ends_with(" 0") && at(r#"le="0.03""#).ends_with(" 1"));
}

#[test]
fn json_lines_are_objects() {
    let telemetry = Telemetry::default();
    let text = logged(Format::Json, || telemetry.emit(&failed()));
    let line: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(line["message"], "reconcile failed");
    assert_eq!(line["controller"], "sorter");
    assert_eq!(line["level"], "WARN");
}

#[test]
fn an_invalid_filter_or_format_is_refused_with_an_example() {
    let refused = subscriber(Format::Text, "a=b=c", std::io::sink, vec![])
        .err()
        .unwrap();
    assert!(
        refused.to_string().contains("info,neap_kit=debug"),
        "{refused}"
    );
    let refused = "xml".parse::<Format>().unwrap_err();
    assert_eq!(
        refused.to_string(),
        r#"log lines are text or json, not "xml""#
    );
}

#[test]
fn other_crates_add_metrics_of_their_own() {
    struct WakeMetrics(Counter);
    struct ServiceWoken;
    impl TelemetryEvent<WakeMetrics> for ServiceWoken {
        fn log(&self) {}
        fn count(&self, metrics: &WakeMetrics) {
            metrics.0.inc();
        }
    }
    let telemetry = Telemetry::default();
    let meter = telemetry.meter(|registry| {
        let wakes = Counter::default();
        registry.register("idle_wakes", "Wakes", wakes.clone());
        WakeMetrics(wakes)
    });
    meter.emit(&ServiceWoken);
    assert_eq!(
        metric_lines(&telemetry, "neaptide_idle_wakes"),
        ["neaptide_idle_wakes_total 1"]
    );
}

#[test]
fn changes_of_leadership_are_counted() {
    let telemetry = Telemetry::default();
    for leads in [true, false] {
        telemetry.emit(&LeadershipChanged {
            lease: "neap",
            leads,
            holder: None,
        });
    }
    assert_eq!(
        metric_lines(&telemetry, "neaptide_lease_transitions_total").len(),
        2
    );
    assert_eq!(
        metric_lines(&telemetry, "neaptide_leads"),
        [r#"neaptide_leads{lease="neap"} 0"#]
    );
}

#[test]
fn requests_have_the_verbs_of_the_api() {
    for (method, uri, expected) in [
        (Method::GET, "/api/v1/pods", "list"),
        (
            Method::GET,
            "/api/v1/pods?watch=true&resourceVersion=1",
            "watch",
        ),
        (Method::GET, "/api/v1/namespaces/shop/pods?limit=5", "list"),
        (Method::GET, "/api/v1/namespaces/shop", "get"),
        (Method::GET, "/api/v1/namespaces/shop/status", "get"),
        (
            Method::GET,
            "/apis/apps/v1/namespaces/shop/deployments/web",
            "get",
        ),
        (
            Method::GET,
            "/apis/apps/v1/namespaces/shop/deployments/web/status",
            "get",
        ),
        (Method::GET, "/version", "get"),
        (Method::POST, "/api/v1/namespaces/shop/pods", "create"),
        (Method::PUT, "/api/v1/nodes/n/status", "update"),
        (Method::PATCH, "/api/v1/nodes/n", "patch"),
        (Method::DELETE, "/api/v1/nodes/n", "delete"),
        (Method::DELETE, "/api/v1/nodes", "deletecollection"),
    ] {
        let uri: Uri = uri.parse().unwrap();
        assert_eq!(verb(&method, &uri), expected, "{method} {uri}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_of_a_client_is_counted() {
    let server = Server::open().await;
    let telemetry = Telemetry::default();
    let calls = CountCalls::new(telemetry.clone(), Clock::system());
    let client = Client::new(
        calls.layer(transport_of(server.client.clone())),
        server.namespace(),
    );
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.list(&ListParams::default()).await.unwrap();
    maps.get_opt("none").await.unwrap();
    assert_eq!(
        metric_lines(&telemetry, "neaptide_api_calls_total"),
        [
            r#"neaptide_api_calls_total{verb="get",code="404"} 1"#,
            r#"neaptide_api_calls_total{verb="list",code="200"} 1"#,
        ]
    );
}

#[test]
fn the_standard_variables_configure_the_exports() {
    let (endpoint, dsn) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "SENTRY_DSN");
    let traces_alone = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    let address = "http://collector:4318";
    for (set, traces, errors) in [
        (vec![], false, None),
        (vec![(endpoint, address)], true, None),
        (vec![(traces_alone, address)], true, None),
        (vec![(endpoint, " ")], false, None),
        (
            vec![(endpoint, address), ("OTEL_SDK_DISABLED", "true")],
            false,
            None,
        ),
        (
            vec![(endpoint, address), ("OTEL_TRACES_EXPORTER", "none")],
            false,
            None,
        ),
        (
            vec![(dsn, "https://key@host/1")],
            false,
            Some("https://key@host/1"),
        ),
    ] {
        let config = ExportConfig::from_variables(|name| {
            let found = set.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        });
        assert_eq!(
            (config.traces, config.errors.as_deref()),
            (traces, errors),
            "{set:?}"
        );
    }
}

#[test]
#[cfg(not(any(feature = "otlp", feature = "sentry")))]
fn variables_of_exports_that_are_not_built_in_are_reported() {
    let config = ExportConfig {
        traces: true,
        errors: Some("https://key@host/1".into()),
    };
    assert_eq!(
        config.unsupported(),
        ["OTEL_EXPORTER_OTLP_ENDPOINT", "SENTRY_DSN"]
    );
}

#[test]
fn compatible_metrics_keep_their_names() {
    let telemetry = Telemetry::default();
    telemetry.compatible(|registry| {
        let requests: Counter = Counter::default();
        requests.inc();
        registry.register("elasti_requests", "Requests", requests);
    });
    let text = telemetry.text();
    assert!(text.contains("\nelasti_requests_total 1\n"), "{text}");
    assert_eq!(text.matches("# EOF").count(), 1);
    assert!(text.ends_with("# EOF\n"), "{text}");
}
