//! Plays the plans of a file again, and prints their traces.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use neap_trial::{
    child_process::{in_child_process, play_without_faults},
    plan::{Plan, parse},
    run::run as play_once,
};

use crate::worker::Worker;

/// Whether nothing went wrong.
pub(crate) fn run(file: &Path) -> Result<bool> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let worker = Worker::new()?;
    let mut holds = true;
    for plan in parse(&text).with_context(|| format!("in {}", file.display()))? {
        holds &= play(&worker, &plan)?;
    }
    Ok(holds)
}

fn play(worker: &Worker, plan: &Plan) -> Result<bool> {
    let workload = worker.workload(&plan.workload)?;
    print!("{plan}");
    let shown = play_without_faults(workload, plan.seed, &worker.template);
    let (reference, _, _) = shown.map_err(anyhow::Error::msg)?;
    let told = in_child_process(plan.seed, || {
        let record = play_once(workload, plan, &worker.template)?;
        let lines: Vec<_> = record.entries.iter().map(ToString::to_string).collect();
        Ok((
            lines,
            reference.judge(&record),
            record.idle,
            record.fingerprint,
        ))
    });
    let (lines, violations, idle, fingerprint) = told.map_err(anyhow::Error::msg)?;
    for line in lines {
        println!("{line}");
    }
    for violation in &violations {
        println!("✗ {violation}");
    }
    for rule in &idle {
        println!("✗ void: `{}` never struck", plan.rules[*rule]);
    }
    println!("trace {fingerprint:016x}");
    Ok(violations.is_empty() && idle.is_empty())
}
