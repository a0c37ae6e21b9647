//! The dashboard: every metric that it queries exists.

use super::*;

/// All sources of the crate, where metrics are registered. A metric without a value is not exposed, so
/// the test searches the sources.
fn sources(folder: &Path) -> String {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let texts = entries.map(|path| {
        if path.is_dir() {
            sources(&path)
        } else {
            fs::read_to_string(path).unwrap()
        }
    });
    texts.collect()
}

/// Whether a metric of this name is registered, apart from the suffixes of its type and unit.
fn is_registered(sources: &str, name: &str) -> bool {
    let ends = ["_bucket", "_sum", "_count", "_total"];
    let name = ends
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(name);
    let whole = name.strip_prefix("neaptide_").unwrap();
    let bare = whole.strip_prefix("idle_").unwrap();
    let quoted = |name: &str| format!("\"{name}\"");
    let without_unit = |name: &str| name.strip_suffix("_seconds").map(quoted);
    let spelled = [
        Some(quoted(whole)),
        Some(quoted(bare)),
        without_unit(whole),
        without_unit(bare),
    ];
    let mut spelled = spelled.into_iter().flatten();
    spelled.any(|spelled| sources.contains(&spelled))
}

#[test]
fn every_panel_queries_existing_metrics() {
    let dashboard: Value = serde_json::from_str(&text("dashboard/idle.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let mut asked = Vec::new();
    for target in panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten()
    {
        let query = target["expr"].as_str().unwrap();
        let words = query.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
        let names: Vec<_> = words.filter(|word| word.starts_with("neaptide_")).collect();
        assert!(!names.is_empty(), "{query}");
        for name in names {
            assert!(is_registered(&sources, name), "{query} queries {name}");
            asked.push(name.to_owned());
        }
    }
    for wanted in [
        "neaptide_idle_cold_start_seconds_bucket",
        "neaptide_idle_saved_replica_seconds",
    ] {
        assert!(
            asked.iter().any(|name| name == wanted),
            "{wanted} is not shown"
        );
    }
    assert!(!is_registered(&sources, "neaptide_idle_nothing_total"));
}
