//! Traces that somebody else began.

use http::HeaderMap;
use tracing::Span;

/// Makes `span` a part of the trace that the headers of a request name in the way of W3C
/// (`traceparent`, `tracestate`). Has to come before the span is entered
/// for the first time, or ends. Where there is
/// no such header, or traces go nowhere, it begins one of its own.
#[cfg(feature = "otlp")]
pub fn continue_trace(span: &Span, headers: &HeaderMap) {
    use opentelemetry::propagation::TextMapPropagator as _;
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;
    if span.is_disabled() || !headers.contains_key("traceparent") {
        return;
    }
    let propagator = opentelemetry_sdk::propagation::TraceContextPropagator::new();
    // Fails where no layer for traces is there, and then there is nothing to continue.
    let _ = span.set_parent(propagator.extract(&Headers(headers)));
}

/// The same in a process that was built without traces.
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
