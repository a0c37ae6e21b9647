//! A request or connection on its way to a pod.

use std::{net::SocketAddr, sync::Arc};

use tokio::sync::oneshot;
use tracing::{Span, field::Empty};

use super::{
    HeldRequests, HoldTimes, Ticket,
    held_requests::{Placement, PodAssignment},
};
use crate::{
    api::{Breakdown, NotReadyCause},
    resolver::routes::Route,
};

/// A request or connection for a service. Dropping it removes it from the queue.
#[derive(Debug)]
pub struct HeldRequest {
    queues: HeldRequests,
    route: Arc<Route>,
    ticket: Ticket,
    bytes: usize,
    times: HoldTimes,
    state: HoldState,
    /// It was queued, and returns to its place in the queue if a pod refuses it.
    held: bool,
    /// The trace of the cold start, from the moment it was queued.
    span: Span,
}

#[derive(Debug)]
enum HoldState {
    /// Not in the queue.
    Outside,
    /// In the queue.
    Waiting(oneshot::Receiver<PodAssignment>),
    /// Assigned to a pod without waiting.
    Assigned(SocketAddr),
    /// Released to a pod, counted against the pod's limit.
    AssignedCounted(SocketAddr),
}

/// Why a request was refused before anything was sent to a pod.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HoldError {
    /// The queue of the service is full.
    #[error("too many requests are waiting for {0}")]
    QueueFull(neap_kit::key::Key),
    /// The deadline of the request has passed.
    #[error("no pod of {service} accepted the request in time")]
    DeadlineExceeded {
        /// The requested service.
        service: neap_kit::key::Key,
        /// Where the time went.
        breakdown: Breakdown,
        /// Why the last wake request failed, if it did.
        wake_error: Option<String>,
        /// Why no pod is ready, if the operator knows it.
        not_ready: Option<NotReadyCause>,
    },
    /// The resolver is shutting down.
    #[error("this resolver is shutting down")]
    ShuttingDown,
    /// The ElastiService was removed.
    #[error("{0} is no longer managed here")]
    ServiceGone(neap_kit::key::Key),
}

impl HeldRequest {
    /// A request for `route` that uses `bytes` of memory while it waits.
    pub fn new(queues: &HeldRequests, route: Arc<Route>, bytes: usize) -> Self {
        Self {
            queues: queues.clone(),
            route,
            ticket: queues.ticket(),
            bytes,
            times: HoldTimes::arrived(queues.shared.clock.uptime()),
            state: HoldState::Outside,
            held: false,
            span: Span::none(),
        }
    }

    /// The route of the request.
    pub fn route(&self) -> &Arc<Route> {
        &self.route
    }

    /// The time of each step.
    pub fn times(&self) -> &HoldTimes {
        &self.times
    }

    /// Whether it was queued.
    pub fn was_held(&self) -> bool {
        self.held
    }

    /// Its trace, if it was queued.
    pub fn span(&self) -> &Span {
        &self.span
    }

    /// Completes its trace, if it was queued.
    pub fn complete_trace(&self, outcome: &str, breakdown: &Breakdown) {
        self.span.record("outcome", outcome);
        for (part, took) in breakdown.parts() {
            self.span.record(part, took);
        }
    }

    /// The time until its deadline.
    pub fn remaining(&self) -> std::time::Duration {
        let deadline = self.times.arrived + self.route.service.deadline;
        deadline.saturating_sub(self.queues.shared.clock.uptime())
    }

    /// Reserves `more` bytes of memory; false if the limit is reached.
    pub fn grow(&mut self, more: usize) -> bool {
        let ticket = self.ticket;
        let grown = self.update(|queue, _| queue.grow(ticket, more));
        let grown = grown == Some(true);
        self.bytes += if grown { more } else { 0 };
        grown
    }

    /// Resolves to the assigned pod. Cancel-safe.
    pub async fn assigned_pod(&mut self) -> Result<SocketAddr, HoldError> {
        if matches!(self.state, HoldState::Outside) {
            self.enter()?;
        }
        let service = &self.route.service;
        let deadline = self.times.arrived + service.deadline;
        let shared = &self.queues.shared;
        match &mut self.state {
            HoldState::Assigned(pod) | HoldState::AssignedCounted(pod) => Ok(*pod),
            HoldState::Outside => Err(HoldError::ServiceGone(service.key.clone())),
            HoldState::Waiting(assignment) => tokio::select! {
                biased;
                assignment = assignment => match assignment {
                    Ok(assignment) => {
                        self.accept(assignment);
                        Ok(assignment.pod)
                    }
                    Err(_) => Err(HoldError::ServiceGone(service.key.clone())),
                },
                () = shared.closing.cancelled() => Err(HoldError::ShuttingDown),
                () = shared.clock.sleep_until(deadline) => Err(self.deadline_exceeded()),
            },
        }
    }

    /// Records that the pod refused the connection. Nothing was sent, so another pod may be assigned.
    pub fn record_refused(&mut self) {
        let now = self.queues.shared.clock.uptime();
        if let Some(pod) = self.pod() {
            let port = self.route.port.number;
            self.update(|queue, _| queue.record_refused(port, pod, now));
        }
        self.finish();
    }

    /// Records that the pod accepted the connection.
    pub fn record_connected(&mut self) {
        self.times.connected = Some(self.queues.shared.clock.uptime());
        if let Some(pod) = self.pod() {
            let port = self.route.port.number;
            self.update(|queue, _| queue.record_accepted(port, pod));
        }
    }

    /// Records that the first byte of the answer arrived.
    pub fn record_answered(&mut self) {
        self.times.first_byte = Some(self.queues.shared.clock.uptime());
        self.finish();
    }

    /// Frees its share of the pod, so that the next request may be released.
    pub fn finish(&mut self) {
        let state = std::mem::replace(&mut self.state, HoldState::Outside);
        if let HoldState::AssignedCounted(pod) = state {
            let port = self.route.port.number;
            self.update(|queue, _| queue.finish(port, pod));
        }
    }

    /// The error of an exceeded deadline, with where the time went.
    pub fn deadline_exceeded(&self) -> HoldError {
        let (mut times, mut wake_error, mut not_ready) = (self.times, None, None);
        if matches!(self.state, HoldState::Waiting(_)) {
            let key = &self.route.service.key;
            (times, wake_error) = self.queues.wake_progress(key, times.arrived);
            not_ready = self.queues.not_ready(key);
        }
        let breakdown = times.breakdown(self.queues.shared.clock.uptime());
        HoldError::DeadlineExceeded {
            service: self.route.service.key.clone(),
            breakdown,
            wake_error,
            not_ready,
        }
    }

    fn enter(&mut self) -> Result<(), HoldError> {
        let service = &self.route.service;
        if self.queues.shared.clock.uptime() >= self.times.arrived + service.deadline {
            return Err(self.deadline_exceeded());
        }
        let entered = (self.queues).enter(&self.route, self.ticket, self.bytes, self.held);
        self.state = match entered {
            Placement::Assigned(pod) => HoldState::Assigned(pod),
            Placement::Waiting(assignment) => {
                if !self.held {
                    self.held = true;
                    self.span = span(&self.route);
                }
                HoldState::Waiting(assignment)
            }
            Placement::Full => return Err(HoldError::QueueFull(service.key.clone())),
        };
        Ok(())
    }

    fn accept(&mut self, assignment: PodAssignment) {
        self.state = HoldState::AssignedCounted(assignment.pod);
        self.times.requested = assignment.wake_requested;
        self.times.scaled = assignment.scaled;
        self.times.scheduled = assignment.scheduled;
        self.times.ready = Some(self.queues.shared.clock.uptime());
    }

    fn pod(&self) -> Option<SocketAddr> {
        match self.state {
            HoldState::Assigned(pod) | HoldState::AssignedCounted(pod) => Some(pod),
            HoldState::Outside | HoldState::Waiting(_) => None,
        }
    }

    fn update<T>(
        &self,
        change: impl FnOnce(&mut super::WaitQueue, neap_kit::clock::Uptime) -> T,
    ) -> Option<T> {
        self.queues.update(&self.route.service.key, change)
    }
}

/// The trace of a cold start, with the milliseconds of each part.
fn span(route: &Route) -> Span {
    let service = &route.service.key;
    let port = route.port.number;
    tracing::info_span!(
        "cold_start", %service, port, outcome = Empty, queue = Empty, scale = Empty,
        schedule = Empty, ready = Empty, connect = Empty, first_byte = Empty,
    )
}

impl Drop for HeldRequest {
    fn drop(&mut self) {
        if let HoldState::Waiting(assignment) = &mut self.state {
            let port = self.route.port.number;
            self.queues
                .leave(&self.route.service.key, port, self.ticket);
            // It may have been released at this very moment.
            if let Ok(assignment) = assignment.try_recv() {
                self.state = HoldState::AssignedCounted(assignment.pod);
            }
        }
        self.finish();
    }
}
