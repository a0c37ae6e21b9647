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
use super::{audit, cluster::Cluster, print};
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
    let data = options.data.as_deref();
    let cluster_named = options.cluster.kubeconfig.is_some() || options.cluster.context.is_some();
    let idle_folder = data.filter(|data| data::has_no_server(data));
    let others = !cluster_named && idle_folder.is_some();
    let from_environment = std::env::var_os("KUBECONFIG").is_some_and(|it| !it.is_empty());
    // A server that runs on the folder comes before that of KUBECONFIG, and one that does not run after it.
    let kubeconfig = data.map(|data| data.join("kubeconfig"));
    let kubeconfig = kubeconfig.filter(|_| !(others && from_environment));
    let cluster = Cluster::connect(&options.cluster, kubeconfig.as_deref()).await;
    let configured = cluster.is_ok();
    let mut reached = None;
    let api = match (cluster, idle_folder) {
        // No server is selected, and the server of the data folder does not run.
        (Ok(_), Some(folder)) if others && !from_environment => {
            vec![Finding::note(
                "reachable",
                "skipped: no neap up uses the data folder",
                &data::start_hint(folder),
            )]
        }
        (Ok(cluster), _) => {
            let (findings, usable) = api::check(&cluster).await;
            reached = usable.then_some(cluster);
            findings
        }
        (Err(failure), _) => vec![api::no_cluster(&failure, cluster_named)],
    };
    if let Some(folder) = &options.data {
        let own = match (&reached, others) {
            (Some(cluster), false) => Ok(cluster),
            _ => Err(unasked(others, configured)),
        };
        let findings = data::check(folder, own).await;
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

/// Why no server is asked for the anchor of the folder's audit log.
fn unasked(others: bool, configured: bool) -> &'static str {
    match (others, configured) {
        // Another server has no anchor of it.
        (true, _) => "no neap up uses the data folder",
        (false, true) => "the server cannot be asked",
        (false, false) => audit::NOT_CONFIGURED,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_anchor_is_missing_for_the_true_reason() {
        assert_eq!(unasked(true, true), "no neap up uses the data folder");
        assert_eq!(unasked(false, true), "the server cannot be asked");
        assert_eq!(unasked(false, false), "no cluster is configured");
    }
}
