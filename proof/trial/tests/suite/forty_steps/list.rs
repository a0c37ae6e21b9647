//! Forty steps of every kind, and what carries them out.

use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
    time::Duration,
};

use neap_kit::operation::{
    Cause, Failure, Progress, RetryPolicy, Step, StepAttempt, StepHandler, StepList,
};
use neap_trial::external::{CallError, ExternalCall, ExternalClient};
use parking_lot::Mutex;

const RETRY: RetryPolicy = RetryPolicy {
    attempts: 5,
    first: Duration::from_secs(1),
    max: Duration::from_secs(8),
};
const ATTEMPT: Duration = Duration::from_mins(10);
const POLL: Duration = Duration::from_secs(5);
/// A run judges what is so after half an hour: a condition that never holds has failed by then.
const CONDITION_TIMEOUT: Duration = Duration::from_mins(10);

/// Their kinds, again and again.
const KINDS: [&str; 8] = [
    "login", "make", "look", "make", "note", "skip", "make", "make",
];

static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let names = (0..40).map(|at| format!("{}-{at:02}", KINDS[at % KINDS.len()]));
    names.map(|name| &*name.leak()).collect()
});

/// Whether it runs again in every process: its result is in memory.
pub(super) fn is_rerun(step: &str) -> bool {
    step.starts_with("login")
}

pub(super) fn makes_calls(step: &str) -> bool {
    !step.starts_with("note") && !step.starts_with("skip")
}

/// Whether only the next version has it.
pub(super) fn is_new(step: &str) -> bool {
    step.contains("-new-")
}

fn step(name: &'static str) -> Step {
    match name.split('-').next() {
        Some("login") => Step::retrying(name, RETRY, ATTEMPT).reruns(),
        Some("make") => Step::retrying(name, RETRY, ATTEMPT),
        Some("look") => Step::condition(name, POLL, CONDITION_TIMEOUT),
        Some("skip") => Step::skipped(name, "no cloud configured"),
        _ => Step::action(name, ATTEMPT),
    }
}

pub(super) fn step_list() -> StepList {
    StepList {
        kind: "long",
        steps: NAMES.iter().copied().map(step).collect(),
    }
}

/// The list of the next version: one step near the begin and one near the end are new, and one in the
/// middle is gone.
pub(super) fn next_version() -> StepList {
    let mut list = step_list();
    list.steps.insert(39, step("make-new-late"));
    list.steps.remove(17);
    list.steps.insert(2, step("make-new-early"));
    list
}

/// Calls an external system for each step, by the name of the step.
#[derive(Clone)]
pub(super) struct Handler {
    external: ExternalClient,
    /// The conditions that were polled in this process.
    looked: Arc<Mutex<HashSet<String>>>,
}

impl Handler {
    pub(super) fn new(external: ExternalClient) -> Self {
        Self {
            external,
            looked: Arc::default(),
        }
    }
}

impl StepHandler for Handler {
    async fn attempt(&self, attempt: &StepAttempt) -> Result<Progress, Failure> {
        if !makes_calls(&attempt.step) {
            return Ok(Progress::Done);
        }
        let call = ExternalCall {
            call: "do",
            target: attempt.step.clone(),
            operation: attempt.operation.clone(),
            key: attempt.key.clone(),
            fence: attempt.fence,
        };
        let done = self.external.call(call).await;
        done.map_err(|refusal| Failure {
            cause: Cause::new(refusal.to_string()),
            retryable: refusal != CallError::StaleFence,
        })?;
        let is_condition = attempt.step.starts_with("look");
        if is_condition && self.looked.lock().insert(attempt.step.clone()) {
            return Ok(Progress::NotYet("it is looked at once more".to_owned()));
        }
        Ok(Progress::Done)
    }
}
