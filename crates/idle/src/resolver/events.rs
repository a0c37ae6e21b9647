//! What is told of the path of connections: as log lines and as numbers.

mod compatible;
mod metrics;

use std::time::Duration;

use http::{Method, StatusCode, request};
use neap_kit::{
    key::Key,
    telemetry::{Event, Meter, Telemetry},
};

pub use self::metrics::Metrics;
use self::{
    compatible::{Extraction, Incoming, Unbounded},
    metrics::{Outcome, Part, Reason, Spoken},
};
use super::hold::{Holds, Refused};
use crate::api::{Breakdown, Protocol};

/// Somebody came for a service.
#[derive(Debug)]
pub struct Came {
    /// In what.
    pub protocol: Protocol,
}

/// Somebody was held and then served.
#[derive(Debug)]
pub struct ServedCold<'a> {
    /// By whom.
    pub service: &'a Key,
    /// In what.
    pub protocol: Protocol,
    /// Where the time went.
    pub breakdown: Breakdown,
}

/// Somebody was not served.
#[derive(Debug)]
pub struct TurnedAway<'a> {
    /// By whom, if that is known.
    pub service: Option<&'a Key>,
    /// In what.
    pub protocol: Protocol,
    /// Why, in one word of a few.
    pub reason: &'static str,
    /// Why, for people.
    pub why: String,
}

/// What was to be sent to a pod was surely not sent, so another pod gets it.
#[derive(Debug)]
pub struct SentElsewhere<'a> {
    /// For whom it is.
    pub service: &'a Key,
    /// In what.
    pub protocol: Protocol,
}

/// The operator was asked to wake a service.
#[derive(Debug)]
pub struct AskedToWake<'a> {
    /// Which.
    pub service: &'a Key,
    /// Why it did not, if it did not.
    pub error: Option<&'a str>,
}

/// A name was looked up on the port that all services share.
#[derive(Debug)]
pub struct LookedUp<'a> {
    /// Who is known by it.
    pub service: Option<&'a Key>,
    /// What it came with.
    pub asked: &'a Asked,
}

/// Services may be gone of which something was shown.
pub struct Forgot<'a>(
    /// Whether one is still known.
    pub &'a dyn Fn(&Key) -> bool,
);

/// A request got the head of its answer, from a pod or from here.
#[derive(Debug)]
pub struct Answered<'a> {
    /// Whom it came for.
    pub service: &'a Key,
    /// What was asked.
    pub asked: &'a Asked,
    /// What was answered.
    pub status: StatusCode,
    /// After so long.
    pub took: Duration,
}

/// What is told of a request after it has gone.
#[derive(Debug, Clone)]
pub struct Asked {
    method: Method,
    /// Only where somebody wants to see it.
    rest: Option<Unbounded>,
}

/// A meter of what resolvers count, and of what `holds` holds.
pub fn meter(telemetry: &Telemetry) -> Meter<Metrics> {
    let elasti = telemetry.compatible(compatible::Metrics::register);
    telemetry.meter(|registry| Metrics::register(registry, elasti))
}

/// Shows how much is held whenever somebody looks.
pub fn show(telemetry: &Telemetry, holds: &Holds) {
    let queued = holds.clone();
    telemetry.meter(|registry| {
        registry.register_collector(Box::new(metrics::HeldNow(queued)));
    });
    let queued = holds.clone();
    telemetry.compatible(|registry| {
        registry.register_collector(Box::new(compatible::QueuedNow(queued)));
    });
}

fn spoken(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Http => "http",
        Protocol::Tls => "tls",
    }
}

impl Refused {
    /// In one word, for those who count.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Full(_) => "TooManyWaiting",
            Self::Late { .. } => "DeadlineExceeded",
            Self::Closing => "ResolverEnding",
            Self::Gone(_) => "ServiceGone",
        }
    }
}

impl Asked {
    /// What of a request may be told: all of it only if `unbounded`, since clients choose it.
    pub fn of(head: &request::Parts, unbounded: bool) -> Self {
        Self {
            method: head.method.clone(),
            rest: unbounded.then(|| Unbounded::of(head)),
        }
    }
}

impl Event<Metrics> for Came {
    fn log(&self) {
        tracing::trace!(protocol = spoken(self.protocol), "somebody came");
    }

    fn count(&self, metrics: &Metrics) {
        metrics.came(self.protocol).inc();
    }
}

impl Event<Metrics> for ServedCold<'_> {
    fn log(&self) {
        let Breakdown {
            queue,
            scale,
            schedule,
            ready,
            connect,
            first_byte,
        } = self.breakdown;
        let service = self.service;
        tracing::debug!(
            %service, queue, scale, schedule, ready, connect, first_byte, "served after a wake"
        );
    }

    fn count(&self, metrics: &Metrics) {
        let protocol = spoken(self.protocol);
        // What goes byte by byte is no longer looked at once it is connected.
        let seen = if self.protocol == Protocol::Http {
            6
        } else {
            5
        };
        let parts = self.breakdown.parts();
        let all: i64 = parts[..seen].iter().map(|(_, took)| took).sum();
        for (part, took) in parts[..seen].iter().copied().chain([("all", all)]) {
            let part = Part { protocol, part };
            let seconds = took as f64 / 1000.0;
            metrics.cold_starts.get_or_create(&part).observe(seconds);
        }
    }
}

impl Event<Metrics> for TurnedAway<'_> {
    fn log(&self) {
        let (reason, why) = (self.reason, &self.why);
        let service = self.service.map(Key::to_string);
        tracing::debug!(service, reason, why, "a client was not served");
    }

    fn count(&self, metrics: &Metrics) {
        let reason = Reason {
            protocol: spoken(self.protocol),
            reason: self.reason,
        };
        metrics.refused.get_or_create(&reason).inc();
    }
}

impl Event<Metrics> for SentElsewhere<'_> {
    fn log(&self) {
        let service = self.service;
        tracing::debug!(%service, "a pod took nothing of what was to be sent; another gets it");
    }

    fn count(&self, metrics: &Metrics) {
        let protocol = spoken(self.protocol);
        let labels = Spoken { protocol };
        metrics.sent_elsewhere.get_or_create(&labels).inc();
    }
}

impl Event<Metrics> for AskedToWake<'_> {
    fn log(&self) {
        let service = self.service;
        match &self.error {
            None => tracing::debug!(%service, "asked to wake"),
            Some(error) => tracing::warn!(
                %service, error, "a service could not be woken; it is tried again"
            ),
        }
    }

    fn count(&self, metrics: &Metrics) {
        let failed = self.error.is_some();
        let result = if failed { "failed" } else { "done" };
        metrics.wakes.get_or_create(&Outcome { result }).inc();
        metrics.elasti.asked_operator(failed);
    }
}

impl Event<Metrics> for LookedUp<'_> {
    fn log(&self) {
        let service = self.service.map(Key::to_string);
        tracing::trace!(service, "a name was looked up");
    }

    fn count(&self, metrics: &Metrics) {
        let rest = self.asked.rest.as_ref();
        metrics.elasti.extracted(&Extraction {
            service: self.service.cloned(),
            host: rest.map(|rest| rest.host.clone()),
        });
    }
}

impl Event<Metrics> for Answered<'_> {
    fn log(&self) {
        let (service, status, took) = (self.service, self.status.as_u16(), self.took);
        tracing::trace!(%service, status, ?took, "answered");
    }

    fn count(&self, metrics: &Metrics) {
        let Asked { method, rest } = self.asked;
        let labels = Incoming {
            service: self.service.clone(),
            method: compatible::known(method),
            status: self.status.as_u16(),
            rest: rest.clone(),
        };
        metrics.elasti.answered(labels, self.took);
    }
}

impl Event<Metrics> for Forgot<'_> {
    fn log(&self) {}

    fn count(&self, metrics: &Metrics) {
        metrics.elasti.retain(self.0);
    }
}

impl std::fmt::Debug for Forgot<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forgot").finish_non_exhaustive()
    }
}
