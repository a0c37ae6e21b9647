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
    survey::{CLAIMS, Line, NODES, PODS, SERVICES, Survey, WORKLOADS, survey},
};
use super::{cluster::Cluster, print};
use crate::{
    cli::{Output, StatusOptions},
    exit::Failure,
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
    let own = own.unwrap_or_else(|| cluster.namespace.clone());
    let namespace = (!options.all_namespaces).then_some(own);
    let seen = Seen::read(&cluster, namespace.as_deref()).await?;
    let survey = survey(&seen, Clock::system().now());
    match options.output {
        Output::Text => print::text(out, &words::text(&survey, symbols)),
        Output::Json => print::json(out, "Status", &survey),
    }
}
