//! `neap status`: what runs, and what is not well, on one screen.

mod seen;
mod survey;
#[cfg(test)]
mod tests;
mod words;

use std::io::Write;

use neap_kit::clock::Clock;

pub(super) use self::{
    seen::Seen,
    survey::{CLAIMS, Line, NODES, PODS, SERVICES, SLEEPERS, Survey, WORKLOADS, survey},
};
use super::{cluster::Cluster, print, read};
use crate::{
    cli::{Output, StatusOptions},
    exit::{Exit, Failure},
    symbols::Symbols,
};

/// Looks around and says what there is.
pub(super) async fn run(
    options: &StatusOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let cluster = Cluster::connect(&options.cluster, None).await?;
    let own = options.namespace.clone();
    if let Some(named) = &own {
        must_be_there(&cluster, named).await?;
    }
    let own = own.unwrap_or_else(|| cluster.namespace.clone());
    let namespace = (!options.all_namespaces).then_some(own);
    let seen = Seen::read(&cluster, namespace.as_deref()).await?;
    let survey = survey(&seen, Clock::system().now());
    match options.output {
        Output::Text => print::text(out, &words::text(&survey, symbols)),
        Output::Json => print::json(out, "Status", &survey),
    }
}

/// That nothing is in a namespace which does not exist is no good news. Whoever may not ask is
/// believed.
async fn must_be_there(cluster: &Cluster, namespace: &str) -> Result<(), Failure> {
    let path = format!("/api/v1/namespaces/{namespace}");
    if !matches!(read::find(&cluster.client, &path).await, Ok(None)) {
        return Ok(());
    }
    let what = format!("there is no namespace {namespace}");
    let why = format!("{} has no such object", cluster.address);
    let remedy = "see how it is spelled: kubectl get namespaces; all of them: neap status -A";
    Err(Failure::new("NT-CLI-0008", Exit::NotFound, &what, &why).remedy(remedy))
}
