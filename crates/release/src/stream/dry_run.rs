//! The next decision about a stream, without carrying it out.

use std::{collections::BTreeSet, sync::Arc};

use kube::Client;
use neap_kit::{
    apply::Error as ReadError,
    builder::ControllerBuilder,
    clock::Clock,
    context::Context,
    key::Key,
    lease::Leadership,
    watch::{Watches, WatchesStopped},
};
use tokio_util::sync::CancellationToken;

use super::{
    controller::{NAME, Services, Sources},
    decide::{Decision, decide},
    facts::Facts,
    options::StreamOptions,
    prow_config::{Periodic, ProwConfig, SharedProwConfig},
    release_reader::CachedReader,
};
use crate::{config::ReleaseConfig, payload::run_keys::RunKeys};

/// The facts cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The watches ended.
    #[error(transparent)]
    Stopped(#[from] WatchesStopped),
    /// An object cannot be read.
    #[error("the facts about the stream cannot be read")]
    Read(#[from] ReadError),
}

/// What a decision is made with.
#[derive(Debug, Clone)]
pub struct DryRunOptions {
    /// The options of the controller.
    pub options: StreamOptions,
    /// The job configuration of Prow; if it is not known, every job counts as known to Prow.
    pub prow: Option<ProwConfig>,
    /// Reads the images of releases.
    pub reader: CachedReader,
}

/// The facts about the stream with this source and the decision that a controller would make; none if there is
/// no such source. Nothing is written: not even the Secret with the key of run tokens.
pub async fn dry_run(
    client: Client,
    clock: Clock,
    options: DryRunOptions,
    source: &Key,
) -> Result<Option<(Facts, Decision)>, Error> {
    let (watches, runner) = Watches::new(clock);
    let context = Context {
        client,
        watches,
        leadership: Leadership::never(clock),
        clock,
    };
    let mut builder = ControllerBuilder::new(&context, NAME);
    let first = options.options.release_namespaces.first();
    let services = Services {
        run_keys: RunKeys::stand_in(
            context.writer(NAME),
            clock,
            first.map(String::as_str).unwrap_or_default(),
        ),
        options: Arc::new(options.options),
        prow: SharedProwConfig::new(options.prow.clone().unwrap_or_default()),
        reader: options.reader,
    };
    let sources = Sources::watch(&mut builder, &context, services)?;
    let tools = builder.tools();
    let reading = async {
        sources.synced().await;
        let Some(stream) = sources.streams.get(source) else {
            return Ok(None);
        };
        let mut facts = sources.gather(&tools, stream).await?;
        if options.prow.is_none()
            && let Ok(config) = &facts.config
        {
            facts.prow = Arc::new(assumed(config));
        }
        let decision = decide(&facts);
        Ok(Some((facts, decision)))
    };
    tokio::select! {
        found = reading => found,
        () = runner.run(CancellationToken::new()) => Err(WatchesStopped.into()),
    }
}

/// A job configuration with every job of a stream.
fn assumed(config: &ReleaseConfig) -> ProwConfig {
    let verified = config.verify.values().flat_map(|one| {
        let aggregator = one.aggregated_prow_job.as_ref();
        let aggregator = aggregator.map(|it| it.aggregator().to_owned());
        let job = one.prow_job.as_ref().map(|job| job.name.clone());
        job.into_iter().chain(aggregator)
    });
    let periodics = config.periodic.values();
    let periodics = periodics.filter_map(|one| one.prow_job.as_ref().map(|job| job.name.clone()));
    let upgrades = config.upgraded_on().map(|(_, job)| job.to_owned());
    let names: BTreeSet<String> = verified.chain(periodics).chain(upgrades).collect();
    let periodic = |name: String| {
        let periodic = Periodic {
            name: name.clone(),
            cluster: "unknown".to_owned(),
            ..Periodic::default()
        };
        (name, periodic)
    };
    ProwConfig {
        periodics: names.into_iter().map(periodic).collect(),
        scheduler_enabled: false,
    }
}
