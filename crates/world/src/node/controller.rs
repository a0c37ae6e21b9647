//! The controller of the node: reconciles one pod at a time.

mod access;
mod admit;
mod enqueue;
mod hooks;
mod mount;
mod pod_state;
mod prober;
mod reconcile;
mod shutdown;
mod start;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use k8s_openapi::api::{
    core::v1::{Pod, Service},
    discovery::v1::EndpointSlice,
};
use neap_kit::{
    context::Context,
    controller::{self, Backoff},
    manager::Component,
    watch::{Index, WatchesStopped},
};
use tokio::{sync::mpsc, task::JoinSet};

pub use self::access::Access;
use self::{pod_state::PodStates, reconcile::NodeReconciler};
use super::{
    address::Block,
    image::ImageTable,
    process::ProcessStarter,
    source_reader::{SourceReader, references},
};

const NAME: &str = "kubelet";
/// The delay before another attempt for a pod that could not be started or cleaned up, and the
/// maximum backoff of failed reconciles.
const RETRY_DELAY: Duration = Duration::from_secs(10);
/// The delay before a deleted pod is checked again, if the watch does not report its deletion
/// before.
const DELETION_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The capacity of the channel of tasks for started processes.
const TASK_CHANNEL_CAPACITY: usize = 1024;
/// The grace period of processes when the node stops. Shorter than the time after which the node
/// itself is killed, so that they are terminated gracefully.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(4);

/// The options of a node on this machine.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// The name of the node.
    pub name: String,
    /// The folder with its pods and logs.
    pub folder: PathBuf,
    /// The program that launches containers: `neap`.
    pub launcher: PathBuf,
    /// The image table.
    pub images: ImageTable,
    /// Its addresses.
    pub block: Block,
    /// Variables for every container. They take precedence over those of Services, so that the API
    /// server may be at another address than its Service.
    pub environment: BTreeMap<String, String>,
    /// Whether this machine allows namespaces.
    pub namespaces: bool,
    /// Whether it allows `/proc` to show only a container's own processes.
    pub own_proc: bool,
    /// Whether containers that run as root are root of this machine, and may listen on any port.
    pub as_root: bool,
    /// Whether pods that use `hostPath` volumes or run as root are refused.
    pub restricted: bool,
}

/// The component that runs the pods bound to the node.
pub fn component(context: &Context, options: NodeOptions) -> Result<Component, WatchesStopped> {
    component_with_access(context, options).map(|(component, _)| component)
}

/// The same, with access to the containers while the component runs.
pub fn component_with_access(
    context: &Context,
    options: NodeOptions,
) -> Result<(Component, Access), WatchesStopped> {
    let (pods, services) = (context.cache::<Pod>()?, context.cache::<Service>()?);
    let slices = context.cache::<EndpointSlice>()?;
    let source_reader = SourceReader::new(context, NAME)?;
    let controller = context.controller(controller::ControllerOptions {
        backoff: Backoff {
            max: RETRY_DELAY,
            ..Backoff::default()
        },
        ..controller::ControllerOptions::new(NAME)
    });
    let enqueuer = controller.enqueuer();
    let by_reference = Index::new(&pods, references);
    enqueue::referenced(
        &source_reader.config_maps,
        "configmap",
        &by_reference,
        &enqueuer,
    );
    enqueue::referenced(&source_reader.secrets, "secret", &by_reference, &enqueuer);
    enqueue::referenced(&source_reader.claims, "claim", &by_reference, &enqueuer);
    enqueue::volumes(&source_reader.volumes, &by_reference, &enqueuer);
    enqueue::pods(&pods, &enqueuer);
    enqueue::service_names(&services, &slices, &pods, &enqueuer);
    let (tasks, started_tasks) = mpsc::channel(TASK_CHANNEL_CAPACITY);
    let node = Arc::new(NodeReconciler {
        pods: pods.clone(),
        services: services.clone(),
        slices: enqueue::by_service(&slices),
        source_reader,
        starter: ProcessStarter {
            launcher: options.launcher.clone(),
            clock: context.clock,
        },
        writer: context.writer(NAME),
        recorder: context.event_recorder(NAME),
        clock: context.clock,
        pod_states: PodStates::default(),
        tasks,
        enqueuer,
        options,
    });
    let access = Access::new(&node);
    let component = Component::new(NAME, move |stop| async move {
        let (own, one) = (node.clone(), node.clone());
        let synced = async move {
            tokio::join!(pods.synced(), services.synced(), slices.synced());
            own.source_reader.synced().await;
            own.remove_stale_folders().await;
        };
        let work = async move {
            let reconcile = move |key| one.clone().reconcile(key);
            controller.run_when(synced, reconcile, stop).await;
            node.shutdown().await;
        };
        tokio::select! {
            () = work => {}
            () = run_tasks(started_tasks) => {}
        }
    });
    Ok((component, access))
}

/// Runs the tasks of started processes while the node runs.
async fn run_tasks(mut started_tasks: mpsc::Receiver<BoxFuture<'static, ()>>) {
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            task = started_tasks.recv() => match task {
                Some(task) => drop(tasks.spawn(task)),
                None => return,
            },
            // None of them panics: each reports a panic itself.
            Some(_) = tasks.join_next() => {}
        }
    }
}
