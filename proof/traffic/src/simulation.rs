//! All parts of a simulated run, and its cycles.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Result, bail};
use neap_idle::{
    operator::prove::ResolverProver,
    resolver::{drain::DrainTimeouts, net::Net},
};
use neap_kit::clock::Clock;
use parking_lot::Mutex;
use tokio::{sync::watch, task::JoinSet};
use tokio_util::task::TaskTracker;

use crate::{
    addresses::{self, INTERNAL, SHARED, is_pod},
    data_plane::{DataPlane, NODES},
    environment::{Addresses, RESOLVER, SLICES, TestEnvironment, WEB},
    ledger::Ledger,
    load::{Destination, Load, Router},
    memory::{Memory, Route},
    pod_simulator::{self, PodSimulator},
    pods::Pods,
    resolvers::ResolverSet,
    run::{Deviation, RunOptions},
};

/// Resolvers, on the first nodes.
const RESOLVERS: usize = 2;
/// Time beyond the lag of the data plane for which terminating pods accept connections.
const LINGER_MARGIN: Duration = Duration::from_millis(500);
/// Time to wait for anything that must happen.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_mins(10);

/// All parts of a simulated run.
pub(crate) struct Simulation {
    options: RunOptions,
    pub(crate) environment: TestEnvironment,
    planes: DataPlanes,
    wanted: watch::Receiver<i32>,
    pub(crate) counts: Arc<SimulationCounts>,
    resolvers: ResolverSet,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) load: Arc<Load>,
    /// Why the cluster stopped, if it did.
    failed: watch::Receiver<Option<String>>,
    _tasks: JoinSet<()>,
}

/// What is counted besides requests.
#[derive(Debug, Default)]
pub(crate) struct SimulationCounts {
    /// How often replicas were set to zero.
    zeros: AtomicU64,
    /// How often that happened while a node with a resolver led to none.
    pub(crate) unproved: AtomicU64,
    /// Connections that a resolver cut off when it terminated.
    pub(crate) cut_off: AtomicU64,
}

impl SimulationCounts {
    fn zero(&self, plane: &DataPlane) {
        self.zeros.fetch_add(1, Ordering::SeqCst);
        let reached = (0..RESOLVERS).all(|node| {
            let shown = plane.shown(node);
            shown.iter().any(|place| !is_pod(*place))
        });
        self.unproved
            .fetch_add(u64::from(!reached), Ordering::SeqCst);
    }
}

fn pods(options: RunOptions, clock: Clock, memory: Memory, ledger: Arc<Ledger>) -> Arc<Pods> {
    let linger = match options.deviation {
        Deviation::PodsLeaveAtOnce => Duration::ZERO,
        _ => options.cell.lags() + LINGER_MARGIN,
    };
    Arc::new(Pods {
        memory,
        clock,
        ledger,
        protocol: options.cell.protocol,
        tasks: TaskTracker::new(),
        linger,
        running: Mutex::default(),
    })
}

/// Runs the wanted number of pods. The receiver gets the error if that fails.
fn run_pods(
    options: RunOptions,
    environment: &TestEnvironment,
    wanted: &watch::Receiver<i32>,
    pods: Arc<Pods>,
    tasks: &mut JoinSet<()>,
) -> watch::Receiver<Option<String>> {
    let (fail, failed) = watch::channel(None);
    let simulator = PodSimulator {
        client: environment.client.clone(),
        clock: environment.clock,
        pods,
        wanted: wanted.clone(),
        slices: SLICES,
        start_millis: match options.deviation {
            Deviation::ResolverTerminatesFirst => 40_000..60_000,
            _ => 200..3000,
        },
        rng: fastrand::Rng::with_seed(options.seed ^ 1),
    };
    tasks.spawn(async move {
        if let Err(error) = simulator.run().await {
            fail.send_replace(Some(format!("{error:#}")));
        }
    });
    failed
}

/// The data planes of the Services.
#[derive(Debug, Clone)]
struct DataPlanes {
    web: Arc<DataPlane>,
    /// That of the resolvers' own Service, through which they probe themselves.
    resolvers: Arc<DataPlane>,
}

impl DataPlanes {
    fn lag(&self, most: Duration) {
        self.web.lag(most);
        self.resolvers.lag(most);
    }
}

/// Routes probes to Services through the data plane, and every other connection to its address.
#[derive(Debug)]
struct DataPlaneRoute {
    planes: DataPlanes,
    services: Addresses,
}

impl Route for DataPlaneRoute {
    fn destination(&self, from: IpAddr, to: SocketAddr) -> Option<SocketAddr> {
        let node = || (0..RESOLVERS).find(|node| addresses::resolver(*node) == from);
        if to.ip() == self.services.web {
            self.planes.web.pick(node()?)
        } else if to.ip() == self.services.resolvers {
            self.planes.resolvers.pick(node()?)
        } else {
            Some(to)
        }
    }
}

/// The path of clients to the Service through the simulated data plane.
#[derive(Debug)]
struct SimulatedRouter {
    plane: Arc<DataPlane>,
    pods: Arc<Pods>,
    net: Net,
}

impl Router for SimulatedRouter {
    fn route(&self, node: usize) -> Destination {
        match self.plane.pick(node) {
            None => Destination::Unreachable("the data plane leads nowhere".to_owned()),
            Some(pod) if !is_pod(pod) => Destination::To(pod),
            Some(pod) if self.pods.accepts(pod) => Destination::Pod,
            Some(pod) => Destination::Unreachable(format!("{pod} takes no connection")),
        }
    }

    fn client_address(&self, node: usize, rng: &mut fastrand::Rng) -> SocketAddr {
        addresses::client(node, rng)
    }

    fn net(&self) -> Net {
        self.net.clone()
    }
}

/// The operator's prover, connected to the resolvers.
fn prover(resolvers: &ResolverSet, clock: Clock) -> Arc<ResolverProver> {
    let others = resolvers.clone();
    let prover = ResolverProver::new(Arc::new(resolvers.clone()), clock, (INTERNAL, SHARED));
    Arc::new(prover.with_resolvers(Arc::new(move || others.internal_addresses())))
}

impl Simulation {
    pub(crate) async fn open(options: RunOptions) -> Result<Self> {
        let RunOptions { cell, seed, .. } = options;
        let mut tasks = JoinSet::new();
        let environment = TestEnvironment::open(seed, &mut tasks).await?;
        let (clock, memory) = (environment.clock, Memory::default());
        let store = environment.pocket.store();
        let planes = DataPlanes {
            web: DataPlane::new(store, WEB, clock, seed),
            resolvers: DataPlane::new(store, RESOLVER, clock, seed ^ 3),
        };
        let counts = Arc::new(SimulationCounts::default());
        let wanted = {
            let (counts, plane) = (counts.clone(), planes.web.clone());
            pod_simulator::wanted_replicas(store, WEB, move || counts.zero(&plane))
        };
        let services = environment.create_objects(cell.protocol, RESOLVERS).await?;
        memory.set_route(Arc::new(DataPlaneRoute {
            planes: planes.clone(),
            services,
        }));
        let waker = environment.start_waker(&mut tasks)?;
        let resolvers = ResolverSet::open(&environment.client, clock, &memory, RESOLVERS, waker)?;
        environment.start_operator(prover(&resolvers, clock), &mut tasks)?;
        let ledger = Arc::new(Ledger::default());
        let pods = pods(options, clock, memory.clone(), ledger.clone());
        let failed = run_pods(options, &environment, &wanted, pods.clone(), &mut tasks);
        let router = Arc::new(SimulatedRouter {
            plane: planes.web.clone(),
            pods,
            net: memory.at(Ipv4Addr::UNSPECIFIED.into()),
        });
        let load = Load {
            cell,
            clock,
            router,
            ledger: ledger.clone(),
            tasks: TaskTracker::new(),
            may_refuse: options.deviation == Deviation::ResolverTerminatesFirst,
            rng: Mutex::new(fastrand::Rng::with_seed(seed ^ 2)),
            idle: Mutex::default(),
        };
        Ok(Self {
            options,
            environment,
            planes,
            wanted,
            counts,
            resolvers,
            ledger,
            load: Arc::new(load),
            failed,
            _tasks: tasks,
        })
    }

    /// Puts the service to sleep under load, and waits until a request wakes it.
    pub(crate) async fn cycle(&self) -> Result<()> {
        self.planes.lag(self.options.cell.lags());
        let before = self.counts.zeros.load(Ordering::SeqCst);
        if self.options.deviation == Deviation::ScaledByUser {
            self.environment.scale(0).await?;
        } else {
            self.environment.sleep().await?;
        }
        self.until("it sleeps", || {
            self.counts.zeros.load(Ordering::SeqCst) > before
        })
        .await?;
        if matches!(
            self.options.deviation,
            Deviation::ResolverTerminates | Deviation::ResolverTerminatesFirst
        ) {
            self.terminate_resolver().await?;
        }
        self.until("it is woken", || *self.wanted.borrow() > 0)
            .await?;
        self.wait_until_serving().await?;
        let pause = self.load.rng.lock().u64(0..3000);
        self.environment
            .clock
            .sleep(Duration::from_millis(pause))
            .await;
        Ok(())
    }

    /// Terminates a resolver that holds requests, and starts another in its place.
    async fn terminate_resolver(&self) -> Result<()> {
        let ending = |number| self.resolvers.held(number) > 0;
        self.until("a resolver holds a request", || (0..RESOLVERS).any(ending))
            .await?;
        let number = (0..RESOLVERS).find(|number| ending(*number)).unwrap_or(0);
        let mut ready = [true; RESOLVERS];
        ready[number] = false;
        self.environment.resolvers(&ready).await?;
        let timeouts = DrainTimeouts {
            data_plane_lag: DrainTimeouts::default()
                .data_plane_lag
                .max(self.options.cell.lags() + LINGER_MARGIN),
            ..DrainTimeouts::default()
        };
        let left = self.resolvers.terminate(number, timeouts).await?;
        self.counts.cut_off.fetch_add(left as u64, Ordering::SeqCst);
        self.environment.resolvers(&[true; RESOLVERS]).await
    }

    /// Waits until every node leads to pods only, and the operator reports that it serves.
    pub(crate) async fn wait_until_serving(&self) -> Result<()> {
        let alone = |node| {
            let shown = self.planes.web.shown(node);
            !shown.is_empty() && shown.iter().all(|place| is_pod(*place))
        };
        let alone = || (0..NODES).all(alone);
        let began = self.environment.clock.uptime();
        loop {
            self.until("its pods answer alone", alone).await?;
            if self.environment.serves().await? {
                return Ok(());
            }
            if self.environment.clock.uptime().saturating_sub(began) > WAIT_TIMEOUT {
                bail!("the operator never said that it serves");
            }
            self.environment.clock.sleep(Duration::from_secs(1)).await;
        }
    }

    async fn until(&self, what: &str, is_so: impl Fn() -> bool) -> Result<()> {
        let clock = self.environment.clock;
        let began = clock.uptime();
        while !is_so() {
            if let Some(why) = &*self.failed.borrow() {
                bail!("the cluster failed: {why}");
            }
            if clock.uptime().saturating_sub(began) > WAIT_TIMEOUT {
                bail!("timed out waiting until {what}");
            }
            clock.sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }
}
