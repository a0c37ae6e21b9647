//! The resolver, whose connections are held requests without a socket.

use std::sync::{Arc, atomic::Ordering};

use futures::{FutureExt, future::BoxFuture};
use neap_idle::{
    resolver::{
        Resolver,
        hold::{HeldRequest, WakeFailed, WakeRequester},
        http::HostRouting,
        route_watcher::RouteWatcher,
        routes::{RouteDefaults, RouteTableReader},
    },
    wake::WakeOutcome,
};
use neap_kit::{context::Context, key::Key, manager::Component, watch::WatchesStopped};
use tokio::{sync::mpsc, task::JoinSet};

use crate::run_state::{AcceptedRequest, RunState};

pub(crate) fn components(
    context: &Context,
    state: &Arc<RunState>,
) -> Result<Vec<Component>, WatchesStopped> {
    let (publish, route_table) = RouteTableReader::new();
    let follow = RouteWatcher::new(
        &context.client,
        &context.watches,
        &[],
        RouteDefaults::default(),
        publish,
    )?;
    let waker = Arc::new(WakeForwarder(state.clone()));
    let telemetry = context.watches.process().telemetry().clone();
    let resolver = Resolver::new(
        context.clock,
        route_table,
        waker,
        HostRouting::default(),
        &telemetry,
    );
    let (accept, accepted) = mpsc::channel(64);
    *state.resolver.lock() = Some(accept);
    state.resolver_starts.fetch_add(1, Ordering::SeqCst);
    let holds = resolver.held_requests.clone();
    let state = state.clone();
    Ok(vec![
        Component::new("follow", |stop| follow.run(stop)),
        Component::new("holds", |stop| holds.run(stop)),
        Component::new("requests", |_| answer(resolver, accepted, state)),
    ])
}

async fn answer(
    resolver: Resolver,
    mut accepted: mpsc::Receiver<AcceptedRequest>,
    state: Arc<RunState>,
) {
    let mut all = JoinSet::new();
    loop {
        tokio::select! {
            Some(accepted) = accepted.recv() => {
                all.spawn(carry(resolver.clone(), accepted, state.clone()));
            }
            Some(_) = all.join_next() => {}
        }
    }
}

/// Forwards a request as `tcp` and `http` do, without a socket.
async fn carry(mut resolver: Resolver, accepted: AcceptedRequest, state: Arc<RunState>) {
    let route = loop {
        let table = resolver.route_table.current();
        if let Some(route) = table.routes().values().next() {
            break route.clone();
        }
        // No port is open yet, so the connection waits in the kernel.
        resolver.route_table.changed().await;
    };
    let mut holding = HeldRequest::new(&resolver.held_requests, route, 0);
    loop {
        let pod = match holding.assigned_pod().await {
            Ok(pod) => pod,
            Err(refused) => {
                let _ = accepted.reply.send(Err(refused.to_string()));
                return;
            }
        };
        if !state.pods.lock().contains(&pod) {
            holding.record_refused();
            continue;
        }
        holding.record_connected();
        state.record_received(accepted.id);
        holding.record_answered();
        let _ = accepted.reply.send(Ok(()));
        return;
    }
}

struct WakeForwarder(Arc<RunState>);

impl WakeRequester for WakeForwarder {
    fn wake(&self, service: Key, _: usize) -> BoxFuture<'static, Result<(), WakeFailed>> {
        let state = self.0.clone();
        async move {
            let away = || WakeFailed("the operator is away".to_owned());
            let operator = state.operator.lock().clone().ok_or_else(away)?;
            let asked = operator.wake(service);
            let asked = asked.map_err(|_| away())?;
            match asked.outcome().await {
                WakeOutcome::Woken { .. } => {
                    state.woken.fetch_add(1, Ordering::SeqCst);
                    Ok(())
                }
                WakeOutcome::Awake { .. } => Ok(()),
                other => Err(WakeFailed(format!("{other:?}"))),
            }
        }
        .boxed()
    }
}
