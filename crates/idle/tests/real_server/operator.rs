//! The operator with triggers that are read from the object, and a data plane that follows at once.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use kube::{Client, ResourceExt};
use neap_idle::{
    api::ElastiService,
    opt_in,
    service::{
        facts::Patience,
        ports::Range,
        prove::{Prover, Search},
        run::{self, Settings},
        verdict::{Because, Verdict, Verdicts},
    },
    wake::{WakeService, Waker},
};
use neap_kit::{
    clock::Clock, controller::Trigger, key::Key, lease::Leadership, site::Site, watch::Watches,
};
use tokio_util::sync::CancellationToken;

/// Says that nobody asks for a service.
pub(crate) const IDLE: &str = "test/idle";

#[derive(Debug)]
struct Written;

impl Verdicts for Written {
    fn of(&self, service: &ElastiService) -> Verdict {
        if service.annotations().contains_key(IDLE) {
            Verdict::Idle(Because::new("Idle", "nobody asks"))
        } else {
            Verdict::Unknown(Because::new("Unknown", "nobody can say"))
        }
    }

    fn anew<'a>(&'a self, service: &'a ElastiService) -> BoxFuture<'a, Verdict> {
        Box::pin(async { self.of(service) })
    }

    fn tell(&self, _: Trigger<Key>) {}
}

#[derive(Debug)]
struct Always;

impl Prover for Always {
    fn prove<'a>(&'a self, _: &'a Search) -> BoxFuture<'a, bool> {
        Box::pin(async { true })
    }
}

/// Where an operator and its resolvers are.
pub(crate) struct Home<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) resolver_service: &'a str,
    /// The only namespace it looks at, if it does not look at all.
    pub(crate) only: Option<&'a str>,
}

/// One that runs; ended if this value goes.
pub(crate) struct Operator {
    pub(crate) waker: Waker,
    stop: CancellationToken,
}

impl Operator {
    pub(crate) fn start(client: &Client, home: &Home<'_>, leadership: Option<Leadership>) -> Self {
        let clock = Clock::system();
        let (watches, watching) = Watches::new(clock);
        let site = Site {
            client: client.clone(),
            watches: watches.within(home.only.map(str::to_owned)),
            leadership: leadership.unwrap_or_else(|| Leadership::alone(clock)),
            clock,
        };
        let settings = Settings {
            namespace: home.namespace.to_owned(),
            resolver_namespace: home.namespace.to_owned(),
            resolver_service: home.resolver_service.to_owned(),
            range: Range::default(),
            patience: Patience {
                grace: Duration::from_millis(200),
                ..Patience::default()
            },
        };
        let stop = CancellationToken::new();
        let (waker, wakes) = WakeService::of_all(&site).unwrap();
        let keeper = run::service(&site, settings, Arc::new(Written), Arc::new(Always)).unwrap();
        let annotations = opt_in::service(&site, home.namespace).unwrap();
        tokio::spawn(keeper.run(stop.clone()));
        tokio::spawn(annotations.run(stop.clone()));
        tokio::spawn(wakes.run(stop.clone()));
        tokio::spawn(watching.run(stop.clone()));
        Self { waker, stop }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
