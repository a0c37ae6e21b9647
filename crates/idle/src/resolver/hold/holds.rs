//! The lines of all services.

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

use super::{Arrival, Line, Ticket, Times, Waker, wake::Wakes};
use crate::resolver::{
    events::{AskedToWake, Metrics},
    routes::{Route, Service, Table, Tables},
};

/// Where connections and requests are held. Cheap to copy.
#[derive(Clone)]
pub struct Holds {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) clock: Clock,
    /// Nobody is held once this is cancelled.
    pub(super) closing: CancellationToken,
    tables: Tables,
    waker: Arc<dyn Waker>,
    tasks: TaskTracker,
    meter: Meter<Metrics>,
    tickets: AtomicU64,
    desks: Mutex<BTreeMap<Key, Desk>>,
    /// Something may have to be done earlier than was planned.
    alarm: Notify,
}

/// One service.
struct Desk {
    line: Line,
    wakes: Wakes,
    /// How those who wait are told where to go.
    told: HashMap<Ticket, oneshot::Sender<Told>>,
    /// A pod is there that is not ready yet.
    starting: bool,
}

/// What is held for a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Queued {
    /// So many requests or connections.
    pub requests: usize,
    /// So many bytes of them.
    pub bytes: usize,
}

/// Where to go, and what the wake took that led there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    pub(super) pod: SocketAddr,
    pub(super) asked: Option<Uptime>,
    pub(super) scaled: Option<Uptime>,
    pub(super) scheduled: Option<Uptime>,
}

/// Where somebody stands who has arrived.
pub(super) enum Entered {
    Passed(SocketAddr),
    Waits(oneshot::Receiver<Told>),
    Full,
}

impl Holds {
    /// Holds for the services of the table and asks `waker`, in tasks that `tasks` counts.
    pub fn new(
        clock: Clock,
        tables: Tables,
        waker: Arc<dyn Waker>,
        tasks: TaskTracker,
        meter: Meter<Metrics>,
    ) -> Self {
        let shared = Shared {
            clock,
            closing: CancellationToken::new(),
            tables,
            waker,
            tasks,
            meter,
            tickets: AtomicU64::new(0),
            desks: Mutex::default(),
            alarm: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Follows the table and the time until told to stop.
    pub async fn run(self, stop: CancellationToken) {
        let shared = &self.shared;
        let mut tables = shared.tables.clone();
        loop {
            let next = self.look_at_all();
            let alarm = async {
                match next {
                    Some(next) => shared.clock.sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                Some(table) = tables.next() => self.take(&table),
                () = alarm => {}
                () = shared.alarm.notified() => {}
            }
        }
    }

    /// Everybody who waits is refused from now on.
    pub fn close(&self) {
        self.shared.closing.cancel();
    }

    /// What is held for a service.
    pub fn queued(&self, service: &Key) -> Queued {
        let desks = self.shared.desks.lock();
        desks.get(service).map(Desk::queued).unwrap_or_default()
    }

    /// What is held for all services for which something is.
    pub fn all_queued(&self) -> BTreeMap<Key, Queued> {
        let desks = self.shared.desks.lock();
        let busy = desks.iter().filter(|(_, desk)| desk.line.held() > 0);
        busy.map(|(key, desk)| (key.clone(), desk.queued()))
            .collect()
    }

    pub(super) fn ticket(&self) -> Ticket {
        Ticket(self.shared.tickets.fetch_add(1, Ordering::Relaxed))
    }

    /// Somebody arrives, or comes back because the pod refused.
    pub(super) fn enter(&self, route: &Route, ticket: Ticket, bytes: usize, back: bool) -> Entered {
        let mut desks = self.shared.desks.lock();
        let now = self.shared.clock.uptime();
        let key = &route.service.key;
        // Read under the lock: a table that comes later finds the desk.
        let desk = (desks.entry(key.clone()))
            .or_insert_with(|| Desk::new(&route.service, &self.shared.tables.now()));
        let port = route.port.number;
        let arrival = if back {
            desk.line.wait(port, ticket, bytes);
            Arrival::Wait
        } else {
            desk.line.arrive(port, ticket, bytes, now)
        };
        match arrival {
            Arrival::Pass(pod) => Entered::Passed(pod),
            Arrival::Full => Entered::Full,
            Arrival::Wait => {
                let (tell, told) = oneshot::channel();
                desk.told.insert(ticket, tell);
                self.look(key, desk, now);
                drop(desks);
                // The time to try a pod or a wake again may be nearer than what was planned.
                self.shared.alarm.notify_one();
                Entered::Waits(told)
            }
        }
    }

    /// Tells the line of a service something, and lets go who can go then.
    pub(super) fn tell<T>(
        &self,
        service: &Key,
        what: impl FnOnce(&mut Line, Uptime) -> T,
    ) -> Option<T> {
        let mut desks = self.shared.desks.lock();
        let now = self.shared.clock.uptime();
        let desk = desks.get_mut(service)?;
        let told = what(&mut desk.line, now);
        self.look(service, desk, now);
        Some(told)
    }

    /// Somebody waits no longer.
    pub(super) fn leave(&self, service: &Key, port: u16, ticket: Ticket) {
        let mut desks = self.shared.desks.lock();
        if let Some(desk) = desks.get_mut(service) {
            desk.line.leave(port, ticket);
            desk.told.remove(&ticket);
            self.look(service, desk, self.shared.clock.uptime());
        }
    }

    /// How far the wake has come that somebody waits for who arrived at `arrived`, and why it did
    /// not come farther, if that is known.
    pub(super) fn woken(&self, service: &Key, arrived: Uptime) -> (Times, Option<String>) {
        let desks = self.shared.desks.lock();
        let mut times = Times::arrived(arrived);
        let Some(Desk { wakes, .. }) = desks.get(service) else {
            return (times, None);
        };
        times.asked = wakes.asked;
        times.scaled = wakes.scaled;
        times.scheduled = wakes.scheduled;
        (times, wakes.failed.clone())
    }

    fn take(&self, table: &Table) {
        let mut desks = self.shared.desks.lock();
        let now = self.shared.clock.uptime();
        // Dropping the desk of a service that is gone tells everybody who waits there.
        desks.retain(|key, _| table.service(key).is_some());
        for (key, desk) in desks.iter_mut() {
            if let Some(service) = table.service(key) {
                desk.line.limit(service.limits);
            }
            desk.line.pods(&table.pods(key));
            desk.starting = table.is_starting(key);
            self.look(key, desk, now);
        }
    }

    /// Does what is due, and says when something is due next.
    fn look_at_all(&self) -> Option<Uptime> {
        let mut desks = self.shared.desks.lock();
        let now = self.shared.clock.uptime();
        let mut next = None;
        for (key, desk) in desks.iter_mut() {
            self.look(key, desk, now);
            next = next.into_iter().chain(desk.next(now)).min();
        }
        next
    }

    /// Lets go who can go, and asks for a wake if somebody cannot.
    fn look(&self, key: &Key, desk: &mut Desk, now: Uptime) {
        if desk.starting && desk.line.lacks_pods(now) {
            desk.wakes.scheduled(now);
        }
        for (ticket, port, pod) in desk.line.release(now) {
            let tell = desk.told.remove(&ticket);
            let told = Told {
                pod,
                asked: desk.wakes.asked,
                scaled: desk.wakes.scaled,
                scheduled: desk.wakes.scheduled,
            };
            let heard = tell.is_some_and(|tell| tell.send(told).is_ok());
            if !heard {
                desk.line.arrived(port, pod);
            }
        }
        if desk.line.held() == 0 {
            desk.wakes.rest(now);
        } else if desk.line.lacks_pods(now) && desk.wakes.begin(now) {
            self.wake(key.clone(), desk.line.held());
        }
    }

    fn wake(&self, key: Key, waiting: usize) {
        let holds = self.clone();
        // In a task of its own also because the lines are locked here.
        self.shared.tasks.spawn(async move {
            let woken = holds.shared.waker.wake(key.clone(), waiting).await;
            let error = woken.err().map(|error| error.to_string());
            holds.shared.meter.emit(&AskedToWake {
                service: &key,
                error: error.as_deref(),
            });
            let mut desks = holds.shared.desks.lock();
            if let Some(desk) = desks.get_mut(&key) {
                desk.wakes.end(error, holds.shared.clock.uptime());
            }
            drop(desks);
            holds.shared.alarm.notify_one();
        });
    }
}

impl Desk {
    fn new(service: &Service, table: &Table) -> Self {
        let mut line = Line::new(service.limits);
        line.pods(&table.pods(&service.key));
        Self {
            line,
            wakes: Wakes::default(),
            told: HashMap::new(),
            starting: table.is_starting(&service.key),
        }
    }

    fn queued(&self) -> Queued {
        Queued {
            requests: self.line.held(),
            bytes: self.line.held_bytes(),
        }
    }

    fn next(&self, now: Uptime) -> Option<Uptime> {
        if self.line.held() == 0 {
            return None;
        }
        let wake = if self.line.lacks_pods(now) {
            self.wakes.next()
        } else {
            None
        };
        self.line.next(now).into_iter().chain(wake).min()
    }
}

impl std::fmt::Debug for Holds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Holds")
            .field("services", &self.shared.desks.lock().len())
            .finish_non_exhaustive()
    }
}
