//! Counts and durations of requests, under the names that kube-apiserver gives them.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc, time::Duration};

use parking_lot::Mutex;

/// Upper bounds of the buckets of durations, in seconds.
const BUCKETS: [f64; 12] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 1.0, 2.0, 5.0, 15.0, 60.0,
];

/// What requests are counted by. Only served resources are named, so that clients cannot make up new
/// ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RequestLabels {
    pub(super) verb: String,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) resource: String,
    pub(super) subresource: String,
    /// `cluster`, `namespace` or `resource`; empty for a path that is no resource.
    pub(super) scope: &'static str,
}

#[derive(Debug, Default)]
struct RequestCounts {
    by_code: BTreeMap<u16, u64>,
    buckets: [u64; BUCKETS.len()],
    count: u64,
    seconds: f64,
}

#[derive(Debug, Default)]
struct Counts {
    requests: BTreeMap<RequestLabels, RequestCounts>,
    reading: u64,
    writing: u64,
}

/// The metrics of one server.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestMetrics(Arc<Mutex<Counts>>);

/// A request that is being answered.
pub(super) struct Underway {
    metrics: RequestMetrics,
    writes: bool,
}

impl RequestMetrics {
    /// Counts a request as under way until the result is dropped.
    pub(super) fn begin(&self, writes: bool) -> Underway {
        let mut counts = self.0.lock();
        *(if writes {
            &mut counts.writing
        } else {
            &mut counts.reading
        }) += 1;
        Underway {
            metrics: self.clone(),
            writes,
        }
    }

    /// Counts an answer.
    pub(super) fn record(&self, labels: RequestLabels, code: u16, took: Option<Duration>) {
        let mut counts = self.0.lock();
        let counts = counts.requests.entry(labels).or_default();
        *counts.by_code.entry(code).or_default() += 1;
        // A watch has no duration.
        let Some(took) = took else { return };
        let seconds = took.as_secs_f64();
        counts.count += 1;
        counts.seconds += seconds;
        for (bound, count) in BUCKETS.iter().zip(&mut counts.buckets) {
            *count += u64::from(seconds <= *bound);
        }
    }

    /// The metrics as Prometheus reads them, with the number of objects of each resource.
    pub(super) fn text(&self, objects: &BTreeMap<String, usize>) -> String {
        let counts = self.0.lock();
        let mut text = Exposition(String::new());
        text.head(
            "apiserver_request_total",
            "counter",
            "Requests by verb, resource and response code.",
        );
        for (labels, counts) in &counts.requests {
            for (code, count) in &counts.by_code {
                let labels = format!("{},code=\"{code}\"", labels.text());
                text.line("apiserver_request_total", &labels, count);
            }
        }
        let name = "apiserver_request_duration_seconds";
        text.head(
            name,
            "histogram",
            "Time from request to answer; not of watches.",
        );
        for (labels, counts) in counts.requests.iter().filter(|(_, c)| c.count > 0) {
            let labels = labels.text();
            for (bound, count) in BUCKETS.iter().zip(&counts.buckets) {
                let labels = format!("{labels},le=\"{bound}\"");
                text.line(&format!("{name}_bucket"), &labels, count);
            }
            let all = format!("{labels},le=\"+Inf\"");
            text.line(&format!("{name}_bucket"), &all, &counts.count);
            text.line(&format!("{name}_sum"), &labels, &counts.seconds);
            text.line(&format!("{name}_count"), &labels, &counts.count);
        }
        let name = "apiserver_current_inflight_requests";
        text.head(name, "gauge", "Requests that are being answered.");
        text.line(name, "request_kind=\"mutating\"", &counts.writing);
        text.line(name, "request_kind=\"readOnly\"", &counts.reading);
        let name = "apiserver_storage_objects";
        text.head(name, "gauge", "Stored objects by resource.");
        for (resource, count) in objects {
            text.line(name, &format!("resource=\"{}\"", escaped(resource)), count);
        }
        text.0
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let mut counts = self.metrics.0.lock();
        *(if self.writes {
            &mut counts.writing
        } else {
            &mut counts.reading
        }) -= 1;
    }
}

impl RequestLabels {
    fn text(&self) -> String {
        let label = |name: &str, value: &str| format!("{name}=\"{}\"", escaped(value));
        [
            label("group", &self.group),
            label("resource", &self.resource),
            label("scope", self.scope),
            label("subresource", &self.subresource),
            label("verb", &self.verb),
            label("version", &self.version),
        ]
        .join(",")
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

struct Exposition(String);

impl Exposition {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn line(&mut self, name: &str, labels: &str, value: &dyn std::fmt::Display) {
        let _ = writeln!(self.0, "{name}{{{labels}}} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_what_they_ask_for_and_how_they_end() {
        let metrics = RequestMetrics::default();
        let pods = RequestLabels {
            verb: "LIST".into(),
            version: "v1".into(),
            resource: "pods".into(),
            scope: "namespace",
            ..RequestLabels::default()
        };
        metrics.record(pods.clone(), 200, Some(Duration::from_millis(30)));
        metrics.record(pods.clone(), 200, Some(Duration::from_millis(300)));
        metrics.record(pods, 403, None);
        let open = metrics.begin(true);
        let text = metrics.text(&BTreeMap::from([("pods".to_owned(), 3)]));
        let labels =
            r#"group="",resource="pods",scope="namespace",subresource="",verb="LIST",version="v1""#;
        for line in [
            format!("apiserver_request_total{{{labels},code=\"200\"}} 2"),
            format!("apiserver_request_total{{{labels},code=\"403\"}} 1"),
            format!("apiserver_request_duration_seconds_bucket{{{labels},le=\"0.05\"}} 1"),
            format!("apiserver_request_duration_seconds_bucket{{{labels},le=\"+Inf\"}} 2"),
            format!("apiserver_request_duration_seconds_count{{{labels}}} 2"),
            "apiserver_current_inflight_requests{request_kind=\"mutating\"} 1".to_owned(),
            "apiserver_storage_objects{resource=\"pods\"} 3".to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        drop(open);
        let none = "apiserver_current_inflight_requests{request_kind=\"mutating\"} 0";
        assert!(metrics.text(&BTreeMap::new()).contains(none));
    }
}
