//! The served kinds are those in `docs/compatibility/api-server.md`.

use std::collections::BTreeSet;

use neap_pocket::rest::Registry;

/// `(group/version, kind)` of every row of the table of served kinds.
fn documented() -> BTreeSet<(String, String)> {
    let page = include_str!("../../../../docs/compatibility/api-server.md");
    let table = page.split("## Served kinds").nth(1).unwrap();
    let table = table.split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|row| {
        let mut cells = row.split('|').skip(1);
        let version = cells.next().unwrap().trim().trim_matches('`').to_owned();
        let kinds = cells.next().unwrap().split([',', ';']).map(str::trim);
        let kinds: Vec<_> = kinds
            .filter(|kind| kind.chars().all(char::is_alphanumeric))
            .map(|kind| (version.clone(), kind.to_owned()))
            .collect();
        kinds
    })
    .collect()
}

#[test]
fn every_served_kind_is_documented_and_no_other() {
    let registry = Registry::built_in(false);
    let served: BTreeSet<(String, String)> = registry
        .groups()
        .values()
        .flat_map(|plurals| plurals.values())
        .map(|served| (served.api_version.clone(), served.resource.kind.clone()))
        .collect();
    let mut documented = documented();
    // Served by the pod runtime, and not in the table of kinds.
    for kind in ["NodeMetrics", "PodMetrics"] {
        assert!(documented.remove(&("metrics.k8s.io/v1beta1".into(), kind.into())));
    }
    assert_eq!(documented, served);
}
