//! Writes the dashboards for Grafana. Of `idle`: what sleeps, what that saves, and where the time of cold starts
//! goes. Of `release`: what became of releases, how long that took, and what cannot be imported.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Title, unit and queries with their legends.
type Panel = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const IDLE: &[Panel] = &[
    (
        "Services",
        "short",
        &[("max by (state) (neaptide_idle_services)", "{{state}}")],
    ),
    (
        "Replica-hours saved",
        "h",
        &[
            ("max(neaptide_idle_saved_replica_seconds) / 3600", "saved"),
            (
                "max(neaptide_idle_would_save_replica_seconds) / 3600",
                "observed services would save",
            ),
        ],
    ),
    (
        "Wakes by cause and result",
        "short",
        &[(
            "sum by (cause, result) (increase(neaptide_idle_wakes_total[$__rate_interval]))",
            "{{cause}} {{result}}",
        )],
    ),
    (
        "Cold start, half of them within",
        "s",
        &[(
            "histogram_quantile(0.5, sum by (le, part) (rate(neaptide_idle_cold_start_seconds_bucket[$__rate_interval])))",
            "{{part}}",
        )],
    ),
    (
        "Cold start, 99 of 100 within",
        "s",
        &[(
            "histogram_quantile(0.99, sum by (le, part) (rate(neaptide_idle_cold_start_seconds_bucket[$__rate_interval])))",
            "{{part}}",
        )],
    ),
    (
        "Where the time of a cold start goes, on average",
        "s",
        &[(
            "sum by (part) (rate(neaptide_idle_cold_start_seconds_sum{part!=\"all\"}[$__rate_interval])) / ignoring (part) group_left sum(rate(neaptide_idle_cold_start_seconds_count{part=\"all\"}[$__rate_interval]))",
            "{{part}}",
        )],
    ),
    (
        "From the wake to the write of replicas, 99 of 100 within",
        "s",
        &[(
            "histogram_quantile(0.99, sum by (le) (rate(neaptide_idle_wake_write_duration_seconds_bucket[$__rate_interval])))",
            "write",
        )],
    ),
    (
        "Turned away",
        "short",
        &[(
            "sum by (reason) (increase(neaptide_idle_refused_total[$__rate_interval]))",
            "{{reason}}",
        )],
    ),
    (
        "Wakes that resolvers asked for",
        "short",
        &[(
            "sum by (result) (increase(neaptide_idle_wakes_asked_total[$__rate_interval]))",
            "{{result}}",
        )],
    ),
];

const RELEASE: &[Panel] = &[
    (
        "Releases by phase",
        "short",
        &[("max by (phase) (neaptide_release_payloads)", "{{phase}}")],
    ),
    (
        "Releases without a verdict after their deadline",
        "short",
        &[("max(neaptide_release_payloads_stuck)", "stuck")],
    ),
    (
        "Time to the verdict, half of them within",
        "s",
        &[(
            "histogram_quantile(0.5, sum by (le, phase) (rate(neaptide_release_time_to_verdict_seconds_bucket[6h])))",
            "{{phase}}",
        )],
    ),
    (
        "Time to the verdict, nine of ten within",
        "s",
        &[(
            "histogram_quantile(0.9, sum by (le, phase) (rate(neaptide_release_time_to_verdict_seconds_bucket[6h])))",
            "{{phase}}",
        )],
    ),
    (
        "Verdicts",
        "short",
        &[(
            "sum by (phase) (increase(neaptide_release_time_to_verdict_seconds_count[1h]))",
            "{{phase}}",
        )],
    ),
    (
        "Imports by result",
        "short",
        &[(
            "sum by (result) (increase(neaptide_release_image_imports_total[$__rate_interval]))",
            "{{result}}",
        )],
    ),
    (
        "Tags of image streams",
        "short",
        &[
            ("max(neaptide_release_image_stream_tags)", "all"),
            ("max(neaptide_release_image_stream_tags_failing)", "failing"),
        ],
    ),
    (
        "Requests to registries",
        "reqps",
        &[(
            "sum(rate(neaptide_release_image_import_requests_total[$__rate_interval]))",
            "requests",
        )],
    ),
];

/// The dashboards, and the same for the charts, which may read only what is in them.
pub(super) fn outputs() -> Vec<(PathBuf, String)> {
    let areas = [
        ("idle", "Services that sleep", IDLE),
        ("release", "Releases", RELEASE),
    ];
    let outputs = areas.map(|(area, title, panels)| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../deploy")
            .join(area);
        let text = format!("{:#}\n", dashboard(area, title, panels));
        [
            format!("dashboard/{area}.json"),
            format!("chart/files/{area}.json"),
        ]
        .map(|path| (folder.join(path), text.clone()))
    });
    outputs.into_iter().flatten().collect()
}

fn dashboard(area: &str, title: &str, panels: &[Panel]) -> Value {
    let source = json!({"type": "prometheus", "uid": "${source}"});
    let panels = panels.iter().enumerate().map(|(index, panel)| {
        let (title, unit, queries) = panel;
        let targets = queries.iter().enumerate().map(|(nth, (query, legend))| {
            let name = char::from(b'A' + u8::try_from(nth).unwrap_or(0));
            json!({"refId": name, "expr": query, "legendFormat": legend, "datasource": source})
        });
        let place = json!({"h": 8, "w": 12, "x": index % 2 * 12, "y": index / 2 * 8});
        json!({
            "id": index + 1, "type": "timeseries", "title": title, "gridPos": place,
            "datasource": source, "targets": targets.collect::<Vec<_>>(),
            "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        })
    });
    json!({
        "title": title, "uid": format!("neaptide-{area}"), "tags": ["neaptide"],
        "schemaVersion": 39, "version": 1, "editable": true, "refresh": "30s",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": [{
            "name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus",
        }]},
        "panels": panels.collect::<Vec<_>>(),
    })
}
