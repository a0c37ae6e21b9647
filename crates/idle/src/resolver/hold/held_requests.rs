//! The queues of all services.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use neap_kit::{
    clock::{Clock, Uptime},
    key::Key,
    telemetry::Meter,
};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Admission, HoldTimes, Ticket, WaitQueue, WakeRequester, wake::WakeState};
use crate::{
    api::NotReadyCause,
    resolver::{
        events::{ResolverMetrics, WakeAttempted},
        routes::{Route, RouteTable, RouteTableReader, RoutedService},
    },
};

/// All held requests and connections. Cheap to clone.
#[derive(Clone)]
pub struct HeldRequests {
    pub(super) shared: Arc<HoldShared>,
}

pub(super) struct HoldShared {
    pub(super) clock: Clock,
    /// Cancelled when held requests have to be refused.
    pub(super) closing: CancellationToken,
    route_table: RouteTableReader,
    waker: Arc<dyn WakeRequester>,
    tasks: TaskTracker,
    meter: Meter<ResolverMetrics>,
    tickets: AtomicU64,
    queues: Mutex<BTreeMap<Key, ServiceQueue>>,
    /// Wakes the loop of [`HeldRequests::run`] before its next planned time.
    replan: Notify,
}

/// The queue of one service, its wake requests and its clients.
struct ServiceQueue {
    waiting: WaitQueue,
    wakes: WakeState,
    /// The channels that release held requests.
    releases: HashMap<Ticket, oneshot::Sender<PodAssignment>>,
    /// A pod exists that is not ready yet.
    starting: bool,
}

/// The size of a service's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueSize {
    /// Held requests and connections.
    pub requests: usize,
    /// The memory that they use.
    pub bytes: usize,
}

/// The pod of a released request, and the progress of the wake until then.
#[derive(Debug, Clone, Copy)]
pub(super) struct PodAssignment {
    pub(super) pod: SocketAddr,
    pub(super) wake_requested: Option<Uptime>,
    pub(super) scaled: Option<Uptime>,
    pub(super) scheduled: Option<Uptime>,
}

/// The result of entering the queue.
pub(super) enum Placement {
    Assigned(SocketAddr),
    Waiting(oneshot::Receiver<PodAssignment>),
    Full,
}

impl HeldRequests {
    /// Empty queues for the services of the table, which request wakes from `waker` in tasks of `tasks`.
    pub fn new(
        clock: Clock,
        route_table: RouteTableReader,
        waker: Arc<dyn WakeRequester>,
        tasks: TaskTracker,
        meter: Meter<ResolverMetrics>,
    ) -> Self {
        let shared = HoldShared {
            clock,
            closing: CancellationToken::new(),
            route_table,
            waker,
            tasks,
            meter,
            tickets: AtomicU64::new(0),
            queues: Mutex::default(),
            replan: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Applies changes of the route table and due retries until `stop` is cancelled.
    pub async fn run(self, stop: CancellationToken) {
        let shared = &self.shared;
        let mut route_table = shared.route_table.clone();
        loop {
            let next = self.advance_all();
            let due = async {
                match next {
                    Some(next) => shared.clock.sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                Some(table) = route_table.changed() => self.apply(&table),
                () = due => {}
                () = shared.replan.notified() => {}
            }
        }
    }

    /// Refuses all held requests from now on.
    pub fn close(&self) {
        self.shared.closing.cancel();
    }

    /// The size of a service's queue.
    pub fn queue_size(&self, service: &Key) -> QueueSize {
        let queues = self.shared.queues.lock();
        queues
            .get(service)
            .map(ServiceQueue::size)
            .unwrap_or_default()
    }

    /// The sizes of all queues that are not empty.
    pub fn queue_sizes(&self) -> BTreeMap<Key, QueueSize> {
        let queues = self.shared.queues.lock();
        let busy = queues.iter().filter(|(_, queue)| queue.waiting.held() > 0);
        busy.map(|(key, queue)| (key.clone(), queue.size()))
            .collect()
    }

    pub(super) fn ticket(&self) -> Ticket {
        Ticket(self.shared.tickets.fetch_add(1, Ordering::Relaxed))
    }

    /// Admits a request, or queues it again (`back`) because its pod refused it.
    pub(super) fn enter(
        &self,
        route: &Route,
        ticket: Ticket,
        bytes: usize,
        back: bool,
    ) -> Placement {
        let mut queues = self.shared.queues.lock();
        let now = self.shared.clock.uptime();
        let key = &route.service.key;
        // Read under the lock: a table that is published later finds this queue.
        let queue = (queues.entry(key.clone())).or_insert_with(|| {
            ServiceQueue::new(&route.service, &self.shared.route_table.current())
        });
        let port = route.port.number;
        let arrival = if back {
            queue.waiting.wait(port, ticket, bytes);
            Admission::Wait
        } else {
            queue.waiting.arrive(port, ticket, bytes, now)
        };
        match arrival {
            Admission::Pass(pod) => Placement::Assigned(pod),
            Admission::Full => Placement::Full,
            Admission::Wait => {
                let (release, assignment) = oneshot::channel();
                queue.releases.insert(ticket, release);
                self.advance(key, queue, now);
                drop(queues);
                // The next retry of a pod or a wake may be due earlier than planned.
                self.shared.replan.notify_one();
                Placement::Waiting(assignment)
            }
        }
    }

    /// Changes the queue of a service, and releases the requests that can be released then.
    pub(super) fn update<T>(
        &self,
        service: &Key,
        change: impl FnOnce(&mut WaitQueue, Uptime) -> T,
    ) -> Option<T> {
        let mut queues = self.shared.queues.lock();
        let now = self.shared.clock.uptime();
        let queue = queues.get_mut(service)?;
        let result = change(&mut queue.waiting, now);
        self.advance(service, queue, now);
        Some(result)
    }

    /// Removes a request that no longer waits.
    pub(super) fn leave(&self, service: &Key, port: u16, ticket: Ticket) {
        let mut queues = self.shared.queues.lock();
        if let Some(queue) = queues.get_mut(service) {
            queue.waiting.leave(port, ticket);
            queue.releases.remove(&ticket);
            self.advance(service, queue, self.shared.clock.uptime());
        }
    }

    /// The progress of the wake for a request that arrived at `arrived`, and why the last wake request
    /// failed, if it did.
    pub(super) fn wake_progress(
        &self,
        service: &Key,
        arrived: Uptime,
    ) -> (HoldTimes, Option<String>) {
        let queues = self.shared.queues.lock();
        let mut times = HoldTimes::arrived(arrived);
        let Some(ServiceQueue { wakes, .. }) = queues.get(service) else {
            return (times, None);
        };
        times.requested = wakes.requested;
        times.scaled = wakes.scaled;
        times.scheduled = wakes.scheduled;
        (times, wakes.failed.clone())
    }

    /// Why no pod of a service is ready, as far as the operator knows now.
    pub(super) fn not_ready(&self, service: &Key) -> Option<NotReadyCause> {
        self.shared
            .route_table
            .current()
            .service(service)?
            .not_ready
    }

    fn apply(&self, table: &RouteTable) {
        let mut queues = self.shared.queues.lock();
        let now = self.shared.clock.uptime();
        // Dropping the queue of a removed service closes the channels of its held requests.
        queues.retain(|key, _| table.service(key).is_some());
        for (key, queue) in queues.iter_mut() {
            if let Some(service) = table.service(key) {
                queue.waiting.set_limits(service.limits);
            }
            queue.waiting.set_pods(&table.pods(key));
            queue.starting = table.is_starting(key);
            self.advance(key, queue, now);
        }
    }

    /// Advances all queues, and returns when the next of them is due.
    fn advance_all(&self) -> Option<Uptime> {
        let mut queues = self.shared.queues.lock();
        let now = self.shared.clock.uptime();
        let mut next = None;
        for (key, queue) in queues.iter_mut() {
            self.advance(key, queue, now);
            next = next.into_iter().chain(queue.next(now)).min();
        }
        next
    }

    /// Releases the requests that a pod can accept, and requests a wake if some lack a pod.
    fn advance(&self, key: &Key, queue: &mut ServiceQueue, now: Uptime) {
        if queue.starting && queue.waiting.lacks_pods(now) {
            queue.wakes.record_scheduled(now);
        }
        for (ticket, port, pod) in queue.waiting.release(now) {
            let release = queue.releases.remove(&ticket);
            let assignment = PodAssignment {
                pod,
                wake_requested: queue.wakes.requested,
                scaled: queue.wakes.scaled,
                scheduled: queue.wakes.scheduled,
            };
            let received = release.is_some_and(|release| release.send(assignment).is_ok());
            if !received {
                queue.waiting.finish(port, pod);
            }
        }
        if queue.waiting.held() == 0 {
            queue.wakes.reset(now);
        } else if queue.waiting.lacks_pods(now) && queue.wakes.begin(now) {
            self.request_wake(key.clone(), queue.waiting.held());
        }
    }

    fn request_wake(&self, key: Key, waiting: usize) {
        let holds = self.clone();
        // In a task of its own, because the caller holds the lock of the queues.
        self.shared.tasks.spawn(async move {
            let woken = holds.shared.waker.wake(key.clone(), waiting).await;
            let error = woken.err().map(|error| error.to_string());
            holds.shared.meter.emit(&WakeAttempted {
                service: &key,
                error: error.as_deref(),
            });
            let mut queues = holds.shared.queues.lock();
            if let Some(queue) = queues.get_mut(&key) {
                queue.wakes.end(error, holds.shared.clock.uptime());
            }
            drop(queues);
            holds.shared.replan.notify_one();
        });
    }
}

impl ServiceQueue {
    fn new(service: &RoutedService, table: &RouteTable) -> Self {
        let mut waiting = WaitQueue::new(service.limits);
        waiting.set_pods(&table.pods(&service.key));
        Self {
            waiting,
            wakes: WakeState::default(),
            releases: HashMap::new(),
            starting: table.is_starting(&service.key),
        }
    }

    fn size(&self) -> QueueSize {
        QueueSize {
            requests: self.waiting.held(),
            bytes: self.waiting.held_bytes(),
        }
    }

    fn next(&self, now: Uptime) -> Option<Uptime> {
        if self.waiting.held() == 0 {
            return None;
        }
        let wake = if self.waiting.lacks_pods(now) {
            self.wakes.next()
        } else {
            None
        };
        self.waiting.next(now).into_iter().chain(wake).min()
    }
}

impl std::fmt::Debug for HeldRequests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Holds")
            .field("services", &self.shared.queues.lock().len())
            .finish_non_exhaustive()
    }
}
