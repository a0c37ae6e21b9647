//! Plays workloads whose objects have other names in every run: releases that are named after the time.
//!
//! Their end cannot be compared with that of a run without faults, so it is judged by the oracles alone.

use neap_trial::{
    ClusterTemplate, Workload,
    generate::{fault_sites, plan, single},
    plan::Plan,
    run::run,
};

const SEED: u64 = 7;

/// Plays `workload` without a fault, and with every `step`th fault that can strike it. Returns how many
/// struck.
pub fn every_nth_fault(workload: &Workload, step: usize) -> Result<usize, String> {
    let template = ClusterTemplate::prepare_blocking().map_err(|error| error.to_string())?;
    let calm = run(
        workload,
        &Plan::without_faults(workload.name, SEED),
        &template,
    )?;
    if !calm.violations.is_empty() {
        return Err(format!("without a fault: {:#?}", calm.violations));
    }
    let mut rules = single(&fault_sites(&calm.entries));
    rules.reverse();
    let (mut struck, mut failing) = (0, Vec::new());
    for rule in rules.into_iter().step_by(step.max(1)) {
        let plan = plan(workload.name, SEED, vec![rule]);
        let record = run(workload, &plan, &template)?;
        struck += usize::from(record.idle.is_empty());
        if !record.violations.is_empty() {
            let found: Vec<_> = record.violations.iter().map(ToString::to_string).collect();
            failing.push(format!("{plan}{}", found.join("\n")));
        }
    }
    if failing.is_empty() {
        return Ok(struck);
    }
    Err(format!(
        "{} plans failed:\n\n{}",
        failing.len(),
        failing[..failing.len().min(5)].join("\n\n")
    ))
}
