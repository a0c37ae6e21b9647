//! Everybody who plays, and what a cycle is.

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
    operator::prove::Proofs,
    resolver::{drain::Patience, net::Net},
};
use neap_kit::clock::Clock;
use parking_lot::Mutex;
use tokio::{sync::watch, task::JoinSet};
use tokio_util::task::TaskTracker;

use crate::{
    cluster::{self, Cluster},
    ground::{Addresses, Ground, RESOLVER, SLICES, WEB},
    ledger::Ledger,
    load::{Leads, Load, Way},
    memory::{Memory, Route},
    plane::{NODES, Plane},
    play::{Asked, Twist},
    pods::Pods,
    resolvers::Row,
    street::{self, INTERNAL, SHARED, is_pod},
};

/// The resolvers, on the first nodes.
const RESOLVERS: usize = 2;
/// Pods take connections for so long beyond the lag of the data plane after they are told to end.
const MARGIN: Duration = Duration::from_millis(500);
/// Nothing takes longer unless it is stuck.
pub(crate) const STUCK: Duration = Duration::from_mins(10);

/// Everybody who plays.
pub(crate) struct Stage {
    asked: Asked,
    pub(crate) ground: Ground,
    planes: Planes,
    wanted: watch::Receiver<i32>,
    pub(crate) count: Arc<Count>,
    row: Row,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) load: Arc<Load>,
    /// Whoever ends here has failed.
    failed: watch::Receiver<Option<String>>,
    _tasks: JoinSet<()>,
}

/// What is counted beside requests.
#[derive(Debug, Default)]
pub(crate) struct Count {
    /// So many times replicas were written to zero.
    zeros: AtomicU64,
    /// So many times while a node with a resolver led to none.
    pub(crate) unproved: AtomicU64,
    /// So many connections a resolver cut off at its end.
    pub(crate) cut_off: AtomicU64,
}

impl Count {
    fn zero(&self, plane: &Plane) {
        self.zeros.fetch_add(1, Ordering::SeqCst);
        let reached = (0..RESOLVERS).all(|node| {
            let shown = plane.shown(node);
            shown.iter().any(|place| !is_pod(*place))
        });
        self.unproved
            .fetch_add(u64::from(!reached), Ordering::SeqCst);
    }
}

fn pods(asked: Asked, clock: Clock, memory: Memory, ledger: Arc<Ledger>) -> Arc<Pods> {
    let linger = match asked.twist {
        Twist::PodsLeaveAtOnce => Duration::ZERO,
        _ => asked.cell.lags() + MARGIN,
    };
    Arc::new(Pods {
        memory,
        clock,
        ledger,
        protocol: asked.cell.protocol,
        tasks: TaskTracker::new(),
        linger,
        running: Mutex::default(),
    })
}

/// Runs as many as are wanted; why it cannot go on, once it cannot.
fn run_pods(
    asked: Asked,
    ground: &Ground,
    wanted: &watch::Receiver<i32>,
    pods: Arc<Pods>,
    tasks: &mut JoinSet<()>,
) -> watch::Receiver<Option<String>> {
    let (fail, failed) = watch::channel(None);
    let cluster = Cluster {
        client: ground.client.clone(),
        clock: ground.clock,
        pods,
        wanted: wanted.clone(),
        slices: SLICES,
        starts: match asked.twist {
            Twist::ResolverEndsFirst => 40_000..60_000,
            _ => 200..3000,
        },
        dice: fastrand::Rng::with_seed(asked.seed ^ 1),
    };
    tasks.spawn(async move {
        if let Err(error) = cluster.run().await {
            fail.send_replace(Some(format!("{error:#}")));
        }
    });
    failed
}

/// Where the data plane leads those who connect to a Service.
#[derive(Debug, Clone)]
struct Planes {
    web: Arc<Plane>,
    /// The Service of the resolvers, in which they see themselves as in a mirror.
    resolvers: Arc<Plane>,
}

impl Planes {
    fn lag(&self, most: Duration) {
        self.web.lag(most);
        self.resolvers.lag(most);
    }
}

/// Those who prove something connect to Services, and everybody else to where he means to go.
#[derive(Debug)]
struct Led {
    planes: Planes,
    services: Addresses,
}

impl Route for Led {
    fn leads(&self, from: IpAddr, to: SocketAddr) -> Option<SocketAddr> {
        let node = || (0..RESOLVERS).find(|node| street::resolver(*node) == from);
        if to.ip() == self.services.web {
            self.planes.web.pick(node()?)
        } else if to.ip() == self.services.resolvers {
            self.planes.resolvers.pick(node()?)
        } else {
            Some(to)
        }
    }
}

/// The way to the Service, as the data plane that is played here leads.
#[derive(Debug)]
struct Played {
    plane: Arc<Plane>,
    pods: Arc<Pods>,
    net: Net,
}

impl Way for Played {
    fn leads(&self, node: usize) -> Leads {
        match self.plane.pick(node) {
            None => Leads::Astray("the data plane leads nowhere".to_owned()),
            Some(pod) if !is_pod(pod) => Leads::To(pod),
            Some(pod) if self.pods.takes(pod) => Leads::Straight,
            Some(pod) => Leads::Astray(format!("{pod} takes no connection")),
        }
    }

    fn place(&self, node: usize, dice: &mut fastrand::Rng) -> SocketAddr {
        street::client(node, dice)
    }

    fn net(&self) -> Net {
        self.net.clone()
    }
}

/// The operator's own, which asks resolvers.
fn prover(row: &Row, clock: Clock) -> Arc<Proofs> {
    let others = row.clone();
    let proofs = Proofs::new(Arc::new(row.clone()), clock, (INTERNAL, SHARED));
    Arc::new(proofs.asking(Arc::new(move || others.places())))
}

impl Stage {
    pub(crate) async fn open(asked: Asked) -> Result<Self> {
        let Asked { cell, seed, .. } = asked;
        let mut tasks = JoinSet::new();
        let ground = Ground::open(seed, &mut tasks).await?;
        let (clock, memory) = (ground.clock, Memory::default());
        let store = ground.pocket.store();
        let planes = Planes {
            web: Plane::new(store, WEB, clock, seed),
            resolvers: Plane::new(store, RESOLVER, clock, seed ^ 3),
        };
        let count = Arc::new(Count::default());
        let wanted = {
            let (count, plane) = (count.clone(), planes.web.clone());
            cluster::wanted(store, WEB, move || count.zero(&plane))
        };
        let services = ground.furnish(cell.protocol, RESOLVERS).await?;
        memory.led_by(Arc::new(Led {
            planes: planes.clone(),
            services,
        }));
        let waker = ground.wakes(&mut tasks)?;
        let row = Row::open(&ground.client, clock, &memory, RESOLVERS, waker)?;
        ground.operate(prover(&row, clock), &mut tasks)?;
        let ledger = Arc::new(Ledger::default());
        let pods = pods(asked, clock, memory.clone(), ledger.clone());
        let failed = run_pods(asked, &ground, &wanted, pods.clone(), &mut tasks);
        let way = Arc::new(Played {
            plane: planes.web.clone(),
            pods,
            net: memory.at(Ipv4Addr::UNSPECIFIED.into()),
        });
        let load = Load {
            cell,
            clock,
            way,
            ledger: ledger.clone(),
            tasks: TaskTracker::new(),
            may_refuse: asked.twist == Twist::ResolverEndsFirst,
            dice: Mutex::new(fastrand::Rng::with_seed(seed ^ 2)),
            kept: Mutex::default(),
        };
        Ok(Self {
            asked,
            ground,
            planes,
            wanted,
            count,
            row,
            ledger,
            load: Arc::new(load),
            failed,
            _tasks: tasks,
        })
    }

    /// Sleep under load, and the wake by whoever comes next.
    pub(crate) async fn cycle(&self) -> Result<()> {
        self.planes.lag(self.asked.cell.lags());
        let before = self.count.zeros.load(Ordering::SeqCst);
        if self.asked.twist == Twist::ScaledByHand {
            self.ground.scale(0).await?;
        } else {
            self.ground.sleep().await?;
        }
        self.until("it sleeps", || {
            self.count.zeros.load(Ordering::SeqCst) > before
        })
        .await?;
        if matches!(
            self.asked.twist,
            Twist::ResolverEnds | Twist::ResolverEndsFirst
        ) {
            self.a_resolver_ends().await?;
        }
        self.until("it is woken", || *self.wanted.borrow() > 0)
            .await?;
        self.settles().await?;
        let pause = self.load.dice.lock().u64(0..3000);
        self.ground.clock.sleep(Duration::from_millis(pause)).await;
        Ok(())
    }

    /// One that holds requests is told to end, and another takes its place once it has.
    async fn a_resolver_ends(&self) -> Result<()> {
        let ending = |number| self.row.held(number) > 0;
        self.until("a resolver holds a request", || (0..RESOLVERS).any(ending))
            .await?;
        let number = (0..RESOLVERS).find(|number| ending(*number)).unwrap_or(0);
        let mut ready = [true; RESOLVERS];
        ready[number] = false;
        self.ground.resolvers(&ready).await?;
        let patience = Patience {
            lag: Patience::default().lag.max(self.asked.cell.lags() + MARGIN),
            ..Patience::default()
        };
        let left = self.row.end(number, patience).await?;
        self.count.cut_off.fetch_add(left as u64, Ordering::SeqCst);
        self.ground.resolvers(&[true; RESOLVERS]).await
    }

    /// Resolves once every node leads to pods alone, and the operator says that it is so.
    pub(crate) async fn settles(&self) -> Result<()> {
        let alone = |node| {
            let shown = self.planes.web.shown(node);
            !shown.is_empty() && shown.iter().all(|place| is_pod(*place))
        };
        let alone = || (0..NODES).all(alone);
        let began = self.ground.clock.uptime();
        loop {
            self.until("its pods answer alone", alone).await?;
            if self.ground.serves().await? {
                return Ok(());
            }
            if self.ground.clock.uptime().saturating_sub(began) > STUCK {
                bail!("the operator never said that it serves");
            }
            self.ground.clock.sleep(Duration::from_secs(1)).await;
        }
    }

    async fn until(&self, what: &str, is_so: impl Fn() -> bool) -> Result<()> {
        let clock = self.ground.clock;
        let began = clock.uptime();
        while !is_so() {
            if let Some(why) = &*self.failed.borrow() {
                bail!("the cluster failed: {why}");
            }
            if clock.uptime().saturating_sub(began) > STUCK {
                bail!("it never came to it that {what}");
            }
            clock.sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }
}
