//! Records the results of upgrades in their Secret, every two minutes.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use k8s_openapi::{
    ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use neap_kit::{
    apply::{Error, Writer},
    context::Context,
    key::Key,
    manager::Component,
    why::chain,
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::Sources;
use crate::stream::upgrade_graph::{MAX_BYTES, SECRET, SECRET_KEY, UpgradeGraph};

/// The name of the component and of its field manager.
const NAME: &str = "release-upgrades";
/// The time between two looks at all ProwJobs.
const INTERVAL: Duration = Duration::from_mins(2);

/// The component that records. Beside the original it does nothing: that one writes the same Secret.
pub(super) fn component(context: &Context, sources: &Sources) -> Component {
    let options = &sources.services.options;
    let namespace = options.release_namespaces.first();
    let failed = Arc::<AtomicBool>::default();
    let key = Key::new(namespace.map(String::as_str).unwrap_or_default(), SECRET);
    let telemetry = context.watches.process().telemetry();
    let gauge = SaveError {
        key: key.clone(),
        failed: failed.clone(),
    };
    // Alerts of the original ask for exactly this name.
    telemetry.compatible(|registry| registry.register_collector(Box::new(gauge)));
    let recorder = Recorder {
        sources: sources.clone(),
        writer: context.writer(NAME),
        key,
        failed,
    };
    let is_active = !options.dry_run && !options.handed_over_only;
    let context = context.clone();
    Component::new(NAME, move |stop| async move {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = context.clock.sleep(INTERVAL) => {}
            }
            if is_active && context.leadership.check().is_ok() {
                recorder.pass().await;
            }
        }
    })
}

struct Recorder {
    sources: Sources,
    writer: Writer,
    key: Key,
    failed: Arc<AtomicBool>,
}

/// The graph was not stored.
#[derive(Debug, thiserror::Error)]
enum SaveProblem {
    #[error(transparent)]
    Write(#[from] Error),
    #[error("the graph cannot be packed")]
    Pack(#[from] std::io::Error),
    #[error("the graph has {0} bytes, and a Secret has room for {MAX_BYTES}")]
    TooLarge(usize),
}

impl Recorder {
    async fn pass(&self) {
        if !self.sources.all_runs.is_synced() || !self.sources.periodic_runs.is_synced() {
            return;
        }
        let result = self.record().await;
        if let Err(error) = &result {
            tracing::warn!(secret = %self.key, "the results of upgrades were not stored: {}", chain(error));
        }
        self.failed.store(result.is_err(), Ordering::Relaxed);
    }

    async fn record(&self) -> Result<(), SaveProblem> {
        let secret = self.writer.find::<Secret>(&self.key).await?;
        let stored = secret
            .as_ref()
            .and_then(|secret| secret.data.as_ref()?.get(SECRET_KEY));
        let mut graph = match stored.map(|stored| UpgradeGraph::read(&stored.0)) {
            None => UpgradeGraph::default(),
            Some(Ok(graph)) => graph,
            Some(Err(error)) => {
                // The ProwJobs that are still there fill it again.
                tracing::warn!(secret = %self.key, %error, "the stored results of upgrades cannot be read");
                UpgradeGraph::default()
            }
        };
        let options = &self.sources.services.options;
        let runs = self.sources.all_runs.list(&options.prow_namespace);
        let periodics = self.sources.periodic_runs.list(&options.prow_namespace);
        let mut changed = false;
        for run in runs.iter().chain(&periodics) {
            changed |= graph.record_run(run, options.architecture.as_str());
        }
        if !changed {
            return Ok(());
        }
        let packed = graph.store()?;
        if packed.len() > MAX_BYTES {
            return Err(SaveProblem::TooLarge(packed.len()));
        }
        self.write(secret, packed).await?;
        Ok(())
    }

    /// Replaces the value, in the state that was read; another writer's change is merged in the next pass.
    async fn write(&self, secret: Option<Secret>, packed: Vec<u8>) -> Result<(), Error> {
        let value = (SECRET_KEY.to_owned(), ByteString(packed));
        let Some(mut secret) = secret else {
            let secret = Secret {
                metadata: ObjectMeta {
                    name: Some(self.key.name().to_owned()),
                    namespace: Some(self.key.namespace().to_owned()),
                    ..ObjectMeta::default()
                },
                data: Some(BTreeMap::from([value])),
                ..Secret::default()
            };
            return self.writer.create(&secret).await.map(drop);
        };
        secret.data.get_or_insert_default().extend([value]);
        self.writer.replace(&secret).await.map(drop)
    }
}

/// Whether the last graph was not stored.
#[derive(Debug)]
struct SaveError {
    key: Key,
    failed: Arc<AtomicBool>,
}

impl Collector for SaveError {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Whether the results of upgrades could not be stored";
        let name = "release_controller_release_upgrade_graph_save_error";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        let labels = [
            ("namespace", self.key.namespace()),
            ("name", self.key.name()),
        ];
        let value = i64::from(self.failed.load(Ordering::Relaxed));
        ConstGauge::new(value).encode(metric.encode_family(&labels)?)
    }
}
