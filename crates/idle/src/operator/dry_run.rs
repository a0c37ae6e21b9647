//! What an operator would do next about one service, without doing it.

use std::time::Duration;

use kube::Client;
use neap_kit::{
    clock::Clock,
    context::Context,
    key::Key,
    lease::Leadership,
    watch::{Watches, WatchesStopped},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::OperatorOptions;
use crate::{
    elasti_service::{self, dry_run as services},
    opt_in::dry_run as annotated,
};

/// The time within which the caches have to be complete.
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);

/// Why there is no dry run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The decision failed.
    #[error(transparent)]
    Decision(#[from] services::Error),
    /// The caches are not complete.
    #[error(
        "the objects that a decision needs could not be read within {SYNC_TIMEOUT:?}: {}",
        missing.join(", ")
    )]
    Timeout {
        /// The watches that are not complete.
        missing: Vec<String>,
    },
}

impl From<WatchesStopped> for Error {
    fn from(error: WatchesStopped) -> Self {
        Self::Decision(error.into())
    }
}

/// The decisions about the objects of one name.
#[derive(Debug, Clone)]
pub struct DryRun {
    /// About annotated objects.
    pub annotated: Vec<annotated::AnnotatedDryRun>,
    /// About the ElastiService, if it exists.
    pub service: Option<services::ServiceDryRun>,
}

/// The decisions of an operator with these options about the objects of this name. It only reads.
pub async fn dry_run(
    client: Client,
    clock: Clock,
    options: &OperatorOptions,
    key: &Key,
) -> Result<DryRun, Error> {
    let (watches, runner) = Watches::new(clock);
    let context = Context {
        client,
        watches: watches.in_namespaces(options.namespaces.clone()),
        leadership: Leadership::without_election(clock),
        clock,
    };
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(runner.run(stop.clone()));
    let installation = &options.installation;
    let decisions = async {
        let operator_namespace = &installation.operator_namespace;
        let annotated =
            annotated::dry_run(&context, operator_namespace, &options.opt_in, key).await?;
        let settings = elasti_service::Settings {
            installation: installation.clone(),
            resolver_ports: options.resolver_ports,
            timeouts: options.timeouts,
        };
        let service = services::dry_run(&context, settings, key).await?;
        Ok(DryRun { annotated, service })
    };
    let decided = clock.within(SYNC_TIMEOUT, Box::pin(decisions)).await;
    stop.cancel();
    decided.unwrap_or_else(|| {
        Err(Error::Timeout {
            missing: context.watches.unsynced(),
        })
    })
}

#[cfg(test)]
mod tests;
