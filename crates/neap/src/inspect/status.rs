//! `neap status`: what runs and what has problems, on one screen.

mod report;
mod snapshot;
#[cfg(test)]
mod tests;
mod text;

use std::io::Write;

use neap_kit::clock::Clock;

pub(super) use self::{
    report::{CLAIMS, NODES, ObjectStatus, PODS, SERVICES, StatusReport, WORKLOADS, report},
    snapshot::ClusterSnapshot,
};
use super::{cluster::Cluster, print, read};
use crate::{
    cli::StatusOptions,
    exit::{Exit, Failure},
    symbols::Symbols,
};

/// Reads the cluster and prints the report.
pub(super) async fn run(
    options: &StatusOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let cluster = Cluster::connect(&options.cluster, None).await?;
    let own = options.namespace.clone();
    if let Some(named) = &own {
        must_exist(&cluster, named).await?;
    }
    let own = own.unwrap_or_else(|| cluster.namespace.clone());
    let namespace = (!options.all_namespaces).then_some(own);
    let snapshot = ClusterSnapshot::read(&cluster, namespace.as_deref()).await?;
    let report = report(&snapshot, Clock::system().now());
    match options.output.data() {
        None => print::text(out, &text::text(&report, symbols)),
        Some(format) => print::data(out, format, "Status", &report),
    }
}

/// Fails if the namespace does not exist: an empty report would look like a healthy namespace. If the
/// user may not read namespaces, it is assumed to exist.
async fn must_exist(cluster: &Cluster, namespace: &str) -> Result<(), Failure> {
    let path = format!("/api/v1/namespaces/{namespace}");
    if !matches!(read::find(&cluster.client, &path).await, Ok(None)) {
        return Ok(());
    }
    let what = format!("the namespace {namespace} does not exist");
    let why = format!("{} has no such object", cluster.address);
    let remedy =
        "check the spelling with kubectl get namespaces, or show all namespaces: neap status -A";
    Err(Failure::new("NT-CLI-0008", Exit::NotFound, &what, &why).remedy(remedy))
}
