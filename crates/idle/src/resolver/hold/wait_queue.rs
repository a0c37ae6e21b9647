//! Decides which requests wait for a service, and which are released to which pod.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::Duration,
};

use neap_kit::clock::Uptime;

use crate::resolver::routes::{HoldLimits, PodAddresses};

/// Delay before a pod that refused a connection is tried again; it doubles each time.
const POD_RETRY_DELAY: Duration = Duration::from_millis(20);
/// Upper limit of [`POD_RETRY_DELAY`].
const MAX_POD_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The place of a request in the queue; lower ones arrived earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What the queue does with an arriving request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Forwards it to this pod at once: a pod is ready and the queue is empty.
    Pass(SocketAddr),
    /// Holds it until it is released.
    Wait,
    /// Refuses it: the queue is full.
    Full,
}

/// The queue of one service, over all of its ports.
#[derive(Debug)]
pub struct WaitQueue {
    limits: HoldLimits,
    /// The memory that each waiting request uses.
    bytes: BTreeMap<Ticket, usize>,
    total: usize,
    queues: BTreeMap<u16, PortQueue>,
}

/// The requests that wait for one port, and its ready pods.
#[derive(Debug, Default)]
struct PortQueue {
    waiting: BTreeSet<Ticket>,
    pods: BTreeMap<SocketAddr, QueuePod>,
    /// Round-robin position among the pods, for requests that pass.
    turn: usize,
}

/// A ready pod.
#[derive(Debug, Default, Clone, Copy)]
struct QueuePod {
    /// Released requests that it has not answered yet.
    released: usize,
    /// Connections that it refused in a row.
    refusals: u32,
    /// No connection is attempted before this time.
    retry_at: Option<Uptime>,
}

impl WaitQueue {
    /// An empty queue without pods.
    pub fn new(limits: HoldLimits) -> Self {
        Self {
            limits,
            bytes: BTreeMap::new(),
            total: 0,
            queues: BTreeMap::new(),
        }
    }

    /// Replaces the limits; requests that wait already stay.
    pub fn set_limits(&mut self, limits: HoldLimits) {
        self.limits = limits;
    }

    /// Replaces the ready pods.
    pub fn set_pods(&mut self, pods: &PodAddresses) {
        for (port, queue) in &mut self.queues {
            let present = pods.get(port).map_or(&[][..], Vec::as_slice);
            (queue.pods).retain(|address, _| present.binary_search(address).is_ok());
        }
        for (port, addresses) in pods {
            let queue = self.queues.entry(*port).or_default();
            for address in addresses {
                queue.pods.entry(*address).or_default();
            }
        }
    }

    /// Admits a request for a port that uses `bytes` of memory.
    pub fn arrive(&mut self, port: u16, ticket: Ticket, bytes: usize, now: Uptime) -> Admission {
        let queue = self.queues.entry(port).or_default();
        if queue.waiting.is_empty()
            && let Some(pod) = queue.next(now)
        {
            return Admission::Pass(pod);
        }
        let room = self.limits.bytes.saturating_sub(self.total);
        if self.bytes.len() >= self.limits.requests || bytes > room {
            return Admission::Full;
        }
        self.wait(port, ticket, bytes);
        Admission::Wait
    }

    /// Queues a request, or queues it again at its old place after a pod refused it.
    pub fn wait(&mut self, port: u16, ticket: Ticket, bytes: usize) {
        let queue = self.queues.entry(port).or_default();
        if queue.waiting.insert(ticket) {
            self.bytes.insert(ticket, bytes);
            self.total += bytes;
        }
    }

    /// Reserves `more` bytes for a waiting request; false if the limit is reached.
    pub fn grow(&mut self, ticket: Ticket, more: usize) -> bool {
        let room = self.limits.bytes.saturating_sub(self.total);
        match self.bytes.get_mut(&ticket) {
            Some(bytes) if more <= room => {
                *bytes += more;
                self.total += more;
                true
            }
            _ => false,
        }
    }

    /// Removes a request that no longer waits.
    pub fn leave(&mut self, port: u16, ticket: Ticket) {
        if let Some(queue) = self.queues.get_mut(&port) {
            queue.waiting.remove(&ticket);
        }
        if let Some(bytes) = self.bytes.remove(&ticket) {
            self.total -= bytes;
        }
    }

    /// Releases all requests that a pod can accept now, in order of arrival: each with its port and pod.
    pub fn release(&mut self, now: Uptime) -> Vec<(Ticket, u16, SocketAddr)> {
        let per_pod = self.limits.per_pod;
        let mut released = Vec::new();
        for (port, queue) in &mut self.queues {
            while let Some(ticket) = queue.waiting.first().copied() {
                let Some(pod) = queue.take_least_loaded(per_pod, now) else {
                    break;
                };
                queue.waiting.remove(&ticket);
                released.push((ticket, *port, pod));
            }
        }
        for (ticket, ..) in &released {
            if let Some(bytes) = self.bytes.remove(ticket) {
                self.total -= bytes;
            }
        }
        released
    }

    /// Frees a released request's share of its pod: the pod answered, or the request left.
    pub fn finish(&mut self, port: u16, pod: SocketAddr) {
        if let Some(pod) = self.pod(port, pod) {
            pod.released = pod.released.saturating_sub(1);
        }
    }

    /// Records that a pod accepted a connection, which ends its retry delay.
    pub fn record_accepted(&mut self, port: u16, pod: SocketAddr) {
        if let Some(pod) = self.pod(port, pod) {
            pod.refusals = 0;
            pod.retry_at = None;
        }
    }

    /// Records that a pod refused a connection although it is reported as ready, and delays the next
    /// attempt.
    pub fn record_refused(&mut self, port: u16, pod: SocketAddr, now: Uptime) {
        if let Some(pod) = self.pod(port, pod) {
            let pause = POD_RETRY_DELAY.saturating_mul(1 << pod.refusals.min(10));
            pod.refusals = pod.refusals.saturating_add(1);
            pod.retry_at = Some(now + pause.min(MAX_POD_RETRY_DELAY));
        }
    }

    /// When the next pod may be tried again for a waiting request.
    pub fn next(&self, now: Uptime) -> Option<Uptime> {
        let queues = self.queues.values();
        let waiting = queues.filter(|queue| !queue.waiting.is_empty());
        waiting
            .flat_map(|queue| queue.pods.values())
            .filter_map(|pod| pod.retry_at)
            .filter(|until| *until > now)
            .min()
    }

    /// Whether requests wait for a port of which no pod can be tried.
    pub fn lacks_pods(&self, now: Uptime) -> bool {
        let lacks = |queue: &PortQueue| !queue.pods.values().any(|pod| pod.is_open(now));
        let mut waiting = self
            .queues
            .values()
            .filter(|queue| !queue.waiting.is_empty());
        waiting.any(lacks)
    }

    /// The number of waiting requests.
    pub fn held(&self) -> usize {
        self.bytes.len()
    }

    /// The memory that the waiting requests use.
    pub fn held_bytes(&self) -> usize {
        self.total
    }

    fn pod(&mut self, port: u16, pod: SocketAddr) -> Option<&mut QueuePod> {
        self.queues.get_mut(&port)?.pods.get_mut(&pod)
    }
}

impl PortQueue {
    /// The next pod in turn, for a request that passes.
    fn next(&mut self, now: Uptime) -> Option<SocketAddr> {
        let open = || self.pods.iter().filter(|(_, pod)| pod.is_open(now));
        let turn = self.turn.checked_rem(open().count())?;
        let next = open().nth(turn).map(|(address, _)| *address);
        self.turn = self.turn.wrapping_add(1);
        next
    }

    /// The pod with the fewest released requests, if below the limit; counts one more.
    fn take_least_loaded(&mut self, per_pod: usize, now: Uptime) -> Option<SocketAddr> {
        let open = self.pods.iter_mut().filter(|(_, pod)| pod.is_open(now));
        let free = open.filter(|(_, pod)| pod.released < per_pod);
        let (address, pod) = free.min_by_key(|(_, pod)| pod.released)?;
        pod.released += 1;
        Some(*address)
    }
}

impl QueuePod {
    fn is_open(&self, now: Uptime) -> bool {
        self.retry_at.is_none_or(|at| at <= now)
    }
}
