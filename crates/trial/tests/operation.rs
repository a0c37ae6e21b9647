//! The tests that every operation gets, and scripts that are wrong in one way each.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use neap_kit::operation::{Cause, Failure, Progress, Retry, Script, Step, Task, Work};
use neap_trial::{
    Ground,
    operation::{Family, Rehearsal, Report},
    outside::{Errand, Outside, Refusal},
};

const RETRY: Retry = Retry {
    attempts: 4,
    first: Duration::from_secs(1),
    most: Duration::from_secs(8),
};
const LIMIT: Duration = Duration::from_secs(30);

fn script() -> Script {
    Script {
        kind: "build",
        steps: vec![
            Step::retrying("network", RETRY, LIMIT),
            Step::condition("place", Duration::from_secs(5), Duration::from_mins(10)),
            Step::retrying("machines", RETRY, LIMIT),
        ],
    }
}

/// What is wrong with those who do the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// They take a refusal for an answer.
    Swallows,
    /// Each attempt has a key of its own.
    NewKey,
    /// What one step found out is known to the next only in the same process.
    Remembers,
    /// They do not say who came later.
    NoFence,
}

struct Cloud {
    outside: Outside,
    fault: Fault,
    made: AtomicU32,
}

impl Work for Cloud {
    async fn attempt(&self, task: &Task) -> Result<Progress, Failure> {
        let failed = |why: String, may_pass| Failure {
            cause: Cause::new(why),
            may_pass,
        };
        if task.step == "place" {
            return Ok(Progress::Done);
        }
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        if self.fault == Fault::Remembers && task.step == "machines" && made == 0 {
            return Err(failed("there is no network".to_owned(), false));
        }
        let key = match self.fault {
            Fault::NewKey => format!("{}/{}", task.key, task.fence),
            _ => task.key.clone(),
        };
        let errand = Errand {
            call: "make",
            thing: task.step.clone(),
            operation: task.operation.clone(),
            key,
            fence: match self.fault {
                Fault::NoFence => 1,
                _ => task.fence,
            },
        };
        match self.outside.ask(errand).await {
            Ok(()) => Ok(Progress::Done),
            Err(_) if self.fault == Fault::Swallows => Ok(Progress::Done),
            Err(refusal) => Err(failed(refusal.to_string(), refusal != Refusal::TooLate)),
        }
    }
}

fn tried(fault: Fault, families: &[Family]) -> Report {
    let ground = Ground::ready().unwrap();
    let rehearsal = Rehearsal::new(script(), move |_, outside| Cloud {
        outside: outside.clone(),
        fault,
        made: AtomicU32::new(0),
    });
    rehearsal.try_all(families, &ground).unwrap()
}

/// Whether a fault is found in this family, and how many plans that took.
fn finds(fault: Fault, family: Family) -> String {
    let report = tried(fault, &[family]);
    let all = report.findings.iter().flat_map(|found| &found.problems);
    let all: Vec<_> = all.map(String::as_str).collect();
    assert!(!all.is_empty(), "{fault:?} in {} plans", report.plans);
    all.join("\n")
}

#[test]
fn a_careful_script_stands_everything() {
    let report = tried(Fault::Nothing, &Family::ALL);
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    assert_eq!(report.plans, 2 + 8 + 18 + 12);
}

#[test]
fn a_step_that_swallows_a_failure_is_found_out() {
    let found = finds(Fault::Swallows, Family::Fail);
    assert!(found.contains("where network cannot be done"), "{found}");
}

#[test]
fn a_step_with_a_key_for_each_attempt_is_found_out() {
    let found = finds(Fault::NewKey, Family::Repeat);
    assert!(found.contains("make network was done 2 times"), "{found}");
}

#[test]
fn a_step_that_remembers_in_its_process_is_found_out() {
    let found = finds(Fault::Remembers, Family::Crash);
    assert!(found.contains("O1"), "{found}");
}

#[test]
fn a_step_without_a_fence_is_found_out() {
    let found = finds(Fault::NoFence, Family::Takeover);
    assert!(found.contains("O5"), "{found}");
}
