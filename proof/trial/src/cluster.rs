//! A cluster whose controllers are started, given objects and inspected step by step, without a
//! plan.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use kube::Client;
use neap_kit::clock::Clock;
use neap_pocket::{
    Pocket,
    store::{Event, LocatedObject},
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::{
    ClusterTemplate, Workload,
    canary::LogScanner,
    comparable_state,
    external::{Ledger, Services},
    fault_injector::PlanMatcher,
    judge::{Oracle, Violation, allowances::NOT_COMPARED, secrets, written},
    panics, paused,
    plan::Plan,
    quiescence::{self, QUIET_CHECK, QUIET_TIMEOUT},
    run::{START, send_user_request},
    run_state::RunState,
};

/// Time without writes after which the cluster counts as quiet. It is short because no fault
/// strikes; a controller that waits longer is caught by the check that nothing is written
/// afterwards.
const QUIET_PERIOD: Duration = Duration::from_secs(30);
/// Objects by comparison key, without run-specific values and history.
pub(crate) type ClusterState = BTreeMap<String, Vec<Value>>;

pub(crate) struct TestCluster {
    pub(crate) user: Client,
    pub(crate) pocket: Pocket,
    clock: Clock,
    run_state: Arc<RunState>,
    failures: Arc<Mutex<Vec<String>>>,
    tasks: JoinSet<()>,
    since: u64,
}

/// Runs `work` on its own runtime under a paused clock. Returns its result and the violations
/// observed meanwhile: panics and leaked secrets.
pub(crate) fn run_isolated<T>(
    work: impl Future<Output = Result<T, String>>,
) -> Result<(T, Vec<Violation>), String> {
    panics::start_recording();
    let listener = LogScanner::default();
    let done = tracing::subscriber::with_default(listener.clone(), || paused(work));
    let panics = panics::take();
    let mut heard = secrets::leaks("a panic", &panics);
    heard.extend(secrets::leaks("a log line", &listener.take()));
    let panics = panics.into_iter();
    heard.extend(panics.map(|panic| Violation::new(Oracle::Panic, "panic", panic)));
    Ok((done.map_err(|error| error.to_string())??, heard))
}

impl TestCluster {
    /// A cluster with the initial objects of `workload`; no controller runs yet.
    pub(crate) async fn open(
        workload: &Workload,
        seed: u64,
        template: &ClusterTemplate,
    ) -> Result<Self, String> {
        let pocket = template
            .copy(seed)
            .await
            .map_err(|error| error.to_string())?;
        let clock = Clock::starting_at(START.parse().map_err(|_| "no such moment")?);
        let matcher = PlanMatcher::of(&Plan::without_faults(workload.name, seed));
        let ledger = Ledger::of((workload.system)());
        let cluster = Self {
            user: Client::new(pocket.service(), "default"),
            run_state: Arc::new(RunState::new(clock, matcher, ledger, Services::default())),
            failures: Arc::default(),
            tasks: JoinSet::new(),
            since: template.revision(),
            pocket,
            clock,
        };
        for request in &workload.initial_requests {
            send_user_request(&cluster.user, request, false).await?;
        }
        Ok(cluster)
    }

    /// Starts the processes of `workload`. Existing objects count as older than the processes.
    pub(crate) fn start(&mut self, workload: &Workload) {
        for actor in workload.actors.clone() {
            let (run_state, failures) = (self.run_state.clone(), self.failures.clone());
            self.tasks
                .spawn(actor.run(self.pocket.clone(), run_state, failures));
        }
        if let Some(node) = workload.node.clone() {
            let (pocket, user) = (self.pocket.clone(), self.user.clone());
            self.tasks
                .spawn(node.since(self.since).run(pocket, user, self.clock));
        }
    }

    /// Waits until no process writes any more; returns a violation if that takes too long.
    pub(crate) async fn wait_until_quiet(&self) -> Option<Violation> {
        // Lease renewals and Events are no sign of work.
        let store = self.pocket.store();
        let rests =
            quiescence::wait_until_quiet(store, &self.run_state, QUIET_PERIOD, &NOT_COMPARED).await;
        (!rests).then(|| {
            let busy = format!("still busy after {QUIET_TIMEOUT:?}");
            Violation::new(Oracle::Rest, "", busy)
        })
    }

    /// Lets ten minutes pass.
    pub(crate) async fn let_time_pass(&self) {
        self.clock.sleep(QUIET_CHECK).await;
    }

    /// Checks that nothing is written for ten minutes.
    pub(crate) async fn check_stays_quiet(&self) -> Vec<Violation> {
        quiescence::check_stays_quiet(self.pocket.store(), &self.run_state).await
    }

    /// Violations found along the way, whatever the final state: those recorded by the injector, by
    /// the history, and by the processes.
    pub(crate) fn recorded_violations(&self) -> Vec<Violation> {
        let history = self.history();
        let mut violations = self.run_state.recorded_violations(&history);
        violations.extend(written(&history));
        violations.extend(self.process_failures());
        violations
    }

    fn history(&self) -> Vec<Arc<Event>> {
        let mut history = self.pocket.store().export_history();
        history.retain(|event| event.revision() > self.since);
        history
    }

    /// The objects in a form in which two runs can be compared.
    pub(crate) fn state(&self) -> ClusterState {
        comparable_state::comparable_state(&self.objects(), &self.history())
    }

    /// Objects whose owners no longer exist.
    pub(crate) fn orphans(&self) -> Vec<Violation> {
        let objects = self.objects();
        let alive: HashSet<&str> = objects
            .iter()
            .map(|(.., object)| &*object.metadata().uid)
            .collect();
        let lost = objects.iter().filter(|(.., object)| {
            let owners = &object.metadata().owner_references;
            !owners.is_empty() && owners.iter().all(|owner| !alive.contains(&*owner.uid))
        });
        let tell = |(resource, path, _): &LocatedObject| {
            let text = format!("{resource}/{path} has lost its owner and is still there");
            Violation::new(Oracle::Orphan, resource, text)
        };
        lost.map(tell).collect()
    }

    fn objects(&self) -> Vec<LocatedObject> {
        let (_, all) = self.pocket.store().everything();
        let new = all.into_iter();
        new.filter(|(.., object)| object.revision() > self.since)
            .collect()
    }

    /// Processes that ended unexpectedly.
    pub(crate) fn process_failures(&self) -> Vec<Violation> {
        let mut failures = self.failures.lock();
        let failures = failures.drain(..);
        failures
            .map(|failure| Violation::new(Oracle::Panic, "process", failure))
            .collect()
    }
}
