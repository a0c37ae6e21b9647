//! Who waits for a service, and who may go.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::Duration,
};

use neap_kit::clock::Uptime;

use crate::resolver::routes::{Limits, Pods};

/// A pod that refused is tried again after this time, and after twice as long each time.
const ASIDE: Duration = Duration::from_millis(20);
/// It is tried again after this time at the latest.
const ASIDE_AT_MOST: Duration = Duration::from_secs(1);

/// The place of somebody in line; lower ones came earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What becomes of somebody who arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// A pod takes connections and nobody waits: go there.
    Pass(SocketAddr),
    /// Wait to be let go.
    Wait,
    /// There is no room to wait.
    Full,
}

/// The line of one service, over all of its ports.
#[derive(Debug)]
pub struct Line {
    limits: Limits,
    /// What each of those who wait keeps in memory.
    bytes: BTreeMap<Ticket, usize>,
    total: usize,
    lanes: BTreeMap<u16, Lane>,
}

/// Those who wait for one port, and the pods that can take them.
#[derive(Debug, Default)]
struct Lane {
    waiting: BTreeSet<Ticket>,
    pods: BTreeMap<SocketAddr, Pod>,
    /// Whose turn it is, so that pods share those who pass.
    turn: usize,
}

#[derive(Debug, Default, Clone, Copy)]
struct Pod {
    /// How many of those who waited are on their way to it.
    sent: usize,
    /// It refused so many times in a row.
    refusals: u32,
    /// It is left alone until then.
    aside: Option<Uptime>,
}

impl Line {
    /// Nobody waits, and no pod is known.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            bytes: BTreeMap::new(),
            total: 0,
            lanes: BTreeMap::new(),
        }
    }

    /// What may be held from now on; those who wait stay.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The pods that take connections from now on.
    pub fn pods(&mut self, pods: &Pods) {
        for (port, lane) in &mut self.lanes {
            let present = pods.get(port).map_or(&[][..], Vec::as_slice);
            (lane.pods).retain(|address, _| present.binary_search(address).is_ok());
        }
        for (port, addresses) in pods {
            let lane = self.lanes.entry(*port).or_default();
            for address in addresses {
                lane.pods.entry(*address).or_default();
            }
        }
    }

    /// Somebody who keeps `bytes` in memory comes for a port.
    pub fn arrive(&mut self, port: u16, ticket: Ticket, bytes: usize, now: Uptime) -> Arrival {
        let lane = self.lanes.entry(port).or_default();
        if lane.waiting.is_empty()
            && let Some(pod) = lane.next(now)
        {
            return Arrival::Pass(pod);
        }
        let room = self.limits.bytes.saturating_sub(self.total);
        if self.bytes.len() >= self.limits.requests || bytes > room {
            return Arrival::Full;
        }
        self.wait(port, ticket, bytes);
        Arrival::Wait
    }

    /// Somebody waits, or waits again because a pod refused: they had a place and keep it.
    pub fn wait(&mut self, port: u16, ticket: Ticket, bytes: usize) {
        let lane = self.lanes.entry(port).or_default();
        if lane.waiting.insert(ticket) {
            self.bytes.insert(ticket, bytes);
            self.total += bytes;
        }
    }

    /// Whether somebody who waits may keep `more` bytes.
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

    /// Somebody waits no longer.
    pub fn leave(&mut self, port: u16, ticket: Ticket) {
        if let Some(lane) = self.lanes.get_mut(&port) {
            lane.waiting.remove(&ticket);
        }
        if let Some(bytes) = self.bytes.remove(&ticket) {
            self.total -= bytes;
        }
    }

    /// Lets go everybody who can go now, in order, each from a port to a pod.
    pub fn release(&mut self, now: Uptime) -> Vec<(Ticket, u16, SocketAddr)> {
        let per_pod = self.limits.per_pod;
        let mut gone = Vec::new();
        for (port, lane) in &mut self.lanes {
            while let Some(ticket) = lane.waiting.first().copied() {
                let Some(pod) = lane.freest(per_pod, now) else {
                    break;
                };
                lane.waiting.remove(&ticket);
                gone.push((ticket, *port, pod));
            }
        }
        for (ticket, ..) in &gone {
            if let Some(bytes) = self.bytes.remove(ticket) {
                self.total -= bytes;
            }
        }
        gone
    }

    /// Somebody who had waited has been taken by a pod, or left on the way there.
    pub fn arrived(&mut self, port: u16, pod: SocketAddr) {
        if let Some(pod) = self.pod(port, pod) {
            pod.sent = pod.sent.saturating_sub(1);
        }
    }

    /// A pod took a connection, so it is trusted again.
    pub fn took(&mut self, port: u16, pod: SocketAddr) {
        if let Some(pod) = self.pod(port, pod) {
            pod.refusals = 0;
            pod.aside = None;
        }
    }

    /// A pod took no connection although it is said to be ready: it is left alone for a moment.
    pub fn refused(&mut self, port: u16, pod: SocketAddr, now: Uptime) {
        if let Some(pod) = self.pod(port, pod) {
            let pause = ASIDE.saturating_mul(1 << pod.refusals.min(10));
            pod.refusals = pod.refusals.saturating_add(1);
            pod.aside = Some(now + pause.min(ASIDE_AT_MOST));
        }
    }

    /// When a pod may be tried again that somebody waits for.
    pub fn next(&self, now: Uptime) -> Option<Uptime> {
        let lanes = self.lanes.values();
        let asked = lanes.filter(|lane| !lane.waiting.is_empty());
        asked
            .flat_map(|lane| lane.pods.values())
            .filter_map(|pod| pod.aside)
            .filter(|until| *until > now)
            .min()
    }

    /// Whether somebody waits for whom no pod can be tried.
    pub fn lacks_pods(&self, now: Uptime) -> bool {
        let lacks = |lane: &Lane| !lane.pods.values().any(|pod| pod.is_open(now));
        let mut asked = self.lanes.values().filter(|lane| !lane.waiting.is_empty());
        asked.any(lacks)
    }

    /// How many wait.
    pub fn held(&self) -> usize {
        self.bytes.len()
    }

    /// How many bytes those who wait keep in memory.
    pub fn held_bytes(&self) -> usize {
        self.total
    }

    fn pod(&mut self, port: u16, pod: SocketAddr) -> Option<&mut Pod> {
        self.lanes.get_mut(&port)?.pods.get_mut(&pod)
    }
}

impl Lane {
    /// The next pod in turn for somebody who passes.
    fn next(&mut self, now: Uptime) -> Option<SocketAddr> {
        let open = || self.pods.iter().filter(|(_, pod)| pod.is_open(now));
        let turn = self.turn.checked_rem(open().count())?;
        let next = open().nth(turn).map(|(address, _)| *address);
        self.turn = self.turn.wrapping_add(1);
        next
    }

    /// The pod with the fewest on their way to it, if that is below the limit; one more is.
    fn freest(&mut self, per_pod: usize, now: Uptime) -> Option<SocketAddr> {
        let open = self.pods.iter_mut().filter(|(_, pod)| pod.is_open(now));
        let free = open.filter(|(_, pod)| pod.sent < per_pod);
        let (address, pod) = free.min_by_key(|(_, pod)| pod.sent)?;
        pod.sent += 1;
        Some(*address)
    }
}

impl Pod {
    fn is_open(&self, now: Uptime) -> bool {
        self.aside.is_none_or(|until| until <= now)
    }
}
