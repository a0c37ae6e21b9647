//! A process under test: it runs components, crashes, and restarts while the rest of the run goes
//! on.

use std::{sync::Arc, time::Duration};

use kube::{Client, client::retry::RetryPolicy};
use neap_kit::{
    context::Context,
    lease::{self, Elector, Leadership, LeaseTimings},
    manager::Component,
    process::Process,
    watch::{Watches, WatchesStopped},
};
use neap_pocket::Pocket;
use parking_lot::Mutex;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tower::{ServiceBuilder, retry::RetryLayer};

use crate::{
    external::ExternalClient,
    fault_injector::{Connection, FaultInjector, Restart},
    own_writes::OwnWrites,
    run_state::RunState,
};

const RESTART_DELAY: Duration = Duration::from_secs(1);
/// Time for which a restarted process reads from a lagging server.
const STALE_READ_TIME: Duration = Duration::from_secs(10);

/// Three times the production timings: a renewal costs time and rarely shows anything. The Lease of
/// a dead holder is still taken over before a step counts as quiet.
const ELECTION_TIMINGS: LeaseTimings = LeaseTimings {
    lease_duration: Duration::from_secs(45),
    renew_deadline: Duration::from_secs(30),
    retry_period: Duration::from_secs(9),
};

type Components =
    Arc<dyn Fn(&Context, &ExternalClient) -> Result<Vec<Component>, WatchesStopped> + Send + Sync>;

/// A process and the components that it runs.
#[derive(Clone)]
pub(crate) struct Actor {
    pub(crate) name: &'static str,
    pub(crate) components: Components,
    /// The Lease that it competes for, if there are other candidates.
    pub(crate) elected: Option<&'static str>,
}

impl Actor {
    /// Runs the process forever, restarting it after each crash. Unexpected ends are added to
    /// `failures`.
    pub(crate) async fn run(
        self,
        pocket: Pocket,
        run_state: Arc<RunState>,
        failures: Arc<Mutex<Vec<String>>>,
    ) {
        let mut restart = Restart::default();
        for number in 0_u32.. {
            let (death, mut died) = mpsc::channel(1);
            let view = pocket.view(None);
            let late = pocket.service_over(view.clone());
            let own = Arc::new(OwnWrites::default());
            run_state.own_writes.lock().push(own.clone());
            let connection = Arc::new(Connection::new(
                self.name.into(),
                run_state.clock,
                view,
                death,
                run_state.active_faults.clone(),
                own,
            ));
            if restart.events > 0 {
                connection.lag(restart.events, restart.kinds, STALE_READ_TIME);
            }
            let injector = FaultInjector::new(
                pocket.service(),
                late,
                connection.clone(),
                run_state.clone(),
            );
            let external = ExternalClient::new(connection.clone(), run_state.clone());
            let mut life = self.start(injector, &external, number, &connection, &run_state);
            if let Err(problem) = &mut life {
                failures.lock().push(std::mem::take(problem));
                return;
            }
            let Ok(mut tasks) = life else { return };
            let behind = connection.clone();
            tasks.spawn(async move { behind.end_lags().await });
            let dead = tokio::select! {
                dead = died.recv() => dead,
                ended = tasks.join_next() => {
                    failures.lock().push(format!("a component of {} has ended: {ended:?}", self.name));
                    return;
                }
            };
            restart = dead.unwrap_or_default();
            drop(tasks);
            run_state.hold(RESTART_DELAY).await;
        }
    }

    /// Starts the process; its tasks end when the returned set is dropped.
    fn start(
        &self,
        injector: FaultInjector,
        external: &ExternalClient,
        number: u32,
        connection: &Connection,
        run_state: &RunState,
    ) -> Result<JoinSet<()>, String> {
        let clock = run_state.clock;
        let mut tasks = JoinSet::new();
        let stop = CancellationToken::new();
        let bare = Client::new(injector.clone(), "default");
        let leadership = match self.elected {
            None => Leadership::without_election(clock),
            Some(lease) => {
                let options = lease::ElectionOptions {
                    namespace: "kube-system".to_owned(),
                    name: lease.to_owned(),
                    identity: format!("{}-{number}", self.name),
                    timings: ELECTION_TIMINGS,
                };
                let elected = Elector::new(bare, options, clock);
                let (elector, leadership) = elected.map_err(|error| error.to_string())?;
                tasks.spawn(elector.run(stop.clone()));
                leadership
            }
        };
        // The retry policy of a client that was created from a kubeconfig.
        let retried = ServiceBuilder::new()
            .layer(RetryLayer::new(RetryPolicy::server_retry()))
            .service(injector);
        let process = Process::default().with_reconcile_observer(connection.own_writes().clone());
        let (watches, watching) = Watches::in_process(clock, process);
        connection.own_writes().set_watches(&watches);
        let context = Context {
            client: Client::new(retried, "default"),
            watches,
            leadership,
            clock,
        };
        let components =
            (self.components)(&context, external).map_err(|error| error.to_string())?;
        for component in components {
            tasks.spawn(component.run(stop.clone()));
        }
        tasks.spawn(watching.run(stop));
        Ok(tasks)
    }
}
