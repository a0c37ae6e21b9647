//! `neap release upgrades`: the recorded results of upgrades.

use std::io::Write;

use k8s_openapi::api::core::v1::Secret;
use neap_kit::key::Key;
use neap_release::stream::upgrade_graph::{
    Results, SECRET, SECRET_KEY, UpgradeGraph, UpgradeState,
};
use serde_json::json;

use super::{
    UpgradesOptions,
    releases::{Releases, write_failed},
};
use crate::{
    exit::{Exit, Failure},
    inspect::listing::{self, Column, Listed, Listing},
};

const COLUMNS: &[Column] = &[
    Column::new("FROM"),
    Column::new("TO"),
    Column::new("PASSED"),
    Column::new("FAILED"),
    Column::new("RUNNING"),
    Column::new("RUNS").wide(),
];

pub(super) async fn run(options: &UpgradesOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let releases = Releases::of(&options.scope).await?;
    let namespace = releases.namespace.clone();
    let namespace = namespace.unwrap_or_else(|| releases.cluster.namespace.clone());
    let key = Key::new(&namespace, SECRET);
    let read = async || {
        let secret = releases.writer().find::<Secret>(&key).await;
        let secret = secret.map_err(|error| write_failed(&key, &error))?;
        let stored = secret.and_then(|secret| secret.data?.remove(SECRET_KEY));
        let graph = match stored {
            None => UpgradeGraph::default(),
            Some(stored) => UpgradeGraph::read(&stored.0).map_err(|error| {
                let what = format!("the Secret {key} cannot be read");
                Failure::new("NT-RELEASE-0001", Exit::Failed, &what, &error.to_string())
                    .remedy("delete it: the controller records again what the ProwJobs say")
            })?,
        };
        let named = |name: &str| {
            let wanted = options.release.as_deref();
            wanted.is_none_or(|wanted| wanted == name)
        };
        let found = graph
            .iter()
            .filter(|(from, to, _)| named(from) || named(to));
        Ok(Listing {
            kind: "ReleaseUpgradeList",
            resource: "upgrade",
            columns: COLUMNS,
            items: found
                .map(|(from, to, results)| listed(from, to, results))
                .collect(),
            empty: format!("No upgrade is recorded in {key}."),
        })
    };
    listing::show(options.listing, releases.clock, out, read).await
}

fn listed(from: &str, to: &str, results: &Results) -> Listed {
    let count = |wanted| results.values().filter(|state| **state == wanted).count();
    let runs: Vec<_> = results.keys().map(String::as_str).collect();
    Listed {
        name: format!("{from}..{to}"),
        cells: vec![
            from.to_owned(),
            to.to_owned(),
            count(UpgradeState::Succeeded).to_string(),
            count(UpgradeState::Failed).to_string(),
            count(UpgradeState::Pending).to_string(),
            runs.join(" "),
        ],
        data: json!({"from": from, "to": to, "results": results}),
    }
}
