//! The processes of a release controller, with the options of a workload.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use neap_emulators::prow::{self, ProwOptions};
use neap_kit::{context::Context, manager::Component, watch::WatchesStopped};
use neap_release::{
    config::ReleaseQualifiers,
    oci::client::RegistryClient,
    payload::{
        controller::{self as payloads, PayloadOptions},
        facts::Timeouts,
        run_keys::RunKeys,
    },
    payload_image::image::ImageConfig,
    stream::{
        controller::{self as streams, Services},
        options::StreamOptions,
        prow_config::{ProwConfig, SharedProwConfig},
        release_reader::{CachedReader, ReleaseInfo, ReleaseReader},
    },
};
use neap_trial::{Workload, external::ExternalClient};
use parking_lot::RwLock;

use crate::{
    jobs::{self, Failures},
    registry::{self, HOST},
};

/// The namespace of all objects.
pub(crate) const NAMESPACE: &str = "default";

/// Reads the label of a release image; the sample images have no metadata.
#[derive(Debug)]
struct Labels(RegistryClient);

impl ReleaseReader for Labels {
    fn read<'a>(&'a self, pull_spec: &'a str) -> BoxFuture<'a, Result<ReleaseInfo, String>> {
        let read = async move {
            let image = pull_spec.parse().map_err(|error| format!("{error}"))?;
            let said = |error: neap_release::oci::client::Error| neap_kit::why::chain(&error);
            let manifest = self.0.manifest(&image).await.map_err(said)?;
            let config = self.0.config(&image, &manifest).await.map_err(said)?;
            let config = ImageConfig::read(&config).map_err(|error| error.to_string())?;
            let name = config.label(neap_release::payload_image::image::RELEASE);
            Ok(ReleaseInfo {
                name: name.unwrap_or_default().to_owned(),
                previous: Vec::new(),
            })
        };
        read.boxed()
    }
}

/// The options that all workloads share.
pub(crate) fn options() -> StreamOptions {
    let mut options = StreamOptions::new(NAMESPACE, NAMESPACE, NAMESPACE);
    // Streams next to which no write succeeds are watched as well.
    let poisoned = neap_trial::poisoned_objects::NAMESPACE;
    options.release_namespaces.push(poisoned.to_owned());
    options.registry = Some(HOST.to_owned());
    options
}

/// The Prow configuration with these periodics.
fn prow_config(jobs: &[&str]) -> ProwConfig {
    let periodics = jobs.iter().map(|name| {
        let pod = serde_json::json!({"containers": [{"name": "test", "image": "test"}]});
        let periodic = neap_release::stream::prow_config::Periodic {
            name: (*name).to_owned(),
            cluster: "build01".to_owned(),
            spec: Some(pod),
            ..Default::default()
        };
        (periodic.name.clone(), periodic)
    });
    ProwConfig {
        periodics: periodics.collect(),
        scheduler_enabled: false,
    }
}

fn run_keys(context: &Context) -> RunKeys {
    RunKeys::new(context.writer("release-keys"), NAMESPACE, || Some([7; 32]))
}

/// Adds both controllers, Prow and the Jobs of the cluster, each in a process of its own.
pub(crate) fn with_processes(
    workload: Workload,
    options: &StreamOptions,
    prow_jobs: &'static [&'static str],
    failures: Failures,
) -> Workload {
    let options = Arc::new(options.clone());
    workload
        .process("controller", None, move |context, external| {
            controller(context, external, options.clone(), prow_jobs)
        })
        .actor("payloads", |context| {
            let options = PayloadOptions {
                timeouts: Timeouts::default(),
                run_keys: run_keys(context),
                qualifiers: Arc::new(RwLock::new(Arc::new(ReleaseQualifiers::default()))),
            };
            Ok(vec![payloads::component(context, options)?])
        })
        .actor("prow", |context| {
            prow::components(context, &ProwOptions::default())
        })
        .process("cluster", None, move |context, external| {
            let Some(registry) = registry::client(external, context.clock) else {
                return Ok(Vec::new());
            };
            Ok(vec![jobs::component(context, registry, failures)?])
        })
}

fn controller(
    context: &Context,
    external: &ExternalClient,
    options: Arc<StreamOptions>,
    prow_jobs: &[&str],
) -> Result<Vec<Component>, WatchesStopped> {
    let Some(registry) = registry::client(external, context.clock) else {
        return Ok(Vec::new());
    };
    let services = Services {
        options,
        prow: SharedProwConfig::new(prow_config(prow_jobs)),
        run_keys: run_keys(context),
        reader: CachedReader::new(Arc::new(Labels(registry))),
    };
    streams::components(context, services)
}
