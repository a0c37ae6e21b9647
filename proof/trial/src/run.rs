//! Plays a workload under the faults of a plan.

use std::{sync::Arc, time::Duration};

use http::Request;
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
    ClusterTemplate, TraceEntry, UserRequest, Workload,
    canary::{self, LogScanner},
    canonical::collection,
    external::{Ledger, LedgerRow, Services},
    fault_injector::PlanMatcher,
    judge::{Oracle, PlanOutcome, Reference, Violation, allowances::LEASES, secrets},
    panics, paused,
    plan::Plan,
    poisoned_objects,
    quiescence::{self, QUIET_TIMEOUT},
    run_state::RunState,
    workload::PermittedDifference,
};

/// The virtual time at which runs start.
pub(crate) const START: &str = "2026-01-01T00:00:00Z";
/// Time without writes after which a step counts as quiet: longer than it takes to reopen a broken
/// watch.
const QUIET_PERIOD: Duration = Duration::from_secs(75);

/// The result of a run.
#[derive(Debug, Default)]
pub struct RunRecord {
    /// The new or changed objects at the end of each step.
    pub states: Vec<Vec<LocatedObject>>,
    /// Every write, by every process and user.
    pub history: Vec<Arc<Event>>,
    /// The trace.
    pub entries: Vec<TraceEntry>,
    /// A hash of the trace.
    pub fingerprint: u64,
    /// The calls that external systems received, and their answers.
    pub ledger: Vec<LedgerRow>,
    /// The rules that never struck.
    pub idle: Vec<usize>,
    /// The time each step took to come to rest.
    pub took: Vec<Duration>,
    /// The revision at the end of each step.
    pub ends: Vec<u64>,
    /// Whether there were poisoned objects; the record does not contain them.
    pub poisoned: bool,
    /// Violations observed during the run.
    pub violations: Vec<Violation>,
    /// The fields that differ from run to run.
    pub(crate) differences: Vec<PermittedDifference>,
    /// Whether it cannot be compared with another run.
    pub(crate) incomparable: bool,
}

/// Plays one plan in this process.
pub fn run(
    workload: &Workload,
    plan: &Plan,
    template: &ClusterTemplate,
) -> Result<RunRecord, String> {
    let play = RunParameters {
        workload,
        seed: plan.seed,
        poisoned: poisoned_objects::is_in(plan),
    };
    let (record, _) = run_recorded(play, template, PlanMatcher::of(plan))?;
    Ok(record)
}

/// Plays all plans, each in a child process from the moment at which it strikes. Returns the
/// outcomes.
pub(crate) fn run_all(
    workload: &Workload,
    seed: u64,
    template: &ClusterTemplate,
    reference: &Reference,
    matcher: PlanMatcher,
) -> Result<Vec<(usize, PlanOutcome)>, String> {
    let play = RunParameters {
        workload,
        seed,
        poisoned: false,
    };
    let (record, run_state) = run_recorded(play, template, matcher)?;
    let told = run_state
        .matcher
        .lock()
        .finish(|| PlanOutcome::of(&record, reference));
    Ok(told)
}

/// The parameters of a run, apart from its faults.
#[derive(Clone, Copy)]
struct RunParameters<'a> {
    workload: &'a Workload,
    seed: u64,
    /// Whether user requests are repeated for poisoned objects.
    poisoned: bool,
}

fn run_recorded(
    parameters: RunParameters<'_>,
    template: &ClusterTemplate,
    matcher: PlanMatcher,
) -> Result<(RunRecord, Arc<RunState>), String> {
    panics::start_recording();
    let listener = LogScanner::default();
    let played = tracing::subscriber::with_default(listener.clone(), || {
        paused(play(parameters, template, matcher))
    });
    let panics = panics::take();
    let (mut record, run_state) = played.map_err(|error| error.to_string())??;
    record.violations.extend(secrets::leaks("a panic", &panics));
    record
        .violations
        .extend(secrets::leaks("a log line", &listener.take()));
    for panic in panics {
        record
            .violations
            .push(Violation::new(Oracle::Panic, "panic", panic));
    }
    record.idle = run_state.matcher.lock().idle();
    record
        .differences
        .clone_from(&parameters.workload.differences);
    record.incomparable = parameters.workload.incomparable.is_some();
    Ok((record, run_state))
}

async fn play(
    parameters: RunParameters<'_>,
    template: &ClusterTemplate,
    matcher: PlanMatcher,
) -> Result<(RunRecord, Arc<RunState>), String> {
    let RunParameters {
        workload, poisoned, ..
    } = parameters;
    let pocket = template
        .copy(parameters.seed)
        .await
        .map_err(|error| error.to_string())?;
    let clock = Clock::starting_at(START.parse().map_err(|_| "no such moment")?);
    let run_state = Arc::new(RunState::new(
        clock,
        matcher,
        Ledger::of((workload.system)()),
        Services::open(&workload.services, clock),
    ));
    let failures = Arc::new(Mutex::new(Vec::new()));
    let user = Client::new(pocket.service(), "default");
    for request in &workload.initial_requests {
        send_user_request(&user, request, poisoned).await?;
    }
    let mut tasks = JoinSet::new();
    for actor in workload.actors.clone() {
        tasks.spawn(actor.run(pocket.clone(), run_state.clone(), failures.clone()));
    }
    if let Some(node) = workload.node.clone() {
        tasks.spawn(node.run(pocket.clone(), user.clone(), clock));
    }
    let mut runner = StepRunner {
        pocket: &pocket,
        run_state: &run_state,
        since: template.revision(),
        record: RunRecord::default(),
    };
    runner.wait_until_quiet("start").await;
    for step in &workload.steps {
        for request in &step.requests {
            if let Err(refused) = send_user_request(&user, request, poisoned).await {
                // The object of the step is not in the state that it should have by now.
                let violation = Violation::new(Oracle::EndState, "", refused);
                runner.record.violations.push(violation);
            }
        }
        runner.reach(step.until).await;
        runner.wait_until_quiet(&step.name).await;
    }
    runner.check_stays_quiet().await;
    let mut record = runner.record;
    for failure in failures.lock().drain(..) {
        let violation = Violation::new(Oracle::Panic, "process", failure);
        record.violations.push(violation);
    }
    let history = pocket.store().export_history().into_iter();
    let new = history.filter(|event| event.revision() > template.revision());
    record.history = new.collect();
    add_recorded(&mut record, &run_state);
    if poisoned {
        poisoned_objects::strip(&mut record);
    }
    Ok((record, run_state))
}

/// Adds what was recorded during the run.
fn add_recorded(record: &mut RunRecord, run_state: &RunState) {
    record
        .violations
        .extend(run_state.recorded_violations(&record.history));
    let outside = run_state.services.violations(&record.history);
    record.violations.extend(outside);
    record.ledger = run_state.ledger.lock().rows();
    (record.entries, record.fingerprint) = run_state.trace.lock().take();
}

struct StepRunner<'a> {
    pocket: &'a Pocket,
    run_state: &'a RunState,
    since: u64,
    record: RunRecord,
}

impl StepRunner<'_> {
    /// Waits until the time to which a step extends.
    async fn reach(&self, moment: Option<Duration>) {
        let clock = self.run_state.clock;
        if let Some(moment) = moment {
            let left = moment.saturating_sub(clock.uptime());
            clock.sleep(left).await;
        }
    }

    /// Waits until no process writes any more, and records the state.
    async fn wait_until_quiet(&mut self, step: &str) {
        let clock = self.run_state.clock;
        let begun = clock.uptime();
        let quiet = quiescence::wait_until_quiet(
            self.pocket.store(),
            self.run_state,
            QUIET_PERIOD,
            &[LEASES],
        )
        .await;
        if !quiet {
            let busy = format!("{step}: still busy after {QUIET_TIMEOUT:?}");
            self.record
                .violations
                .push(Violation::new(Oracle::Rest, "", busy));
        }
        let (_, all) = self.pocket.store().everything();
        let since = self.since;
        let new = all.into_iter();
        let new = new.filter(|(_, _, object)| object.revision() > since);
        self.record.states.push(new.collect());
        self.record.ends.push(self.pocket.store().revision());
        let took = clock.uptime().saturating_sub(begun + QUIET_PERIOD);
        self.record.took.push(took);
    }

    /// Checks that nothing is written once everything has come to rest.
    async fn check_stays_quiet(&mut self) {
        let restless = quiescence::check_stays_quiet(self.pocket.store(), self.run_state).await;
        self.record.violations.extend(restless);
    }
}

/// Sends a user's request, and the same one for the object's poisoned twin.
pub(crate) async fn send_user_request(
    user: &Client,
    request: &UserRequest,
    poisoned: bool,
) -> Result<(), String> {
    let (method, path, body) = match request {
        UserRequest::Create(object) => ("POST", collection(object), canary::planted(object)),
        UserRequest::Patch(path, patch) => ("PATCH", (*path).to_owned(), canary::planted(patch)),
        // As kubectl does; with the server's default, the pods of a Job would remain.
        UserRequest::Delete(path) => {
            let options = serde_json::json!({"propagationPolicy": "Background"});
            ("DELETE", (*path).to_owned(), options)
        }
    };
    if poisoned
        && method != "DELETE"
        && let Some((path, body)) = poisoned_objects::twin(&path, &body)
    {
        // The twin comes first, so that controllers reconcile it first. Not every request can be
        // repeated.
        let _ = send(user, method, &path, &body).await;
    }
    let done = send(user, method, &path, &body).await;
    done.map(drop)
        .map_err(|error| format!("{request:?}: {error}"))
}

/// A request by a client that no fault strikes.
pub(crate) async fn send(
    client: &Client,
    method: &str,
    path: &str,
    body: &Value,
) -> Result<Value, kube::Error> {
    let kind = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(body.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    canary::as_user(client.request(request)).await
}
