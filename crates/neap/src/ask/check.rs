//! `neap check`: whether this machine, the data folder, the server and what runs there are well.

mod api;
mod cluster;
mod data;
mod idle;
mod machine;
mod report;

use std::io::Write;

use self::report::{Finding, Group, Level};
use super::{cluster::Cluster, print};
use crate::{
    cli::{CheckOptions, CheckOutput, CheckWhat},
    exit::{Exit, Failure},
    symbols::Symbols,
};

/// Checks everything, and fails if a check did.
pub(super) async fn run(
    options: &CheckOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let groups = groups(options).await;
    match options.output {
        CheckOutput::Full => print::text(out, &report::text(&groups, symbols, false))?,
        CheckOutput::Short => print::text(out, &report::text(&groups, symbols, true))?,
        CheckOutput::Json => print::json(out, "Check", &report::json(&groups))?,
    }
    match report::count(&groups, Level::Failed) {
        0 => Ok(()),
        count => Err(failed(count)),
    }
}

async fn groups(options: &CheckOptions) -> Vec<Group> {
    let mut groups = Vec::new();
    if options.what.is_none() {
        groups.push(Group::new("this machine", machine::check()));
    }
    let kubeconfig = options.data.as_ref().map(|data| data.join("kubeconfig"));
    let cluster = Cluster::connect(&options.cluster, kubeconfig.as_deref()).await;
    let named = options.cluster.kubeconfig.is_some() || options.cluster.context.is_some();
    let mut reached = None;
    let api = match cluster {
        // Nobody named a server, and that of the folder is known not to run.
        Ok(_) if !named && options.data.as_deref().is_some_and(data::is_idle) => {
            vec![Finding::note(
                "reachable",
                "not asked: no neap works with the data folder",
                "neap up --data DIR starts one",
            )]
        }
        Ok(cluster) => {
            let (findings, answers) = api::check(&cluster).await;
            reached = answers.then_some(cluster);
            findings
        }
        Err(failure) => vec![api::unnamed(&failure, named)],
    };
    if let Some(folder) = &options.data {
        let findings = data::check(folder, reached.as_ref()).await;
        groups.push(Group::new("the data folder", findings));
    }
    groups.push(Group::new("the server", api));
    match (&reached, options.what) {
        (Some(cluster), Some(CheckWhat::Idle)) => {
            groups.push(Group::new(
                "services that sleep",
                idle::check(cluster).await,
            ));
        }
        (Some(cluster), None) => {
            groups.push(Group::new("the cluster", cluster::check(cluster).await));
        }
        (None, _) => {}
    }
    groups
}

fn failed(count: usize) -> Failure {
    let what = if count == 1 {
        "1 check failed".to_owned()
    } else {
        format!("{count} checks failed")
    };
    let why = "something is not as it should be; the lines above say what";
    Failure::new("NT-CLI-0010", Exit::Failed, &what, why)
        .remedy("follow the hints, and check again")
}
