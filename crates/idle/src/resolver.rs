//! The process that answers for services that sleep, and wakes them.
//!
//! A connection comes in on a port of its own for each port of a service ([`routes`], [`listen`]), is
//! held until a pod takes it ([`hold`], [`connect`], over [`net`]) and is then carried byte by byte
//! ([`tcp`], [`tls`]) or request by request ([`http`]), all of it on one thread ([`lanes`]). What the
//! rest of the process asks is plain: which connections were taken ([`taken`], [`prove`]), who was
//! asked for ([`activity`]), how much is held ([`hold::Holds::all_queued`]), and to end well
//! ([`drain`]). [`run`] puts all of it together, and [`open`] the rest of its process with it.
//!
//! Invariants:
//! - nothing is sent to a pod before a connection to it stands, and what was sent is not sent again;
//! - memory does not grow with what is carried.

pub mod activity;
pub mod connect;
pub mod drain;
pub mod events;
pub mod follow;
pub mod hold;
pub mod http;
pub mod inside;
pub mod lanes;
pub mod listen;
pub mod net;
pub mod open;
pub mod operator;
pub mod peers;
pub mod prove;
pub mod routes;
pub mod run;
mod shared;
pub mod taken;
pub mod tcp;
pub mod tls;

use std::{fmt::Display, net::IpAddr, sync::Arc, time::Duration};

use neap_kit::{
    clock::Clock,
    key::Key,
    telemetry::{Meter, Telemetry},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    activity::{Activity, Open},
    events::{Came, Metrics, ServedCold, TurnedAway},
    hold::{Holding, Holds, Refused, Waker},
    http::Client,
    net::Net,
    routes::{Route, Tables},
    taken::Taken,
};
use crate::api::{Breakdown, Protocol};

/// Longer than anybody needs who means it.
const PATIENCE: Duration = Duration::from_secs(30);

/// What every part of the path of a connection needs. Cheap to copy.
#[derive(Debug, Clone)]
pub struct Resolver {
    /// The time.
    pub clock: Clock,
    /// Who is meant.
    pub tables: Tables,
    /// Where things are held.
    pub holds: Holds,
    /// Which connections were taken.
    pub taken: Taken,
    /// Who was asked for.
    pub activity: Activity,
    /// Requests to pods.
    pub client: Client,
    /// Every connection runs as one of these.
    pub tasks: TaskTracker,
    /// Cancelled when connections that are between requests are to end.
    pub ending: CancellationToken,
    /// How services are named on the shared port.
    pub naming: Arc<http::Naming>,
    /// What is told.
    pub meter: Meter<Metrics>,
    /// Whether what clients choose is a label of the numbers of KubeElasti.
    pub unbounded_metrics: bool,
    /// So long a client may take to say what it wants, also between two requests.
    pub patience: Duration,
    /// The address that it has; all of the machine if absent.
    pub host: Option<IpAddr>,
    /// Where it listens and whom it reaches; see [`Resolver::over`].
    net: Net,
}

impl Resolver {
    /// Somebody came for a service, and is there until what this gives is dropped.
    fn came(&self, route: &Route) -> Open {
        let protocol = route.port.protocol;
        self.meter.emit(&Came { protocol });
        self.activity.begin(&route.service.key)
    }

    /// Tells that somebody was served after it was held, and where the time went.
    fn served(&self, holding: &Holding) -> Option<Breakdown> {
        if !holding.was_held() {
            return None;
        }
        let route = holding.route();
        let breakdown = holding.times().breakdown(self.clock.uptime());
        holding.trace("served", &breakdown);
        self.activity.served_cold(&route.service.key, breakdown);
        self.meter.emit(&ServedCold {
            service: &route.service.key,
            protocol: route.port.protocol,
            breakdown,
        });
        Some(breakdown)
    }

    /// Tells that somebody was refused.
    fn refused(&self, holding: &Holding, why: &Refused) {
        if let Refused::Late { breakdown, .. } = why {
            holding.trace(why.reason(), breakdown);
        }
        self.turned_away(holding.route(), why.reason(), why);
    }

    /// Tells that somebody was not served.
    fn turned_away(&self, route: &Route, reason: &'static str, why: &dyn Display) {
        self.meter.emit(&TurnedAway {
            service: Some(&route.service.key),
            protocol: route.port.protocol,
            reason,
            why: why.to_string(),
        });
    }

    /// Tells that somebody said nothing within the time that clients have.
    fn too_slow(&self, service: Option<&Key>, protocol: Protocol) {
        self.meter.emit(&TurnedAway {
            service,
            protocol,
            reason: http::TOO_SLOW,
            why: "nothing was asked".to_owned(),
        });
    }

    /// A resolver for the services of `tables`, which asks `waker`.
    pub fn new(
        clock: Clock,
        tables: Tables,
        waker: Arc<dyn Waker>,
        naming: http::Naming,
        telemetry: &Telemetry,
    ) -> Self {
        let tasks = TaskTracker::new();
        let meter = events::meter(telemetry);
        let holds = Holds::new(clock, tables.clone(), waker, tasks.clone(), meter.clone());
        events::show(telemetry, &holds);
        Self {
            clock,
            holds,
            tables,
            taken: Taken::new(clock),
            activity: Activity::new(clock),
            client: Client::new(clock, tasks.clone()),
            tasks,
            ending: CancellationToken::new(),
            naming: Arc::new(naming),
            meter,
            unbounded_metrics: false,
            patience: PATIENCE,
            host: None,
            net: Net::default(),
        }
    }

    /// The same over another network than that of the machine.
    #[must_use]
    pub fn over(mut self, net: Net) -> Self {
        self.client.net = net.clone();
        self.net = net;
        self
    }
}
