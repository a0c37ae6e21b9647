//! Calls to systems outside the cluster.

use std::time::Duration;

use super::{
    Metrics, TelemetryEvent,
    metrics::{OutboundCallLabels, OutboundClientLabels},
};

/// An attempt of a call to another system has ended.
#[derive(Debug)]
pub struct OutboundCallFinished<'a> {
    /// The name of the client.
    pub client: &'static str,
    /// The method of the request.
    pub method: &'a http::Method,
    /// The address, without its query.
    pub url: &'a str,
    /// The number of the attempt; the first is 1.
    pub attempt: u32,
    /// The HTTP status; none if there was no response.
    pub code: Option<u16>,
    /// Why there was no response.
    pub error: Option<&'a str>,
    /// The duration.
    pub took: Duration,
}

impl TelemetryEvent<Metrics> for OutboundCallFinished<'_> {
    /// The caller logs the error where it is handled; headers and queries may be secret.
    fn log(&self) {
        let Self {
            client,
            method,
            url,
            attempt,
            code,
            error,
            took,
        } = self;
        tracing::debug!(client, %method, url, attempt, code, error, ?took, "outbound call finished");
    }

    fn count(&self, metrics: &Metrics) {
        let client = self.client;
        let code = self.code.map_or("none".to_owned(), |code| code.to_string());
        let calls = &metrics.outbound_calls;
        calls
            .get_or_create(&OutboundCallLabels { client, code })
            .inc();
        let labels = OutboundClientLabels { client };
        let seconds = self.took.as_secs_f64();
        let durations = &metrics.outbound_call_duration;
        durations.get_or_create(&labels).observe(seconds);
        if self.attempt > 1 {
            metrics.outbound_retries.get_or_create(&labels).inc();
        }
    }
}
