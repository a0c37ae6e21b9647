//! An operation through everything that can happen between its steps.
//!
//! Whoever writes a script gets the tests of it from here: each step fails, each is done again,
//! whoever does them dies at every write, and is followed by another while it stands still and then
//! goes on. What is right is what a run without faults leaves behind, in the operation and in the
//! ledger of the systems outside.

mod expect;
mod plans;

use std::sync::Arc;

use kube::CustomResourceExt;
use neap_kit::{
    key::Key,
    operation::{Operation, Script, Target, Work, service},
};

use crate::{
    Deed, Ground, Workload,
    judge::Reference,
    outside::{Keeper, Outside},
    plan::Plan,
    run::{Record, run},
};

/// How plans and traces call it.
const NAME: &str = "operation";
const LEASE: &str = "operations";
const SEED: u64 = 7;

/// What is tried with every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// What the step asks of others is refused for ever: the operation ends there.
    Fail,
    /// It is done again although it was done.
    Repeat,
    /// Whoever does it dies at a write or at what is asked of others.
    Crash,
    /// Whoever does it stands still, another goes on, and then the first goes on, too.
    Takeover,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Fail, Self::Repeat, Self::Crash, Self::Takeover];
}

/// A plan under which something went wrong, and what.
#[derive(Debug)]
pub struct Finding {
    /// What was tried.
    pub family: Family,
    /// Where.
    pub plan: Plan,
    /// What went wrong.
    pub problems: Vec<String>,
}

/// What came of the tests of a script.
#[derive(Debug, Default)]
pub struct Report {
    /// How many plans were played.
    pub plans: usize,
    /// Those under which something went wrong.
    pub findings: Vec<Finding>,
}

/// A script and those who do its steps.
#[derive(Clone)]
pub struct Rehearsal {
    script: Script,
    process: Process,
}

type Process = Arc<dyn Fn(Workload, &'static str) -> Workload + Send + Sync>;

impl Rehearsal {
    /// The steps of `script`, done by what `work` makes for each operation.
    pub fn new<W: Work + 'static>(
        script: Script,
        work: impl Fn(&Operation, &Outside) -> W + Clone + Send + Sync + 'static,
    ) -> Self {
        let told = script.clone();
        let process = move |workload: Workload, name| {
            let (script, work) = (told.clone(), work.clone());
            workload.process(name, Some(LEASE), move |site, outside| {
                let (work, outside) = (work.clone(), outside.clone());
                let service = service(site, script.clone(), move |it| work(it, &outside));
                Ok(vec![service?])
            })
        };
        Self {
            script,
            process: Arc::new(process),
        }
    }

    /// Tries everything of these families.
    pub fn try_all(&self, families: &[Family], ground: &Ground) -> Result<Report, String> {
        let workload = self.workload();
        let calm = run(&workload, &Plan::calm(NAME, SEED), ground)?;
        let (reference, odd) = Reference::new(&calm);
        if !odd.is_empty() {
            return Err(format!("without any fault: {odd:?}"));
        }
        let course = expect::Course::of(&calm)?;
        let mut report = Report::default();
        for &family in families {
            for (plan, forgets) in plans::of(family, &course, SEED) {
                let mut workload = workload.clone();
                if forgets {
                    workload = workload.system(|| Keeper::default().without_keys());
                }
                let record = run(&workload, &plan, ground)?;
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

    /// Two processes, one of which leads, and an operation.
    fn workload(&self) -> Workload {
        let target = Target {
            kind: "Thing".to_owned(),
            name: "thing".to_owned(),
            ..Target::default()
        };
        let key = Key::new("default", "rehearsal");
        let operation = Operation::planned(&key, &self.script, target);
        let made = |object| Deed::Create(serde_json::to_value(object).unwrap_or_default());
        let workload = Workload::new(NAME).given(Deed::Create(definition()));
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
    record: &Record,
    reference: &Reference,
    course: &expect::Course,
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
        problems.extend(expect::Course::after_takeover(plan, record));
    }
    problems
}

impl std::fmt::Debug for Rehearsal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rehearsal")
            .field("script", &self.script)
            .finish_non_exhaustive()
    }
}
