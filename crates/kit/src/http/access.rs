//! One event for each request: its line in the access log, and its metrics.

use std::time::Duration;

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderValue, Method, StatusCode};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

use crate::{
    clock::Clock,
    telemetry::{Meter, Telemetry, TelemetryEvent},
};

/// Buckets of durations, in seconds.
const BUCKETS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0];

/// The identity of a request: in its answer, in the log, and in errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(pub String);

impl RequestId {
    /// A new identity.
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        // Without randomness requests share an identity, which only makes the log harder to read.
        let _ = aws_lc_rs::rand::fill(&mut bytes);
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex = format!("{:032x}", u128::from_be_bytes(bytes));
        let parts = [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ];
        Self(parts.join("-"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    server: &'static str,
    method: String,
    route: String,
    code: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    server: &'static str,
    route: String,
}

#[derive(Debug)]
struct RequestMetrics {
    requests: Family<RequestLabels, Counter>,
    duration: Family<RouteLabels, Histogram>,
}

/// Counts and logs the requests of one server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AccessLog {
    server: &'static str,
    header: &'static str,
    meter: Meter<RequestMetrics>,
    clock: Clock,
}

impl AccessLog {
    /// The log of the server `server`, which answers the request id in `header`.
    pub fn new(
        server: &'static str,
        header: &'static str,
        telemetry: &Telemetry,
        clock: Clock,
    ) -> Self {
        let meter = telemetry.meter(|registry: &mut Registry| {
            let requests = Family::default();
            let duration =
                Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram);
            let name = "http_requests";
            registry.register(name, "Requests that were answered", requests.clone());
            registry.register_with_unit(
                "http_request_duration",
                "Time until the head of the answer",
                Unit::Seconds,
                duration.clone(),
            );
            RequestMetrics { requests, duration }
        });
        Self {
            server,
            header,
            meter,
            clock,
        }
    }
}

struct RequestAnswered<'a> {
    server: &'static str,
    method: &'a Method,
    /// The pattern, which contains no names of objects.
    route: &'a str,
    /// The path as it was requested; secrets are never in paths.
    path: &'a str,
    request_id: &'a str,
    code: StatusCode,
    took: Duration,
}

impl TelemetryEvent<RequestMetrics> for RequestAnswered<'_> {
    fn log(&self) {
        let Self {
            server,
            method,
            path,
            request_id,
            code,
            took,
            ..
        } = self;
        let code = code.as_u16();
        tracing::info!(server, %method, path, code, ?took, request_id, "request answered");
    }

    fn count(&self, metrics: &RequestMetrics) {
        let route = self.route.to_owned();
        let labels = RequestLabels {
            server: self.server,
            method: known_method(self.method).to_owned(),
            route: route.clone(),
            code: self.code.as_u16(),
        };
        metrics.requests.get_or_create(&labels).inc();
        let server = self.server;
        let duration = metrics
            .duration
            .get_or_create(&RouteLabels { server, route });
        duration.observe(self.took.as_secs_f64());
    }
}

/// Clients choose methods freely, and each would be a series of its own.
fn known_method(method: &Method) -> &str {
    match method.as_str() {
        known @ ("GET" | "HEAD" | "PUT" | "POST" | "PATCH" | "DELETE" | "OPTIONS") => known,
        _ => "other",
    }
}

/// The middleware: `router.layer(axum::middleware::from_fn_with_state(log, access_log))`.
pub async fn access_log(
    State(log): State<AccessLog>,
    mut request: Request,
    next: Next,
) -> Response {
    let request_id = RequestId::random();
    let started = log.clock.uptime();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("none".to_owned(), |route| route.as_str().to_owned());
    request.extensions_mut().insert(request_id.clone());
    let mut response = next.run(request).await;
    if let Ok(value) = HeaderValue::from_str(&request_id.0) {
        response.headers_mut().insert(log.header, value);
    }
    log.meter.emit(&RequestAnswered {
        server: log.server,
        method: &method,
        route: &route,
        path: &path,
        request_id: &request_id.0,
        code: response.status(),
        took: log.clock.uptime().saturating_sub(started),
    });
    response
}
