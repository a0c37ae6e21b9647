//! `neap check`: checks this machine, the data folder, the server and its objects.

mod api;
mod area;
mod cluster;
mod data;
mod host;
mod report;

use std::io::Write;

use neap_kit::area::{Finding, Level};

use self::report::FindingGroup;
use super::{cluster::Cluster, print};
use crate::{
    areas,
    cli::{CheckOptions, CheckOutput, DataFormat},
    exit::{Exit, Failure},
    symbols::Symbols,
};

/// Runs the checks, and fails if one of them did.
pub(super) async fn run(
    options: &CheckOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let groups = groups(options).await;
    match options.output {
        CheckOutput::Full => print::text(out, &report::text(&groups, symbols, false))?,
        CheckOutput::Short => print::text(out, &report::text(&groups, symbols, true))?,
        CheckOutput::Yaml => print::data(out, DataFormat::Yaml, "Check", &report::json(&groups))?,
        CheckOutput::Json => print::data(out, DataFormat::Json, "Check", &report::json(&groups))?,
    }
    match report::count(&groups, Level::Failed) {
        0 => Ok(()),
        count => Err(failed(count)),
    }
}

async fn groups(options: &CheckOptions) -> Vec<FindingGroup> {
    let mut groups = Vec::new();
    if options.area.is_none() {
        groups.push(FindingGroup::new("this machine", host::check()));
    }
    let kubeconfig = options.data.as_ref().map(|data| data.join("kubeconfig"));
    let cluster = Cluster::connect(&options.cluster, kubeconfig.as_deref()).await;
    let cluster_named = options.cluster.kubeconfig.is_some() || options.cluster.context.is_some();
    let mut reached = None;
    let api = match cluster {
        // No server is selected, and the server of the data folder does not run.
        Ok(_) if !cluster_named && options.data.as_deref().is_some_and(data::has_no_server) => {
            vec![Finding::note(
                "reachable",
                "skipped: no neap up uses the data folder",
                "start one with neap up --data DIR",
            )]
        }
        Ok(cluster) => {
            let (findings, usable) = api::check(&cluster).await;
            reached = usable.then_some(cluster);
            findings
        }
        Err(failure) => vec![api::no_cluster(&failure, cluster_named)],
    };
    if let Some(folder) = &options.data {
        let findings = data::check(folder, reached.as_ref()).await;
        groups.push(FindingGroup::new("the data folder", findings));
    }
    groups.push(FindingGroup::new("the server", api));
    let Some(cluster) = &reached else {
        return groups;
    };
    if let Some(name) = &options.area {
        let areas = areas::all().filter(|area| area.name == name);
        for (area, check) in areas.filter_map(|area| Some((area, area.check?))) {
            let findings = area::check(cluster, &check).await;
            groups.push(FindingGroup::new(area.title, findings));
        }
    } else {
        let findings = cluster::check(cluster).await;
        groups.push(FindingGroup::new("the cluster", findings));
    }
    groups
}

fn failed(count: usize) -> Failure {
    let what = if count == 1 {
        "1 check failed".to_owned()
    } else {
        format!("{count} checks failed")
    };
    let why = "see the failed checks above";
    Failure::new("NT-CLI-0010", Exit::Failed, &what, why)
        .remedy("follow the hints, then run the check again")
}
