//! The operator with triggers that are read from the object, and a data plane without lag.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use kube::{Client, ResourceExt};
use neap_idle::{
    api::ElastiService,
    elasti_service::{
        self, Settings,
        facts::{PortRange, Timeouts},
        reachability::{ProofRequest, Prover},
    },
    opt_in::{self, OptInLimits},
    options::Installation,
    reason::Reason,
    trigger::{Verdict, Verdicts},
    wake::{WakeHandle, WakeRunner},
};
use neap_kit::{
    clock::Clock, context::Context, controller::Enqueuer, key::Key, lease::Leadership,
    watch::Watches,
};
use tokio_util::sync::CancellationToken;

/// The annotation of a service without requests.
pub(crate) const IDLE: &str = "test/idle";

#[derive(Debug)]
struct AnnotationTriggers;

impl Verdicts for AnnotationTriggers {
    fn latest(&self, service: &ElastiService) -> Verdict {
        if service.annotations().contains_key(IDLE) {
            Verdict::Idle(Reason::new("Idle", "no requests"))
        } else {
            Verdict::Unknown(Reason::new("Unknown", "no measurement"))
        }
    }

    fn poll_now<'a>(&'a self, service: &'a ElastiService) -> BoxFuture<'a, Verdict> {
        Box::pin(async { self.latest(service) })
    }

    fn enqueue_changes(&self, _: Enqueuer<Key>) {}
}

#[derive(Debug)]
struct AlwaysReachable;

impl Prover for AlwaysReachable {
    fn prove<'a>(&'a self, _: &'a ProofRequest) -> BoxFuture<'a, bool> {
        Box::pin(async { true })
    }
}

/// The namespaces of an operator and its resolvers.
pub(crate) struct OperatorPlacement<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) resolver_service: &'a str,
    /// The only watched namespace; all if absent.
    pub(crate) only: Option<&'a str>,
}

/// A running operator, stopped when dropped.
pub(crate) struct Operator {
    pub(crate) waker: WakeHandle,
    stop: CancellationToken,
}

impl Operator {
    pub(crate) fn start(
        client: &Client,
        placement: &OperatorPlacement<'_>,
        leadership: Option<Leadership>,
    ) -> Self {
        let clock = Clock::system();
        let (watches, watching) = Watches::new(clock);
        let context = Context {
            client: client.clone(),
            watches: watches.in_namespaces(placement.only.map(str::to_owned)),
            leadership: leadership.unwrap_or_else(|| Leadership::without_election(clock)),
            clock,
        };
        let settings = Settings {
            installation: Installation {
                operator_namespace: placement.namespace.to_owned(),
                resolver_namespace: placement.namespace.to_owned(),
                resolver_service: placement.resolver_service.to_owned(),
                ..Installation::standard()
            },
            resolver_ports: PortRange::default(),
            timeouts: Timeouts {
                grace: Duration::from_millis(200),
                ..Timeouts::default()
            },
        };
        let stop = CancellationToken::new();
        let (waker, wakes) = WakeRunner::for_all_services(&context).unwrap();
        let keeper = elasti_service::component(
            &context,
            settings,
            Arc::new(AnnotationTriggers),
            Arc::new(AlwaysReachable),
        )
        .unwrap();
        let annotations =
            opt_in::component(&context, placement.namespace, &OptInLimits::default()).unwrap();
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
