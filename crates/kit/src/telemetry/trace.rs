//! Continuation of traces from other processes.

use http::HeaderMap;
use tracing::Span;

/// Makes `span` part of the trace that the W3C headers of a request name (`traceparent`,
/// `tracestate`). Call it before the span is entered for the first time or ends. Without such a header,
/// or without an exporter, the span starts a trace of its own.
#[cfg(feature = "otlp")]
pub fn continue_trace(span: &Span, headers: &HeaderMap) {
    use opentelemetry::propagation::TextMapPropagator as _;
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;
    if span.is_disabled() || !headers.contains_key("traceparent") {
        return;
    }
    let propagator = opentelemetry_sdk::propagation::TraceContextPropagator::new();
    // Fails without a layer for traces, and then there is nothing to continue.
    let _ = span.set_parent(propagator.extract(&Headers(headers)));
}

/// Does nothing in a build without traces.
#[cfg(not(feature = "otlp"))]
pub fn continue_trace(_: &Span, _: &HeaderMap) {}

#[cfg(feature = "otlp")]
struct Headers<'a>(&'a HeaderMap);

#[cfg(feature = "otlp")]
impl opentelemetry::propagation::Extractor for Headers<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}
