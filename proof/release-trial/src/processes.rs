//! The processes of a release controller, with the options of a workload.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use kube::CustomResourceExt;
use neap_emulators::prow::{self, ProwOptions};
use neap_kit::{context::Context, manager::Component, watch::WatchesStopped};
use neap_release::{
    api::release_payload_definition,
    image_stream::api::ImageStream,
    oci::client::RegistryClient,
    payload::{
        controller::{self as payloads, PayloadOptions, SharedQualifiers},
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
use neap_trial::{UserRequest, Workload, external::ExternalClient};

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
    fn read<'a>(
        &'a self,
        _: &'a str,
        pull_spec: &'a str,
    ) -> BoxFuture<'a, Result<ReleaseInfo, String>> {
        let read = async move {
            let image = pull_spec.parse().map_err(|error| format!("{error}"))?;
            let said = |error: neap_release::oci::client::Error| neap_kit::why::chain(&error);
            let manifest = self.0.manifest(&image).await.map_err(said)?;
            let config = self.0.config(&image, &manifest).await.map_err(said)?;
            let config = ImageConfig::read(&config).map_err(|error| error.to_string())?;
            let name = config.label(neap_release::payload_image::image::RELEASE);
            Ok(ReleaseInfo {
                name: name.unwrap_or_default().to_owned(),
                ..ReleaseInfo::default()
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
    let writer = context.writer("release-keys");
    RunKeys::new(writer, context.clock, NAMESPACE, || Some([7; 32]))
}

/// How many processes run a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replicas {
    /// One, which always leads.
    One,
    /// Two, which elect a leader.
    Two,
}

/// The names of the processes of each controller, and the Lease that they compete for.
const CONTROLLERS: [&str; 2] = ["controller", "controller-two"];
const PAYLOADS: [&str; 2] = ["payloads", "payloads-two"];
const CONTROLLER_LEASE: &str = "release-controller";
const PAYLOAD_LEASE: &str = "release-payload-controller";

/// Adds both controllers, Prow and the Jobs of the cluster, each in a process of its own.
pub(crate) fn with_processes(
    mut workload: Workload,
    options: &StreamOptions,
    replicas: Replicas,
    prow_jobs: &'static [&'static str],
    failures: Failures,
) -> Workload {
    let options = Arc::new(options.clone());
    let (count, elected) = match replicas {
        Replicas::One => (1, None),
        Replicas::Two => (2, Some((CONTROLLER_LEASE, PAYLOAD_LEASE))),
    };
    for name in &CONTROLLERS[..count] {
        let options = options.clone();
        let lease = elected.map(|(lease, _)| lease);
        workload = workload.process(name, lease, move |context, external| {
            controller(context, external, options.clone(), prow_jobs)
        });
    }
    for name in &PAYLOADS[..count] {
        let lease = elected.map(|(_, lease)| lease);
        workload = workload.process(name, lease, |context, _| payload_controller(context));
    }
    workload
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

/// Adds the definitions that the processes read.
pub(crate) fn with_definitions(mut workload: Workload) -> Workload {
    let prow_jobs = prow::definitions().unwrap_or_default();
    let ours = [release_payload_definition(), ImageStream::crd()];
    for definition in prow_jobs.into_iter().chain(ours) {
        let definition = serde_json::to_value(definition).unwrap_or_default();
        workload = workload.given(UserRequest::Create(definition));
    }
    workload
}

fn payload_controller(context: &Context) -> Result<Vec<Component>, WatchesStopped> {
    let options = PayloadOptions {
        timeouts: Timeouts::default(),
        run_keys: run_keys(context),
        qualifiers: SharedQualifiers::default(),
        job_namespace: Some(NAMESPACE.to_owned()),
    };
    payloads::components(context, options)
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
