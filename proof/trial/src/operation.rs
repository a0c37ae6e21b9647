//! Tests of an operation under everything that can happen between its steps.
//!
//! An author of an operation gets these tests from here: each step fails, each is repeated, the
//! process dies at every write, and another process takes over while the first one is paused and
//! then resumes. The expected result is that of a run without faults, in the Operation and in the
//! ledger of the external systems.

mod expect;
mod plans;

use std::sync::Arc;

use kube::CustomResourceExt;
use neap_kit::{
    key::Key,
    operation::{Operation, StepHandler, StepList, Target, component},
};

use crate::{
    ClusterTemplate, UserRequest, Workload,
    external::{ExternalClient, SimulatedSystem},
    judge::Reference,
    plan::Plan,
    run::{RunRecord, run},
};

/// The workload's name in plans and traces.
const NAME: &str = "operation";
const LEASE: &str = "operations";
const SEED: u64 = 7;

/// A family of tests, each played for every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// The external system always refuses the call: the operation ends at this step.
    Fail,
    /// The step is repeated although it was done.
    Repeat,
    /// The process dies at a write or at an external call.
    Crash,
    /// The process pauses, another one takes over, and then the first one resumes.
    Takeover,
}

impl Family {
    pub const ALL: [Self; 4] = [Self::Fail, Self::Repeat, Self::Crash, Self::Takeover];
}

/// A plan that failed, and why.
#[derive(Debug)]
pub struct Finding {
    pub family: Family,
    pub plan: Plan,
    pub problems: Vec<String>,
}

/// The result of the tests of an operation.
#[derive(Debug, Default)]
pub struct OperationReport {
    /// The number of plans that were played.
    pub plans: usize,
    /// The plans that failed.
    pub findings: Vec<Finding>,
}

/// An operation under test: its steps, and the processes that execute them.
#[derive(Clone)]
pub struct OperationTrial {
    step_list: StepList,
    process: AddProcess,
}

type AddProcess = Arc<dyn Fn(Workload, &'static str) -> Workload + Send + Sync>;

impl OperationTrial {
    /// The steps of `step_list`, executed by the handler that `work` creates for each Operation.
    pub fn new<W: StepHandler + 'static>(
        step_list: StepList,
        work: impl Fn(&Operation, &ExternalClient) -> W + Clone + Send + Sync + 'static,
    ) -> Self {
        let steps = step_list.clone();
        let process = move |workload: Workload, name| {
            let (step_list, work) = (steps.clone(), work.clone());
            workload.process(name, Some(LEASE), move |context, external| {
                let (work, external) = (work.clone(), external.clone());
                let component =
                    component(context, step_list.clone(), move |it| work(it, &external));
                Ok(vec![component?])
            })
        };
        Self {
            step_list,
            process: Arc::new(process),
        }
    }

    /// Plays all plans of these families.
    pub fn try_all(
        &self,
        families: &[Family],
        template: &ClusterTemplate,
    ) -> Result<OperationReport, String> {
        let workload = self.workload();
        let calm = run(&workload, &Plan::without_faults(NAME, SEED), template)?;
        let (reference, odd) = Reference::new(&calm);
        if !odd.is_empty() {
            return Err(format!("without any fault: {odd:?}"));
        }
        let course = expect::ExpectedCourse::of(&calm)?;
        let mut report = OperationReport::default();
        for &family in families {
            for (plan, forgets) in plans::of(family, &course, SEED) {
                let mut workload = workload.clone();
                if forgets {
                    workload = workload.system(|| SimulatedSystem::default().without_keys());
                }
                let record = run(&workload, &plan, template)?;
                let problems = judge(family, &plan, &record, &reference, &course);
                report.plans += 1;
                if !problems.is_empty() {
                    report.findings.push(Finding {
                        family,
                        plan,
                        problems,
                    });
                }
            }
        }
        Ok(report)
    }

    /// Two processes, one of which leads, and an Operation.
    fn workload(&self) -> Workload {
        let target = Target {
            kind: "Thing".to_owned(),
            name: "thing".to_owned(),
            ..Target::default()
        };
        let key = Key::new("default", "rehearsal");
        let operation = Operation::planned(&key, &self.step_list, target);
        let made = |object| UserRequest::Create(serde_json::to_value(object).unwrap_or_default());
        let workload = Workload::new(NAME).given(UserRequest::Create(definition()));
        let workload = (self.process)((self.process)(workload, "one"), "two");
        workload.step("begin", [made(operation)])
    }
}

fn definition() -> serde_json::Value {
    serde_json::to_value(Operation::crd()).unwrap_or_default()
}

fn judge(
    family: Family,
    plan: &Plan,
    record: &RunRecord,
    reference: &Reference,
    course: &expect::ExpectedCourse,
) -> Vec<String> {
    let mut problems: Vec<String> = record
        .idle
        .iter()
        .map(|rule| format!("`{}` never struck", plan.rules[*rule]))
        .collect();
    if family == Family::Fail {
        problems.extend(course.after_failure(plan, record));
        return problems;
    }
    let violations = reference.judge(record).into_iter();
    problems.extend(violations.map(|violation| violation.to_string()));
    if family == Family::Takeover {
        problems.extend(expect::ExpectedCourse::after_takeover(plan, record));
    }
    problems
}

impl std::fmt::Debug for OperationTrial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rehearsal")
            .field("script", &self.step_list)
            .finish_non_exhaustive()
    }
}
