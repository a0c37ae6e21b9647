//! A scheduler that misbehaves, and its workers.
//!
//! Calls go to the emulated build queue. In between, workers do what workers do: each one that is not drained
//! begins an action as soon as the last has ended. Time passes in whole seconds, whenever a call arrives.
//!
//! By the clock, the scheduler serves lists that are older than its drains, gives no answer, and restarts
//! with and without its workers registering again at once. A restart loses all drains. It restarts, too, when
//! its pod is another.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    sync::Arc,
};

use futures::future::{BoxFuture, FutureExt};
use http::{Request, Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use neap_emulators::{
    build_queue::{BuildQueue, SizeClassQueueName, WorkerId},
    system::{Emulator, System},
};
use neap_farm::{api::BuildbarnWorkerSpec, platform::QueueName};
use neap_kit::{client::Body, clock::Clock};
use neap_trial::external::ExternalService;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::oracle;

/// Its host, whatever the address of its Service is.
pub const HOST: &str = "scheduler.example.com";
/// Where workers say who they are.
pub(crate) const SYNC: &str = "/sync";
/// The largest list of workers, in bytes.
const MAX_BODY: usize = 1 << 20;
const SECOND: SignedDuration = SignedDuration::from_secs(1);
/// How long workers take to register again after a restart.
const REGISTRATION: SignedDuration = SignedDuration::from_secs(5);

/// The seconds of each period in which something goes wrong.
const PERIOD: i64 = 90;
const STALE: std::ops::Range<i64> = 15..30;
const SILENT: std::ops::Range<i64> = 40..52;
const DRAINS_LOST: i64 = 60;
const RESTART: i64 = 75;

/// What workers report: those that run, and the pod of their scheduler.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerReport {
    /// The uid of the scheduler's pod; none while it has none that is ready.
    pub(crate) scheduler: Option<String>,
    /// The pods whose workers run.
    pub(crate) workers: BTreeSet<String>,
}

/// An action that a worker ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The pod of the worker.
    pub pod: String,
    /// When it began.
    pub begin: Timestamp,
    /// When it ended.
    pub end: Timestamp,
}

/// A moment at which the scheduler lost its drains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainLoss {
    /// When.
    pub at: Timestamp,
    /// The workers that were drained and idle, and so may have been released.
    pub idle: BTreeSet<String>,
}

/// What workers did, and what the scheduler forgot.
#[derive(Debug, Clone, Default)]
pub struct ActionLog {
    /// In the order of their beginning.
    pub actions: Vec<Action>,
    /// In the order of time.
    pub losses: Vec<DrainLoss>,
}

/// The scheduler of one run, which is judged at its end.
pub(crate) fn open(clock: Clock) -> ExternalService {
    let scheduler = Emulator::new(Scheduler::new(clock), clock);
    ExternalService::new(scheduler.transport()).checked(move |history| {
        let log = scheduler.system().log();
        oracle::problems(history, &log)
    })
}

/// The scheduler of a run.
struct Scheduler {
    clock: Clock,
    queue: Arc<BuildQueue>,
    workers: Mutex<Workers>,
}

struct Workers {
    queue: SizeClassQueueName,
    /// The time up to which it was played, and when it began.
    now: Timestamp,
    begun: Timestamp,
    scheduler: Option<String>,
    /// The workers that run, and until when they are busy.
    running: BTreeMap<String, Option<Timestamp>>,
    /// When workers register again, if the scheduler does not know them.
    registers_at: Option<Timestamp>,
    count: u32,
    log: ActionLog,
}

fn id(pod: &str) -> WorkerId {
    WorkerId::from([
        ("node".to_owned(), "node".to_owned()),
        ("pod".to_owned(), pod.to_owned()),
    ])
}

/// The pods that are drained.
fn drained(queue: &BuildQueue) -> BTreeSet<String> {
    let drains = queue.drains().into_iter();
    drains.filter_map(|mut drain| drain.remove("pod")).collect()
}

impl Scheduler {
    fn new(clock: Clock) -> Self {
        let name = QueueName::of(&BuildbarnWorkerSpec::default());
        let properties: Vec<_> = name
            .platform
            .iter()
            .map(|it| (&*it.name, &*it.value))
            .collect();
        let now = clock.now();
        let workers = Workers {
            queue: SizeClassQueueName::of_platform(&properties),
            now,
            begun: now,
            scheduler: None,
            running: BTreeMap::new(),
            registers_at: None,
            count: 0,
            log: ActionLog::default(),
        };
        Self {
            clock,
            queue: Arc::default(),
            workers: Mutex::new(workers),
        }
    }

    fn log(&self) -> ActionLog {
        let mut workers = self.workers.lock();
        workers.play(&self.queue, self.clock.now());
        workers.log.clone()
    }

    async fn answer(self: Arc<Self>, request: Request<Body>) -> Response<Body> {
        let is_silent = {
            let mut workers = self.workers.lock();
            workers.play(&self.queue, self.clock.now());
            SILENT.contains(&workers.second())
        };
        if request.uri().path() == SYNC {
            let report = request.into_body().bytes(MAX_BODY).await.ok();
            let report = report.and_then(|body| serde_json::from_slice(&body).ok());
            let mut response = Response::new(Body::empty());
            match report {
                Some(report) => self.workers.lock().take(&self.queue, report),
                None => *response.status_mut() = StatusCode::BAD_REQUEST,
            }
            return response;
        }
        if is_silent {
            pending::<()>().await;
        }
        let response = self.queue.clone().respond(request).await;
        self.workers.lock().assign(&self.queue);
        response
    }
}

impl System for Scheduler {
    fn respond(self: Arc<Self>, request: Request<Body>) -> BoxFuture<'static, Response<Body>> {
        self.answer(request).boxed()
    }
}

impl Workers {
    /// The second of the period.
    fn second(&self) -> i64 {
        self.now.duration_since(self.begun).as_secs() % PERIOD
    }

    /// What happens until `until`.
    fn play(&mut self, queue: &BuildQueue, until: Timestamp) {
        while until.duration_since(self.now) >= SECOND {
            self.now += SECOND;
            for (pod, busy) in &mut self.running {
                if busy.is_some_and(|end| end <= self.now) {
                    *busy = None;
                    queue.finish(&id(pod));
                }
            }
            match self.second() {
                second if second == STALE.start => queue.serve_stale_workers(true),
                second if second == STALE.end => queue.serve_stale_workers(false),
                DRAINS_LOST => self.restart(queue, SignedDuration::ZERO),
                RESTART => self.restart(queue, REGISTRATION),
                _ => {}
            }
            if self.registers_at.is_some_and(|at| at <= self.now) {
                self.register(queue);
            }
            self.assign(queue);
        }
        self.now = until;
    }

    fn restart(&mut self, queue: &BuildQueue, registration: SignedDuration) {
        let drained = drained(queue);
        let idle = self.running.iter().filter(|(_, busy)| busy.is_none());
        let idle = idle.map(|(pod, _)| pod.clone());
        let idle = idle.filter(|pod| drained.contains(pod)).collect();
        self.log.losses.push(DrainLoss { at: self.now, idle });
        queue.restart();
        self.registers_at = Some(self.now + registration);
    }

    fn register(&mut self, queue: &BuildQueue) {
        self.registers_at = None;
        for (pod, busy) in &self.running {
            let operation = busy.map(|_| "running");
            queue.register(&self.queue, id(pod), operation);
        }
    }

    /// Workers that are neither busy nor drained begin an action.
    fn assign(&mut self, queue: &BuildQueue) {
        if self.registers_at.is_some() {
            return;
        }
        let drained = drained(queue);
        for (pod, busy) in &mut self.running {
            if busy.is_some() || drained.contains(pod) {
                continue;
            }
            self.count += 1;
            let takes = 5 + i64::from(self.count * 7 % 20);
            let end = self.now + SignedDuration::from_secs(takes);
            *busy = Some(end);
            let operation = format!("action-{}", self.count);
            queue.register(&self.queue, id(pod), Some(&operation));
            self.log.actions.push(Action {
                pod: pod.clone(),
                begin: self.now,
                end,
            });
        }
    }

    fn take(&mut self, queue: &BuildQueue, report: WorkerReport) {
        let gone: Vec<_> = self.running.keys().cloned().collect();
        for pod in gone {
            if !report.workers.contains(&pod) {
                queue.remove(&id(&pod));
                self.running.remove(&pod);
            }
        }
        for pod in report.workers {
            if !self.running.contains_key(&pod) {
                if self.registers_at.is_none() {
                    queue.register(&self.queue, id(&pod), None);
                }
                self.running.insert(pod, None);
            }
        }
        if report.scheduler.is_some() && report.scheduler != self.scheduler {
            if self.scheduler.is_some() {
                self.restart(queue, REGISTRATION);
            }
            self.scheduler = report.scheduler;
        }
        self.assign(queue);
    }
}
