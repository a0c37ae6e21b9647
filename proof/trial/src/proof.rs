//! Fault tests for a controller, for use in its own crate.
//!
//! The runs of a test follow one another in its process and on its thread.

use std::fmt;

use crate::{
    ClusterTemplate, Workload,
    generate::{fault_sites, plan, single},
    judge::{Reference, Violation},
    plan::{Plan, parse},
    run::run,
    shrink::named,
};

/// The seed of all random numbers.
const SEED: u64 = 7;
/// Failing plans that an error message includes.
const MAX_SHOWN_PLANS: usize = 5;

/// A description of the failures. `Debug` prints it unchanged, because a test that returns it
/// prints that.
#[derive(thiserror::Error)]
#[error("{0}")]
pub struct Failure(String);

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Failure {
    fn from(words: String) -> Self {
        Self(words)
    }
}

/// Plays `workload` without a fault, then with each fault that can strike it, one at a time.
/// Returns the number of faults that struck; the error names the failing plans and the violations.
pub fn every_fault(workload: &Workload) -> Result<usize, Failure> {
    every_nth_fault(workload, 1)
}

/// Like [`every_fault`] with every `step`th fault: a sample for a test that must be quick.
pub fn every_nth_fault(workload: &Workload, step: usize) -> Result<usize, Failure> {
    let template = template()?;
    let calm = run(
        workload,
        &Plan::without_faults(workload.name, SEED),
        &template,
    )?;
    let (reference, odd) = Reference::new(&calm);
    if !odd.is_empty() {
        return Err(format!("without any fault:\n{}", listed(&odd)).into());
    }
    let faults = workload
        .poison()
        .into_iter()
        .chain(single(&fault_sites(&calm.entries)));
    let plans = faults.step_by(step.max(1));
    let plans: Vec<_> = plans
        .map(|rule| plan(workload.name, SEED, vec![rule]))
        .collect();
    let (mut failing, mut struck) = (Vec::new(), 0);
    for plan in &plans {
        let record = run(workload, plan, &template)?;
        let found = reference.judge(&record);
        // Cluster-scoped objects have no poisoned twin that a fault could strike.
        struck += usize::from(record.idle.is_empty());
        if !found.is_empty() {
            failing.push(format!("{plan}{}", listed(&found)));
        }
    }
    if failing.is_empty() {
        return Ok(struck);
    }
    let (count, all) = (failing.len(), plans.len());
    failing.truncate(MAX_SHOWN_PLANS);
    let failing = failing.join("\n\n");
    Err(format!(
        "something goes wrong under {count} of {all} plans:\n\n{failing}\n\n\
         What O1 and the others ask is in docs/platform/trial.md; `proof::survives` plays one plan again."
    )
    .into())
}

/// Plays the plans of a text against these steps of `workload`. The error describes the violations,
/// or why nothing was tested: the text has no plan, a plan has no fault, or a fault never struck.
pub fn survives(workload: &Workload, steps: &[&str], plans: &str) -> Result<(), Failure> {
    let mut workload = workload.clone();
    let Some(wanted) = named(&workload.steps, steps) else {
        let there: Vec<_> = workload.steps.iter().map(|step| &step.name).collect();
        return Err(format!("not all of {steps:?} are steps of {there:?}").into());
    };
    workload.steps = wanted;
    let plans = parse(plans).map_err(|error| error.to_string())?;
    if plans.is_empty() {
        return Err("there is no plan in this text".to_owned().into());
    }
    let template = template()?;
    plans
        .iter()
        .try_for_each(|plan| survives_plan(&workload, plan, &template))
}

fn survives_plan(
    workload: &Workload,
    plan: &Plan,
    template: &ClusterTemplate,
) -> Result<(), Failure> {
    let (name, of, is) = (&plan.name, &plan.workload, workload.name);
    if of != is {
        return Err(format!("plan {name} is for workload {of}, and this is {is}").into());
    }
    if plan.rules.is_empty() {
        return Err(format!("plan {name} has no fault").into());
    }
    let calm = run(workload, &Plan::without_faults(is, plan.seed), template)?;
    let (reference, odd) = Reference::new(&calm);
    if !odd.is_empty() {
        return Err(format!("without any fault:\n{}", listed(&odd)).into());
    }
    let record = run(workload, plan, template)?;
    if let Some(rule) = record.idle.first() {
        let rule = &plan.rules[*rule];
        return Err(format!("plan {name} is void: `{rule}` never struck").into());
    }
    let found = reference.judge(&record);
    if found.is_empty() {
        return Ok(());
    }
    Err(format!("{plan}{}", listed(&found)).into())
}

fn listed(violations: &[Violation]) -> String {
    let lines = violations
        .iter()
        .map(|violation| format!("  ✗ {violation}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn template() -> Result<ClusterTemplate, String> {
    ClusterTemplate::prepare_blocking().map_err(|error| error.to_string())
}
