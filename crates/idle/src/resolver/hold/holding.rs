//! One request or connection on its way to a pod.

use std::{net::SocketAddr, sync::Arc};

use tokio::sync::oneshot;
use tracing::{Span, field::Empty};

use super::{
    Holds, Ticket, Times,
    holds::{Entered, Told},
};
use crate::{api::Breakdown, resolver::routes::Route};

/// Somebody who came for a service. Dropping it is leaving.
#[derive(Debug)]
pub struct Holding {
    holds: Holds,
    route: Arc<Route>,
    ticket: Ticket,
    bytes: usize,
    times: Times,
    stand: Stand,
    /// It has had a place in line, to which it comes back if a pod refuses it.
    held: bool,
    /// Lasts from the moment it had to wait.
    span: Span,
}

#[derive(Debug)]
enum Stand {
    /// Not in line.
    Out,
    /// In line.
    Waits(oneshot::Receiver<Told>),
    /// On the way to a pod.
    Goes(SocketAddr),
    /// The same, as one of those whose number is limited.
    GoesCounted(SocketAddr),
}

/// Nobody takes it, and nothing of it was sent anywhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// As many wait as may.
    #[error("too many wait for {0}")]
    Full(neap_kit::key::Key),
    /// The time is up.
    #[error("no pod of {service} was there in time")]
    Late {
        /// Whom it came for.
        service: neap_kit::key::Key,
        /// Where the time went.
        breakdown: Breakdown,
        /// Why the last wake failed, if it did.
        not_woken: Option<String>,
    },
    /// This resolver is ending.
    #[error("this resolver is ending")]
    Closing,
    /// The service is no longer one that sleeps.
    #[error("{0} is no longer known here")]
    Gone(neap_kit::key::Key),
}

impl Holding {
    /// Somebody came for `route` and keeps `bytes` in memory while it waits.
    pub fn new(holds: &Holds, route: Arc<Route>, bytes: usize) -> Self {
        Self {
            holds: holds.clone(),
            route,
            ticket: holds.ticket(),
            bytes,
            times: Times::arrived(holds.shared.clock.uptime()),
            stand: Stand::Out,
            held: false,
            span: Span::none(),
        }
    }

    /// Whom it came for.
    pub fn route(&self) -> &Arc<Route> {
        &self.route
    }

    /// When what happened.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// Whether it had to wait.
    pub fn was_held(&self) -> bool {
        self.held
    }

    /// Its trace, if it had to wait.
    pub fn span(&self) -> &Span {
        &self.span
    }

    /// Completes its trace, if it had to wait.
    pub fn trace(&self, outcome: &str, breakdown: &Breakdown) {
        self.span.record("outcome", outcome);
        for (part, took) in breakdown.parts() {
            self.span.record(part, took);
        }
    }

    /// So much of its time is left.
    pub fn left(&self) -> std::time::Duration {
        let deadline = self.times.arrived + self.route.service.deadline;
        deadline.saturating_sub(self.holds.shared.clock.uptime())
    }

    /// Whether `more` bytes may be kept in memory.
    pub fn grow(&mut self, more: usize) -> bool {
        let ticket = self.ticket;
        let grown = self.tell(|line, _| line.grow(ticket, more));
        let grown = grown == Some(true);
        self.bytes += if grown { more } else { 0 };
        grown
    }

    /// Resolves to the pod to go to. May be dropped and asked again.
    pub async fn place(&mut self) -> Result<SocketAddr, Refused> {
        if matches!(self.stand, Stand::Out) {
            self.enter()?;
        }
        let service = &self.route.service;
        let deadline = self.times.arrived + service.deadline;
        let shared = &self.holds.shared;
        match &mut self.stand {
            Stand::Goes(pod) | Stand::GoesCounted(pod) => Ok(*pod),
            Stand::Out => Err(Refused::Gone(service.key.clone())),
            Stand::Waits(told) => tokio::select! {
                biased;
                told = told => match told {
                    Ok(told) => {
                        self.go(told);
                        Ok(told.pod)
                    }
                    Err(_) => Err(Refused::Gone(service.key.clone())),
                },
                () = shared.closing.cancelled() => Err(Refused::Closing),
                () = shared.clock.sleep_until(deadline) => Err(self.late()),
            },
        }
    }

    /// The pod took no connection. Nothing was sent, so another may be asked for.
    pub fn refused(&mut self) {
        let now = self.holds.shared.clock.uptime();
        if let Some(pod) = self.pod() {
            let port = self.route.port.number;
            self.tell(|line, _| line.refused(port, pod, now));
        }
        self.settle();
    }

    /// The pod took the connection.
    pub fn connected(&mut self) {
        self.times.connected = Some(self.holds.shared.clock.uptime());
        if let Some(pod) = self.pod() {
            let port = self.route.port.number;
            self.tell(|line, _| line.took(port, pod));
        }
    }

    /// The pod began to answer.
    pub fn answered(&mut self) {
        self.times.first_byte = Some(self.holds.shared.clock.uptime());
        self.settle();
    }

    /// It no longer counts among those who are on their way, so that the next may go.
    pub fn settle(&mut self) {
        let stand = std::mem::replace(&mut self.stand, Stand::Out);
        if let Stand::GoesCounted(pod) = stand {
            let port = self.route.port.number;
            self.tell(|line, _| line.arrived(port, pod));
        }
    }

    /// The time is up: where it went.
    pub fn late(&self) -> Refused {
        let (mut times, mut not_woken) = (self.times, None);
        if matches!(self.stand, Stand::Waits(_)) {
            let key = &self.route.service.key;
            (times, not_woken) = self.holds.woken(key, times.arrived);
        }
        let breakdown = times.breakdown(self.holds.shared.clock.uptime());
        Refused::Late {
            service: self.route.service.key.clone(),
            breakdown,
            not_woken,
        }
    }

    fn enter(&mut self) -> Result<(), Refused> {
        let service = &self.route.service;
        if self.holds.shared.clock.uptime() >= self.times.arrived + service.deadline {
            return Err(self.late());
        }
        let entered = (self.holds).enter(&self.route, self.ticket, self.bytes, self.held);
        self.stand = match entered {
            Entered::Passed(pod) => Stand::Goes(pod),
            Entered::Waits(told) => {
                if !self.held {
                    self.held = true;
                    self.span = span(&self.route);
                }
                Stand::Waits(told)
            }
            Entered::Full => return Err(Refused::Full(service.key.clone())),
        };
        Ok(())
    }

    fn go(&mut self, told: Told) {
        self.stand = Stand::GoesCounted(told.pod);
        self.times.asked = told.asked;
        self.times.scaled = told.scaled;
        self.times.scheduled = told.scheduled;
        self.times.ready = Some(self.holds.shared.clock.uptime());
    }

    fn pod(&self) -> Option<SocketAddr> {
        match self.stand {
            Stand::Goes(pod) | Stand::GoesCounted(pod) => Some(pod),
            Stand::Out | Stand::Waits(_) => None,
        }
    }

    fn tell<T>(
        &self,
        what: impl FnOnce(&mut super::Line, neap_kit::clock::Uptime) -> T,
    ) -> Option<T> {
        self.holds.tell(&self.route.service.key, what)
    }
}

/// The trace of a cold start, with milliseconds for each part of it.
fn span(route: &Route) -> Span {
    let service = &route.service.key;
    let port = route.port.number;
    tracing::info_span!(
        "cold_start", %service, port, outcome = Empty, queue = Empty, scale = Empty,
        schedule = Empty, ready = Empty, connect = Empty, first_byte = Empty,
    )
}

impl Drop for Holding {
    fn drop(&mut self) {
        if let Stand::Waits(told) = &mut self.stand {
            let port = self.route.port.number;
            self.holds.leave(&self.route.service.key, port, self.ticket);
            // It may have been told where to go at this very moment.
            if let Ok(told) = told.try_recv() {
                self.stand = Stand::GoesCounted(told.pod);
            }
        }
        self.settle();
    }
}
