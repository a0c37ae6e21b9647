//! Releases in `neap up`: both controllers, the imports of ImageStreams and a small Prow in this process.
//!
//! They start with the first ImageStream or ReleasePayload. Sources, targets, Jobs and ProwJobs are all in the
//! namespace `releases`; the periodics of Prow are in its ConfigMap `prow-jobs`.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use k8s_openapi::{
    api::core::v1::ConfigMap,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, api::PostParams};
use neap_emulators::prow::{self, ProwOptions};
use neap_kit::{context::Context, manager::Component};
use neap_release::{
    payload::controller::SharedQualifiers,
    stream::{
        config_files::ConfigFiles,
        options::StreamOptions,
        prow_config::{ProwConfig, SharedProwConfig},
    },
};

use super::cli::controllers::{not_set_up, streams, verdicts};
use crate::{areas::Host, exit::Failure};

/// The namespace of everything.
const NAMESPACE: &str = "releases";
/// The ConfigMap with the job configuration of Prow.
const JOBS: &str = "prow-jobs";
/// The time between two reads of that ConfigMap.
const JOBS_INTERVAL: Duration = Duration::from_secs(5);

/// The time between two attempts to install a definition.
const INSTALL_INTERVAL: Duration = Duration::from_secs(1);

/// Flags of `neap up` for releases.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct ReleaseUpOptions {
    /// Do not run the release controllers, for example to install deploy/release instead
    #[arg(long, conflicts_with = "bare")]
    without_release: bool,

    /// File or folder with Prow jobs for the release controllers, in place of the ConfigMap prow-jobs
    #[arg(long, value_name = "PATH", conflicts_with = "bare")]
    prow_jobs: Vec<PathBuf>,

    /// Do not run the small Prow: another one runs the ProwJobs
    #[arg(long, conflicts_with = "bare")]
    without_prow: bool,
}

/// Adds the controllers. They start with the first object of one of their kinds.
pub(super) fn host(host: &mut Host<'_>, options: &ReleaseUpOptions) -> Result<(), Failure> {
    if options.without_release {
        return Ok(());
    }
    let files = ConfigFiles {
        jobs: options.prow_jobs.clone(),
        qualifiers: None,
    };
    let prow = files
        .prow()
        .map_err(|error| not_set_up(&error.to_string()))?;
    let reads_map = options.prow_jobs.is_empty();
    let prow = SharedProwConfig::new(prow);
    let context = host.context().clone();
    let log_server = (!options.without_prow).then(|| host.api_url().to_owned());
    let registry = super::registry::add(host)?;
    let starts_with = registry.starts_with();
    let first_use = host.when_used(move || {
        let mut stream_options = StreamOptions::new(NAMESPACE, NAMESPACE, NAMESPACE);
        stream_options.garbage.grace = Duration::from_mins(1);
        stream_options.registry = Some(registry.host());
        let mut all = streams(&context, stream_options, prow.clone())?;
        all.extend(verdicts(
            &context,
            NAMESPACE,
            Some(NAMESPACE.to_owned()),
            SharedQualifiers::default(),
        )?);
        all.push(registry.component(&context)?);
        if let Some(log_server) = log_server {
            all.extend(small_prow(&context, log_server)?);
        }
        if reads_map {
            all.push(jobs_component(&context, prow));
        }
        Ok(all)
    });
    starts_with(first_use);
    Ok(())
}

/// A small Prow, whose logs are read from the API server, and the component that installs its definition.
fn small_prow(context: &Context, log_server: String) -> Result<Vec<Component>, Failure> {
    let definitions = prow::definitions().map_err(|error| not_set_up(&error.to_string()))?;
    let (client, clock) = (context.client.clone(), context.clock);
    let install = Component::new("release-prow-definitions", move |stop| async move {
        let api: Api<CustomResourceDefinition> = Api::all(client);
        for definition in definitions {
            loop {
                match api.create(&PostParams::default(), &definition).await {
                    Ok(_) => break,
                    Err(kube::Error::Api(status)) if status.is_already_exists() => break,
                    Err(error) => {
                        tracing::debug!(%error, "the definition of ProwJobs is not installed yet");
                    }
                }
                clock.sleep(INSTALL_INTERVAL).await;
            }
        }
        stop.cancelled().await;
    });
    let options = ProwOptions {
        log_server: Some(log_server),
        ..ProwOptions::default()
    };
    let prow = prow::components(context, &options);
    let mut all = prow.map_err(|error| not_set_up(&error.to_string()))?;
    all.push(install);
    Ok(all)
}

/// Reads the job configuration from its ConfigMap, again and again.
fn jobs_component(context: &Context, prow: SharedProwConfig) -> Component {
    let (client, clock) = (context.client.clone(), context.clock);
    Component::new("release-prow-jobs", move |stop| async move {
        let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
        loop {
            if let Ok(found) = maps.get_opt(JOBS).await {
                let data = found.and_then(|map| map.data).unwrap_or_default();
                let files = data
                    .iter()
                    .map(|(file, text)| (file.as_str(), text.as_str()));
                match ProwConfig::parse(files) {
                    Ok(config) => {
                        prow.replace(config);
                    }
                    Err(error) => tracing::warn!(%error, "the job configuration stays as it was"),
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock.sleep(JOBS_INTERVAL) => {}
            }
        }
    })
}
