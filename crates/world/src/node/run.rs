//! The node at work: one pod at a time is looked at, and brought to what was decided.

mod accept;
mod access;
mod end;
mod follow;
mod hook;
mod local;
mod mount;
mod node;
mod probing;
mod start;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use k8s_openapi::api::{
    core::v1::{Pod, Service as Svc},
    discovery::v1::EndpointSlice,
};
use neap_kit::{
    controller::{self, Backoff},
    manager::Service,
    site::Site,
    watch::{Ended, Index},
};
use tokio::{sync::mpsc, task::JoinSet};

pub use self::access::Access;
use self::{local::Locals, node::Node};
use super::{
    address::Block,
    gather::{Gatherer, references},
    image::Images,
    process::Starter,
};

const NAME: &str = "kubelet";
/// What could not be started is tried again after this time.
const TRY_AGAIN: Duration = Duration::from_secs(10);
/// Whether a pod is gone is looked at after this time, if nobody says so before.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// So many processes may have begun before anybody looks.
const BEGUN: usize = 1024;
/// Processes have so long to end when the node does. Less than whoever stops the node waits, so
/// that they are asked before they are killed.
const LAST_GRACE: Duration = Duration::from_secs(4);

/// A node on this machine.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the node is called.
    pub name: String,
    /// Its own folder: pods and logs.
    pub folder: PathBuf,
    /// The program that launches containers: `neap`.
    pub launcher: PathBuf,
    /// Which programs images stand for.
    pub images: Images,
    /// Its addresses.
    pub block: Block,
    /// Variables for every container. They come before what Services are known by, so that the
    /// API may be elsewhere than its Service says.
    pub environment: BTreeMap<String, String>,
    /// Whether this machine allows namespaces.
    pub rooms: bool,
    /// Whether it allows `/proc` to show a container its own processes alone.
    pub own_proc: bool,
    /// Whether containers that run as root are root of this machine, and may listen on any port.
    pub as_root: bool,
}

/// Runs the pods that are bound to the node.
pub fn service(site: &Site, options: Options) -> Result<Service, Ended> {
    open(site, options).map(|(service, _)| service)
}

/// The same, with a way to the containers for as long as the service runs.
pub fn open(site: &Site, options: Options) -> Result<(Service, Access), Ended> {
    let (pods, services) = (site.all::<Pod>()?, site.all::<Svc>()?);
    let slices = site.all::<EndpointSlice>()?;
    let gatherer = Gatherer::new(site, NAME)?;
    let controller = site.controller(controller::Options {
        backoff: Backoff {
            most: TRY_AGAIN,
            ..Backoff::default()
        },
        ..controller::Options::new(NAME)
    });
    let trigger = controller.trigger();
    let by_part = Index::new(&pods, references);
    follow::part(&gatherer.config_maps, "configmap", &by_part, &trigger);
    follow::part(&gatherer.secrets, "secret", &by_part, &trigger);
    follow::part(&gatherer.claims, "claim", &by_part, &trigger);
    follow::volumes(&gatherer.volumes, &by_part, &trigger);
    follow::pods(&pods, &trigger);
    follow::names(&services, &slices, &pods, &trigger);
    let (lives, begun) = mpsc::channel(BEGUN);
    let node = Arc::new(Node {
        pods: pods.clone(),
        services: services.clone(),
        slices: follow::by_service(&slices),
        gatherer,
        starter: Starter {
            launcher: options.launcher.clone(),
            clock: site.clock,
        },
        hand: site.hand(NAME),
        recorder: site.recorder(NAME),
        clock: site.clock,
        locals: Locals::default(),
        lives,
        trigger,
        options,
    });
    let access = Access::new(&node);
    let service = Service::new(NAME, move |stop| async move {
        let (own, one) = (node.clone(), node.clone());
        let known = async move {
            tokio::join!(pods.synced(), services.synced(), slices.synced());
            own.gatherer.synced().await;
            own.clear_out().await;
        };
        let work = async move {
            let reconcile = move |key| one.clone().reconcile(key);
            controller.run_once_known(known, reconcile, stop).await;
            node.end().await;
        };
        tokio::select! {
            () = work => {}
            () = accompany(begun) => {}
        }
    });
    Ok((service, access))
}

/// Runs what goes with processes, for as long as the node does.
async fn accompany(mut begun: mpsc::Receiver<BoxFuture<'static, ()>>) {
    let mut lives = JoinSet::new();
    loop {
        tokio::select! {
            life = begun.recv() => match life {
                Some(life) => drop(lives.spawn(life)),
                None => return,
            },
            // None of them panics: each tells of that itself.
            Some(_) = lives.join_next() => {}
        }
    }
}
