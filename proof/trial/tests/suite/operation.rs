//! The tests that every operation gets, and step handlers with one defect each.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use neap_kit::operation::{
    Cause, Failure, Progress, RetryPolicy, Step, StepAttempt, StepHandler, StepList,
};
use neap_trial::{
    ClusterTemplate,
    external::{CallError, ExternalCall, ExternalClient},
    operation::{Family, OperationReport, OperationTrial},
};

const RETRY: RetryPolicy = RetryPolicy {
    attempts: 4,
    first: Duration::from_secs(1),
    max: Duration::from_secs(8),
};
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

fn step_list() -> StepList {
    StepList {
        kind: "build",
        steps: vec![
            Step::retrying("network", RETRY, ATTEMPT_TIMEOUT),
            Step::condition("place", Duration::from_secs(5), Duration::from_mins(10)),
            Step::retrying("machines", RETRY, ATTEMPT_TIMEOUT),
        ],
    }
}

/// The defect of a step handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    /// It treats a refusal as success.
    IgnoresRefusal,
    /// Each attempt has a key of its own.
    KeyPerAttempt,
    /// One step passes a result to the next only within the process.
    KeepsStateInProcess,
    /// It always sends the same fence.
    ConstantFence,
}

struct CloudHandler {
    external: ExternalClient,
    defect: Defect,
    made: AtomicU32,
}

impl StepHandler for CloudHandler {
    async fn attempt(&self, task: &StepAttempt) -> Result<Progress, Failure> {
        let failed = |why: String, retryable| Failure {
            cause: Cause::new(why),
            retryable,
        };
        if task.step == "place" {
            return Ok(Progress::Done);
        }
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        if self.defect == Defect::KeepsStateInProcess && task.step == "machines" && made == 0 {
            return Err(failed("there is no network".to_owned(), false));
        }
        let key = match self.defect {
            Defect::KeyPerAttempt => format!("{}/{}", task.key, task.fence),
            _ => task.key.clone(),
        };
        let external_call = ExternalCall {
            call: "make",
            target: task.step.clone(),
            operation: task.operation.clone(),
            key,
            fence: match self.defect {
                Defect::ConstantFence => 1,
                _ => task.fence,
            },
        };
        match self.external.call(external_call).await {
            Ok(()) => Ok(Progress::Done),
            Err(_) if self.defect == Defect::IgnoresRefusal => Ok(Progress::Done),
            Err(refusal) => Err(failed(
                refusal.to_string(),
                refusal != CallError::StaleFence,
            )),
        }
    }
}

fn tried(defect: Defect, families: &[Family]) -> OperationReport {
    let template = ClusterTemplate::prepare_blocking().unwrap();
    let rehearsal = OperationTrial::new(step_list(), move |_, external| CloudHandler {
        external: external.clone(),
        defect,
        made: AtomicU32::new(0),
    });
    rehearsal.try_all(families, &template).unwrap()
}

/// The problems found in this family; fails if there are none.
fn finds(defect: Defect, family: Family) -> String {
    let report = tried(defect, &[family]);
    let all = report.findings.iter().flat_map(|found| &found.problems);
    let all: Vec<_> = all.map(String::as_str).collect();
    assert!(!all.is_empty(), "{defect:?} in {} plans", report.plans);
    all.join("\n")
}

#[test]
fn a_correct_step_handler_survives_everything() {
    let report = tried(Defect::None, &Family::ALL);
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    assert_eq!(report.plans, 2 + 8 + 18 + 12);
}

#[test]
fn a_step_that_ignores_a_refusal_is_reported() {
    let found = finds(Defect::IgnoresRefusal, Family::Fail);
    assert!(found.contains("where network cannot be done"), "{found}");
}

#[test]
fn a_step_with_a_key_for_each_attempt_is_reported() {
    let found = finds(Defect::KeyPerAttempt, Family::Repeat);
    assert!(found.contains("make network was done 2 times"), "{found}");
}

#[test]
fn a_step_that_keeps_state_in_its_process_is_reported() {
    let found = finds(Defect::KeepsStateInProcess, Family::Crash);
    assert!(found.contains("O1"), "{found}");
}

#[test]
fn a_step_without_a_fence_is_reported() {
    let found = finds(Defect::ConstantFence, Family::Takeover);
    assert!(found.contains("O5"), "{found}");
}
