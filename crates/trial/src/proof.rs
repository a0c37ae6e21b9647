//! A controller under trial in a test of its own crate.
//!
//! Runs follow one another in this process and on this thread, so any test can ask for them.

use crate::{
    Ground, Workload,
    generate::{places, plan, single},
    judge::{Reference, Violation},
    plan::{Plan, parse},
    run::run,
    shrink::named,
};

/// The seed of all chances.
const SEED: u64 = 7;
/// So many plans are told of when something goes wrong.
const TOLD: usize = 5;

/// Plays `workload` without a fault, then with each fault that can strike it, one at a time: how
/// many there are. An error names the plans under which something went wrong, and what.
pub fn every_fault(workload: &Workload) -> Result<usize, String> {
    every_nth_fault(workload, 1)
}

/// The same with every so manieth fault: a sample for a test that must be quick.
pub fn every_nth_fault(workload: &Workload, step: usize) -> Result<usize, String> {
    let ground = ground()?;
    let calm = run(workload, &Plan::calm(workload.name, SEED), &ground)?;
    let (reference, odd) = Reference::new(&calm);
    if !odd.is_empty() {
        return Err(format!("without any fault:\n{}", listed(&odd)));
    }
    let faults = workload
        .poison()
        .into_iter()
        .chain(single(&places(&calm.entries)));
    let plans = faults.step_by(step.max(1));
    let plans: Vec<_> = plans
        .map(|rule| plan(workload.name, SEED, vec![rule]))
        .collect();
    let (mut bad, mut struck) = (Vec::new(), 0);
    for plan in &plans {
        let record = run(workload, plan, &ground)?;
        let found = reference.judge(&record);
        // What is in no namespace has no poisoned twin that anything could strike.
        struck += usize::from(record.idle.is_empty());
        if !found.is_empty() {
            bad.push(format!("{plan}{}", listed(&found)));
        }
    }
    if bad.is_empty() {
        return Ok(struck);
    }
    let (count, all) = (bad.len(), plans.len());
    bad.truncate(TOLD);
    Err(format!(
        "something goes wrong under {count} of {all} plans:\n\n{}",
        bad.join("\n\n")
    ))
}

/// Plays the plans of a text against these steps of `workload`. An error says what goes wrong, or
/// that a fault never struck.
pub fn stands(workload: &Workload, steps: &[&str], plans: &str) -> Result<(), String> {
    let mut workload = workload.clone();
    let Some(wanted) = named(&workload.steps, steps) else {
        let there: Vec<_> = workload.steps.iter().map(|step| &step.name).collect();
        return Err(format!("not all of {steps:?} are steps of {there:?}"));
    };
    workload.steps = wanted;
    let ground = ground()?;
    for plan in parse(plans).map_err(|error| error.to_string())? {
        let calm = run(&workload, &Plan::calm(workload.name, plan.seed), &ground)?;
        let (reference, _) = Reference::new(&calm);
        let record = run(&workload, &plan, &ground)?;
        if let Some(rule) = record.idle.first() {
            return Err(format!("void: `{}` never struck", plan.rules[*rule]));
        }
        let found = reference.judge(&record);
        if !found.is_empty() {
            return Err(format!("{plan}{}", listed(&found)));
        }
    }
    Ok(())
}

fn listed(violations: &[Violation]) -> String {
    let lines = violations
        .iter()
        .map(|violation| format!("  ✗ {violation}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn ground() -> Result<Ground, String> {
    Ground::ready().map_err(|error| error.to_string())
}
