//! The node at work: one pod at a time is looked at, and brought to what was decided.

mod access;
mod local;
mod probing;

use std::{
    collections::BTreeMap,
    fs, io,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{
    ConfigMap, Container, PersistentVolumeClaim, Pod, Secret, Service as Svc,
};
use kube::ResourceExt;
use neap_kit::{
    apply::{Error, Hand},
    clock::Clock,
    controller::{self, Controller, Outcome, Trigger},
    event::{Note, Recorder},
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended, Index},
};
use nix::sys::signal::Signal;
use parking_lot::Mutex;
use tokio::{sync::mpsc, task::JoinSet};

pub use self::access::Access;
use self::{
    local::{Local, Locals},
    probing::Probing,
};
use super::{
    address::Block,
    gather::{FolderOf, Gatherer, reference, references},
    hosts::hosts,
    image::Images,
    pod::{Decision, Facts, Obstacle, Stop, decide},
    process::{Log, Started, Starter},
    recipe::{Kitchen, recipe},
    source::Sources,
    volume::{Content, content, write},
};

const NAME: &str = "kubelet";
/// What could not be started is tried again after this time.
const TRY_AGAIN: Duration = Duration::from_secs(10);
/// So many processes may have ended before anybody looks.
const ENDS: usize = 1024;

/// A node on this machine.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the node is called.
    pub name: String,
    /// Its own folder: pods, volumes and logs.
    pub folder: PathBuf,
    /// The program that launches containers: `neap`.
    pub launcher: PathBuf,
    /// Which programs images stand for.
    pub images: Images,
    /// Its addresses.
    pub block: Block,
    /// Variables for every container, such as where the API is.
    pub environment: BTreeMap<String, String>,
    /// Whether this machine allows namespaces.
    pub rooms: bool,
}

/// Runs the pods that are bound to the node.
pub fn service(site: &Site, options: Options) -> Result<Service, Ended> {
    open(site, options).map(|(service, _)| service)
}

/// The same, with a way to the containers for as long as the service runs.
pub fn open(site: &Site, options: Options) -> Result<(Service, Access), Ended> {
    let (pods, services) = (site.all::<Pod>()?, site.all::<Svc>()?);
    let (config_maps, secrets) = (site.all::<ConfigMap>()?, site.all::<Secret>()?);
    let claims = site.all::<PersistentVolumeClaim>()?;
    let controller = Controller::new(controller::Options::new(NAME), site.clock);
    let trigger = controller.trigger();
    let by_part = Index::new(&pods, references);
    follow(&config_maps, "configmap", &by_part, &trigger);
    follow(&secrets, "secret", &by_part, &trigger);
    follow(&claims, "claim", &by_part, &trigger);
    let every = trigger.clone();
    pods.follow(move |change| every.changed(change.key()));
    follow_names(&services, &pods, &trigger);
    let (lives, begun) = mpsc::channel(ENDS);
    let gatherer = Gatherer {
        config_maps: config_maps.clone(),
        secrets: secrets.clone(),
        claims: claims.clone(),
        hand: site.hand(NAME),
        clock: site.clock,
        tokens: Mutex::default(),
        folder_of: folders(&options),
    };
    let starter = Starter {
        launcher: options.launcher.clone(),
        clock: site.clock,
    };
    let node = Arc::new(Node {
        pods: pods.clone(),
        services: services.clone(),
        gatherer,
        starter,
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
        let known = async move {
            tokio::join!(
                pods.synced(),
                services.synced(),
                config_maps.synced(),
                secrets.synced(),
                claims.synced()
            );
        };
        let reconcile = move |key| node.clone().reconcile(key);
        tokio::select! {
            () = controller.run_once_known(known, reconcile, stop) => {}
            () = accompany(begun) => {}
        }
    });
    Ok((service, access))
}

/// The folder of a claim is called like its volume.
fn folders(options: &Options) -> FolderOf {
    let volumes = options.folder.join("volumes");
    Box::new(move |claim| {
        let volume = claim.spec.as_ref()?.volume_name.as_ref()?;
        Some(volumes.join(volume))
    })
}

/// Every pod knows the names of all services.
fn follow_names(services: &Cache<Svc>, pods: &Cache<Pod>, trigger: &Trigger<Key>) {
    let (pods, trigger) = (pods.clone(), trigger.clone());
    services.follow(move |_| {
        for pod in pods.list("") {
            trigger.resync(Key::of(&*pod));
        }
    });
}

/// Pods are looked at when something that they are made of changes.
fn follow<K>(cache: &Cache<K>, kind: &'static str, by_part: &Index<Pod>, trigger: &Trigger<Key>)
where
    K: kube::Resource + Send + Sync + 'static,
{
    let (by_part, trigger) = (by_part.clone(), trigger.clone());
    cache.follow(move |change| {
        let key = change.key();
        let part = reference(kind, key.namespace(), key.name());
        for pod in by_part.get(&part) {
            trigger.changed(Key::of(&*pod));
        }
    });
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
            Some(_) = lives.join_next() => {}
        }
    }
}

struct Node {
    options: Options,
    pods: Cache<Pod>,
    services: Cache<Svc>,
    gatherer: Gatherer,
    starter: Starter,
    hand: Hand,
    recorder: Recorder,
    clock: Clock,
    locals: Locals,
    lives: mpsc::Sender<BoxFuture<'static, ()>>,
    trigger: Trigger<Key>,
}

impl Node {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let ours = |pod: &Arc<Pod>| {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
            node == Some(&self.options.name)
        };
        let Some(pod) = self.pods.get(&key).filter(ours) else {
            self.forget(&key);
            return Ok(Outcome::Gone);
        };
        if self.locals.is_of_another(&key, &pod) {
            self.forget(&key);
        }
        let Some(pod) = self.accept(&key, &pod) else {
            return Ok(Outcome::Again(TRY_AGAIN));
        };
        let sources = self.gatherer.sources(&pod).await?;
        let volumes = self.mount(&pod, &sources);
        if let Err(obstacle) = &volumes {
            let note = Note::warning(obstacle.reason, obstacle.message.clone());
            self.recorder.tell(&pod, &note).await;
        }
        let decision = self
            .bring_about(&key, &pod, &sources, volumes.as_ref())
            .await;
        self.report(&pod, &decision).await?;
        if decision.gone {
            self.hand.remove(&pod, Some(0)).await?;
        }
        let obstructed = volumes.is_err() || self.locals.is_obstructed(&key);
        let again = decision
            .again
            .into_iter()
            .chain(obstructed.then_some(TRY_AGAIN))
            .min();
        Ok(again.map_or(Outcome::Settled, Outcome::Again))
    }

    /// The pod with the address that it has, or is given now; nothing if there is none left.
    fn accept(&self, key: &Key, pod: &Pod) -> Option<Pod> {
        let block = self.options.block;
        let now = self.clock.now();
        let own = pod
            .status
            .as_ref()
            .and_then(|status| status.pod_ip.as_ref());
        let own = own.and_then(|address| address.parse::<Ipv4Addr>().ok());
        let on_host = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
        let address = self.locals.accept(key, pod, now, |taken| {
            if on_host {
                return Some(block.node());
            }
            let kept = own.filter(|&address| block.has_pod(address) && !taken.contains(&address));
            kept.or_else(|| block.free(|address| taken.contains(&address)))
        })?;
        let mut pod = pod.clone();
        let status = pod.status.get_or_insert_default();
        status.pod_ip = Some(address.to_string());
        status.host_ip = Some(block.node().to_string());
        Some(pod)
    }

    /// Starts and stops until nothing is left to do, and returns the last decision.
    async fn bring_about(
        self: &Arc<Self>,
        key: &Key,
        pod: &Pod,
        sources: &Sources,
        volumes: Result<&BTreeMap<String, PathBuf>, &Obstacle>,
    ) -> Decision {
        self.locals.try_again(key);
        loop {
            let decision = decide(&self.facts(key, pod, volumes));
            for name in &decision.start {
                if let Ok(volumes) = volumes {
                    self.start(key, name, sources, volumes).await;
                }
            }
            for (name, how) in &decision.stop {
                let signal = match how {
                    Stop::Ask => Signal::SIGTERM,
                    Stop::Kill => Signal::SIGKILL,
                };
                self.locals.stop(key, name, signal, self.clock.now());
                if *how == Stop::Ask {
                    let note = Note::normal("Killing", format!("Stopping container {name}"));
                    self.recorder.tell(pod, &note).await;
                }
            }
            if decision.start.is_empty() {
                return decision;
            }
        }
    }

    fn facts(
        &self,
        key: &Key,
        pod: &Pod,
        volumes: Result<&BTreeMap<String, PathBuf>, &Obstacle>,
    ) -> Facts {
        let now = self.clock.now();
        let local = self.locals.get(key, pod, now);
        Facts {
            pod: pod.clone(),
            containers: local.containers,
            address: IpAddr::V4(local.address),
            node_address: IpAddr::V4(self.options.block.node()),
            accepted: local.accepted,
            volumes: volumes.map(drop).map_err(Clone::clone),
            ending_since: local.ending_since,
            now,
        }
    }

    /// Puts the volumes of a pod in place, and says where they are.
    fn mount(&self, pod: &Pod, sources: &Sources) -> Result<BTreeMap<String, PathBuf>, Obstacle> {
        let folder = self.folder(pod);
        let failed = |error: io::Error| Obstacle {
            reason: "FailedMount",
            message: error.to_string(),
        };
        fs::create_dir_all(&folder).map_err(failed)?;
        let services = self.services.list("");
        let text = hosts(pod, services.iter().map(|service| &**service));
        // In place: containers hold on to this very file.
        fs::write(folder.join("hosts"), text).map_err(failed)?;
        let mut places = BTreeMap::new();
        for volume in pod
            .spec
            .iter()
            .flat_map(|spec| spec.volumes.iter().flatten())
        {
            let own = folder.join("volumes").join(&volume.name);
            let place = match content(volume, sources)? {
                Content::Files(files) => write(&own, &files).map(|_| own),
                Content::Empty => fs::create_dir_all(&own).map(|()| own),
                Content::Machine(path) => fs::create_dir_all(&path).map(|()| path),
            };
            places.insert(volume.name.clone(), place.map_err(failed)?);
        }
        Ok(places)
    }

    fn address(&self, pod: &Pod) -> IpAddr {
        let own = pod
            .status
            .as_ref()
            .and_then(|status| status.pod_ip.as_ref());
        let own = own.and_then(|address| address.parse().ok());
        own.unwrap_or(IpAddr::V4(self.options.block.node()))
    }

    fn folder(&self, pod: &Pod) -> PathBuf {
        self.options
            .folder
            .join("pods")
            .join(pod.uid().unwrap_or_default())
    }

    /// Starts a container, or notes why that is not possible.
    async fn start(
        self: &Arc<Self>,
        key: &Key,
        name: &str,
        sources: &Sources,
        volumes: &BTreeMap<String, PathBuf>,
    ) {
        let Some(container) = container(&sources.pod, name) else {
            return;
        };
        let folder = self.folder(&sources.pod);
        let kitchen = Kitchen {
            images: &self.options.images,
            rooms: self.options.rooms,
            given: &self.options.environment,
            volumes,
            hosts: &folder.join("hosts"),
            folder: &folder.join("containers").join(name),
        };
        let started = match recipe(container, sources, &kitchen) {
            Ok(launch) => {
                let log = Log::of(kitchen.folder);
                let started = self.starter.start(launch, kitchen.folder, &log).await;
                started.map_err(|error| Obstacle {
                    reason: "RunContainerError",
                    message: error.to_string(),
                })
            }
            Err(obstacle) => Err(obstacle),
        };
        let note = match started {
            Ok(started) => self.begun(key, container, sources, started).await,
            Err(obstacle) => {
                let note = Note::warning("Failed", obstacle.message.clone());
                self.locals.obstruct(key, name, obstacle);
                note
            }
        };
        self.recorder.tell(&sources.pod, &note).await;
    }

    /// Notes a process, and sees to what it prints and to its end.
    async fn begun(
        self: &Arc<Self>,
        key: &Key,
        container: &Container,
        sources: &Sources,
        started: Started,
    ) -> Note {
        let name = container.name.clone();
        let running = started.running.clone();
        let turn = self
            .locals
            .begin(key, container, running.clone(), self.clock.now());
        let probing = Probing {
            node: Arc::downgrade(self),
            key: key.clone(),
            pod: sources.pod.clone(),
            container: container.clone(),
            turn,
            address: self.address(&sources.pod),
            running,
            folder: self.folder(&sources.pod).join("containers").join(&name),
            clock: self.clock,
        };
        let (node, key, of) = (Arc::downgrade(self), key.clone(), name.clone());
        let life = async move {
            let code = tokio::select! {
                code = started.live(probing.clock) => code,
                () = probing.run() => return,
            };
            if let Some(node) = node.upgrade() {
                node.locals.end(&key, &of, turn, code, node.clock.now());
                node.trigger.changed(key);
            }
        };
        // Only a node that has ended listens no more, and then its processes end as well.
        let _ = self.lives.send(Box::pin(life)).await;
        Note::normal("Started", format!("Started container {name}"))
    }

    /// One write, and only if it says something new.
    async fn report(&self, pod: &Pod, decision: &Decision) -> Result<(), Error> {
        let known = self.pods.get(&Key::of(pod));
        let known = known.filter(|known| known.uid() == pod.uid());
        if known.as_ref().and_then(|pod| pod.status.as_ref()) == Some(&decision.status) {
            return Ok(());
        }
        let mut pod = pod.clone();
        pod.status = Some(decision.status.clone());
        match self.hand.replace_status(&pod).await {
            // It has changed since, and is looked at again because of that.
            Ok(_) | Err(Error::Replaced(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Ends what is left of a pod that is no longer there.
    fn forget(&self, key: &Key) {
        let Some(Local { uid, .. }) = self.locals.remove(key) else {
            return;
        };
        self.gatherer.forget(&uid);
        let folder = self.options.folder.join("pods").join(&uid);
        if let Err(error) = fs::remove_dir_all(&folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(pod = %key, %error, "the folder of a pod could not be removed");
        }
    }
}

fn container<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    let mut all = spec
        .init_containers
        .iter()
        .flatten()
        .chain(&spec.containers);
    all.find(|container| container.name == name)
}
