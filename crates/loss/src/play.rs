//! One cell, from its first cycle to its last.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail};
use neap_idle::resolver::drain::Patience;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::{sync::watch, task::JoinSet};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    cell::Cell,
    cluster::{self, Cluster},
    ground::{Ground, SLICES, WEB},
    ledger::{Ledger, Tally},
    load::{Leads, Load, Way},
    plane::{NODES, Plane},
    pods::Pods,
    prover::Probes,
    resolvers::Row,
    stopwatch::Stopwatch,
    street::Street,
};

/// The resolvers, on the first nodes.
const RESOLVERS: usize = 2;
/// Pods take connections for so long beyond the lag of the data plane after they are told to end.
const MARGIN: Duration = Duration::from_millis(500);
/// Time never goes farther at once, so that what the system still carries is not overtaken.
const STEP: Duration = Duration::from_millis(20);
/// Nothing takes longer unless it is stuck.
const STUCK: Duration = Duration::from_mins(10);

/// What is played.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Under which conditions.
    pub cell: Cell,
    /// So many cycles at most.
    pub cycles: u64,
    /// So long at most, in real time; one cycle is played in any case.
    pub budget: Option<Duration>,
    /// Where chances come from.
    pub seed: u64,
    /// Plays at the same time have different ones.
    pub place: usize,
    /// What is out of the ordinary.
    pub twist: Twist,
}

/// Something out of the ordinary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Twist {
    /// Nothing.
    #[default]
    None,
    /// Pods take no connection any more as soon as they are told to end. That loses requests, whoever
    /// looks after the service.
    PodsLeaveAtOnce,
    /// Somebody writes replicas without asking the operator. So does that.
    ScaledByHand,
    /// A resolver is told to end while it holds requests.
    ResolverEnds,
    /// The same, and pods take longer than it waits for them.
    ResolverEndsFirst,
}

/// What came of it.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Under which conditions.
    pub cell: Cell,
    /// So many cycles were asked for.
    pub asked: u64,
    /// So many were played.
    pub cycles: u64,
    /// What became of the requests.
    pub tally: Tally,
    /// Pods were told to end so many times while a node with a resolver led to none.
    pub unproved: u64,
    /// So many connections a resolver cut off at its end.
    pub cut_off: u64,
    /// So many seconds passed for those who played.
    pub played_seconds: u64,
    /// So many milliseconds it really took.
    pub took_ms: u64,
}

impl Outcome {
    /// Whether nothing went wrong.
    pub fn holds(&self) -> bool {
        self.tally.holds() && self.unproved == 0 && self.cut_off == 0
    }
}

/// Plays a cell, in a runtime of its own whose time is not that of the world.
pub fn play(asked: Asked) -> Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    let outcome = runtime.block_on(run(asked));
    outcome.with_context(|| format!("cell {}", asked.cell))
}

struct Stage {
    asked: Asked,
    ground: Ground,
    plane: Arc<Plane>,
    street: Street,
    wanted: watch::Receiver<i32>,
    zeros: Arc<AtomicU64>,
    unproved: Arc<AtomicU64>,
    cut_off: AtomicU64,
    row: Row,
    ledger: Arc<Ledger>,
    load: Arc<Load>,
    /// Whoever ends here has failed.
    failed: watch::Receiver<Option<String>>,
    _tasks: JoinSet<()>,
}

async fn run(asked: Asked) -> Result<Outcome> {
    let watch = Stopwatch::start();
    let stage = Stage::open(asked).await?;
    let clock = stage.ground.clock;
    stage.settles().await?;
    let stop = CancellationToken::new();
    let loading = stage.load.tasks.spawn(stage.load.clone().run(stop.clone()));
    let mut cycles = 0;
    let in_time =
        |cycles| cycles == 0 || asked.budget.is_none_or(|budget| watch.elapsed() < budget);
    while cycles < asked.cycles && in_time(cycles) {
        stage.cycle().await?;
        cycles += 1;
    }
    stop.cancel();
    loading.await?;
    let last = clock.uptime();
    while stage.ledger.open() > 0 && clock.uptime().saturating_sub(last) < STUCK {
        clock.sleep(Duration::from_secs(1)).await;
    }
    Ok(Outcome {
        cell: asked.cell,
        asked: asked.cycles,
        cycles,
        tally: stage.ledger.close(),
        unproved: stage.unproved.load(Ordering::SeqCst),
        cut_off: stage.cut_off.load(Ordering::SeqCst),
        played_seconds: clock.uptime().as_secs(),
        took_ms: watch.elapsed().as_millis() as u64,
    })
}

/// The way to the Service, as the data plane that is played here leads.
#[derive(Debug)]
struct Played {
    plane: Arc<Plane>,
    street: Street,
    pods: Arc<Pods>,
}

impl Way for Played {
    fn leads(&self, node: usize) -> Leads {
        match self.plane.pick(node) {
            None => Leads::Astray("the data plane leads nowhere".to_owned()),
            Some(pod) if !self.street.is_pod(pod) => Leads::To(pod),
            Some(pod) if self.pods.takes(pod) => Leads::Straight,
            Some(pod) => Leads::Astray(format!("{pod} takes no connection")),
        }
    }

    fn place(&self, node: usize, dice: &mut fastrand::Rng) -> SocketAddr {
        self.street.client(node, dice)
    }
}

impl Stage {
    async fn open(asked: Asked) -> Result<Self> {
        let Asked { cell, seed, .. } = asked;
        let mut tasks = JoinSet::new();
        let ground = Ground::open(seed, &mut tasks).await?;
        let (clock, street) = (ground.clock, Street::new(asked.place));
        tasks.spawn(async move {
            loop {
                clock.sleep(STEP).await;
            }
        });
        let plane = Plane::new(ground.pocket.store(), WEB, clock, seed);
        let ledger = Arc::new(Ledger::default());
        let linger = match asked.twist {
            Twist::PodsLeaveAtOnce => Duration::ZERO,
            _ => cell.lags() + MARGIN,
        };
        let pods = Arc::new(Pods {
            street,
            clock,
            ledger: ledger.clone(),
            protocol: cell.protocol,
            tasks: TaskTracker::new(),
            linger,
            running: Mutex::default(),
        });
        let (zeros, unproved) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let wanted = {
            let (zeros, unproved, plane) = (zeros.clone(), unproved.clone(), plane.clone());
            cluster::wanted(ground.pocket.store(), WEB, move || {
                zeros.fetch_add(1, Ordering::SeqCst);
                let reached = (0..RESOLVERS).all(|node| {
                    let shown = plane.shown(node);
                    shown.iter().any(|place| !street.is_pod(*place))
                });
                unproved.fetch_add(u64::from(!reached), Ordering::SeqCst);
            })
        };
        ground.furnish(cell.protocol, street, RESOLVERS).await?;
        let waker = ground.wakes(&mut tasks)?;
        let row = Row::open(&ground.client, clock, street, RESOLVERS, waker)?;
        let prover = Probes {
            clock,
            plane: plane.clone(),
            row: row.clone(),
        };
        ground.operate(Arc::new(prover), &mut tasks)?;
        let (fail, failed) = watch::channel(None);
        let cluster = Cluster {
            client: ground.client.clone(),
            clock,
            pods: pods.clone(),
            wanted: wanted.clone(),
            slices: SLICES,
            starts: match asked.twist {
                Twist::ResolverEndsFirst => 40_000..60_000,
                _ => 200..3000,
            },
            dice: fastrand::Rng::with_seed(seed ^ 1),
        };
        tasks.spawn(async move {
            let Err(error) = cluster.run().await else {
                return;
            };
            fail.send_replace(Some(format!("{error:#}")));
        });
        let load = Arc::new(Load {
            cell,
            clock,
            way: Arc::new(Played {
                plane: plane.clone(),
                street,
                pods,
            }),
            ledger: ledger.clone(),
            tasks: TaskTracker::new(),
            may_refuse: asked.twist == Twist::ResolverEndsFirst,
            dice: Mutex::new(fastrand::Rng::with_seed(seed ^ 2)),
            kept: Mutex::default(),
        });
        Ok(Self {
            asked,
            ground,
            plane,
            street,
            wanted,
            zeros,
            unproved,
            cut_off: AtomicU64::new(0),
            row,
            ledger,
            load,
            failed,
            _tasks: tasks,
        })
    }

    /// Sleep under load, and the wake by whoever comes next.
    async fn cycle(&self) -> Result<()> {
        self.plane.lag(self.asked.cell.lags());
        let before = self.zeros.load(Ordering::SeqCst);
        if self.asked.twist == Twist::ScaledByHand {
            self.ground.scale(0).await?;
        } else {
            self.ground.sleep().await?;
        }
        self.until("it sleeps", || self.zeros.load(Ordering::SeqCst) > before)
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
        self.ground.resolvers(self.street, &ready).await?;
        let patience = Patience {
            lag: Patience::default().lag.max(self.asked.cell.lags() + MARGIN),
            ..Patience::default()
        };
        let left = self.row.end(number, patience).await?;
        self.cut_off.fetch_add(left as u64, Ordering::SeqCst);
        self.ground.resolvers(self.street, &[true; RESOLVERS]).await
    }

    /// Resolves once every node leads to pods alone, and the operator says that it is so.
    async fn settles(&self) -> Result<()> {
        let alone = |node| {
            let shown = self.plane.shown(node);
            !shown.is_empty() && shown.iter().all(|place| self.street.is_pod(*place))
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
