//! Plays plans on every core until the time budget is used up.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use neap_trial::{
    TraceEntry, Workload,
    child_process::play_without_faults,
    judge::{ALLOWANCES, PlanOutcome, Violation},
    plan::Plan,
};
use parking_lot::Mutex;

use crate::{
    canary,
    extra_runs::ExtraRuns,
    plan_queue::{Batch, NextItem, PlanQueue, PlanSource, Swarm},
    protocol::{WorkerRequest, WorkerResponse},
    report::{CampaignReport, Finding, WorkloadTally},
    stopwatch::Stopwatch,
    worker,
};

/// Every plan that once found something, and those with a counterpart in real processes.
const CORPUS: &str = concat!(
    include_str!("../corpus.plan"),
    include_str!("../twins.plan")
);
/// One batch in this many is played twice.
const REPLAY_INTERVAL: usize = 40;
/// Failures that are reduced; more would repeat them.
const MAX_REDUCED: usize = 12;

/// How long a campaign goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) budget: Duration,
    /// Plans that are played even if they take longer than the budget.
    pub(crate) min_plans: usize,
}

/// Runs a campaign within `bounds`.
pub(crate) fn run(
    workloads: &[Workload],
    bounds: Bounds,
    seed: u64,
    extra_runs: ExtraRuns,
) -> Result<CampaignReport> {
    let watch = Stopwatch::start();
    let template = worker::template()?;
    let mut report = CampaignReport {
        canary: canary::is_caught(&template, seed)?,
        allowances: &ALLOWANCES,
        ..CampaignReport::default()
    };
    let mut known = Vec::new();
    for workload in extra_runs.played(workloads) {
        let shown = play_without_faults(workload, seed, &template).map_err(anyhow::Error::msg)?;
        let (reference, entries, restless) = shown;
        let says = restless.iter();
        let says =
            says.map(|violation| format!("without any fault: {}: {violation}", workload.name));
        report.restless.extend(says);
        report.fields.compared += reference.share.compared;
        report.fields.masked += reference.share.masked;
        let tally = WorkloadTally {
            writes: reference.writes(),
            ..WorkloadTally::default()
        };
        report.workloads.insert(workload.name.to_owned(), tally);
        known.push((workload, reference.writes(), entries));
    }
    let queue = PlanQueue::new(&known, seed, CORPUS)?;
    report.alone = (queue.alone(), 0);
    for (workload, pairs) in queue.pairs() {
        let tally = report.workloads.entry(workload.to_owned()).or_default();
        tally.pairs = (pairs, 0);
    }
    let state = CampaignState {
        queue: Mutex::new(queue),
        report: Mutex::new(report),
        bar: bar(bounds.budget)?,
        bounds,
        seed,
        watch,
        extra_runs,
    };
    let cores = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..cores)
            .map(|_| scope.spawn(|| state.run_worker()))
            .collect();
        for lane in lanes {
            lane.join()
                .map_err(|_| anyhow::anyhow!("a lane panicked"))??;
        }
        anyhow::Ok(())
    })?;
    state.bar.finish_and_clear();
    Ok(state.close())
}

/// State shared by the threads of a campaign.
struct CampaignState {
    queue: Mutex<PlanQueue>,
    report: Mutex<CampaignReport>,
    bar: ProgressBar,
    bounds: Bounds,
    seed: u64,
    watch: Stopwatch,
    extra_runs: ExtraRuns,
}

impl CampaignState {
    fn has_time(&self) -> bool {
        let Bounds { budget, min_plans } = self.bounds;
        self.watch.elapsed() < budget || self.report.lock().plans < min_plans
    }

    /// Sends plans to one worker until the time is used up.
    fn run_worker(&self) -> Result<()> {
        let mut worker = WorkerProcess::start(self.seed)?;
        // Walks need large schemas, which would slow down every fork of the first worker.
        let mut extra_worker = WorkerProcess::start(self.seed)?;
        let mut number = 0_usize;
        while self.has_time() {
            if let Some(order) = self.extra_runs.next_due(self.watch, self.seed) {
                let begun = self.watch.elapsed();
                let answer = extra_worker.request(&order)?;
                let mut report = self.report.lock();
                self.extra_runs.record_result(&order, answer, &mut report)?;
                self.extra_runs
                    .record_time(&order, self.watch.elapsed().saturating_sub(begun));
                continue;
            }
            if self.extra_runs.plays_no_plans() {
                break;
            }
            let item = self.queue.lock().next();
            let batch = match item {
                NextItem::Play(batch) => batch,
                NextItem::Show(swarm) => {
                    let (entries, says) = worker.show(&swarm)?;
                    let Swarm { workload, seed } = &swarm;
                    let says = says.iter();
                    let says = says.map(|wrong| {
                        format!("without any fault, with seed {seed}: {workload}: {wrong}")
                    });
                    self.report.lock().restless.extend(says);
                    swarm.plans(&entries)
                }
            };
            let outcomes = worker.play(&batch)?;
            if number.is_multiple_of(REPLAY_INTERVAL) {
                self.compare(&batch, &outcomes, &worker.play(&batch)?);
            }
            number += 1;
            let bad = self.record_outcomes(&batch, &outcomes);
            for (plan, violations) in bad {
                self.reduce(&mut worker, &plan, violations)?;
            }
        }
        Ok(())
    }

    /// Checks that the same plans produced the same traces.
    fn compare(&self, batch: &Batch, once: &[PlanOutcome], again: &[PlanOutcome]) {
        let mut report = self.report.lock();
        for ((plan, one), other) in batch.plans.iter().zip(once).zip(again) {
            report.again += 1;
            if one.fingerprint == other.fingerprint {
                report.replayed += 1;
            } else {
                let differs = format!("different trace when replayed:\n{plan}");
                report.restless.push(differs);
            }
        }
    }

    /// Counts outcomes; returns the plans that failed.
    fn record_outcomes(
        &self,
        batch: &Batch,
        outcomes: &[PlanOutcome],
    ) -> Vec<(Plan, Vec<Violation>)> {
        let mut bad = Vec::new();
        let mut report = self.report.lock();
        for (plan, outcome) in batch.plans.iter().zip(outcomes) {
            if !outcome.idle.is_empty() {
                report.void += 1;
                if batch.source == PlanSource::Corpus {
                    let void = format!("a plan of the corpus no longer strikes:\n{plan}");
                    report.restless.push(void);
                }
                // The faults that did strike may have caused harm all the same.
                if !outcome.violations.is_empty() {
                    bad.push((plan.clone(), outcome.violations.clone()));
                }
                continue;
            }
            let new = usize::from(report.is_new(plan));
            report.plans += new;
            report.alone.1 += usize::from(batch.source == PlanSource::Alone);
            for rule in &plan.rules {
                let fault = rule.action.word(rule.point);
                let row = report.matrix.entry(fault).or_default();
                *row.entry(plan.workload.clone()).or_default() += 1;
            }
            let tally = report.workloads.entry(plan.workload.clone()).or_default();
            tally.plans += new;
            tally.costs.push(outcome.cost);
            tally.pairs.1 += usize::from(batch.source == PlanSource::Pairs);
            tally.slowest = tally.slowest.max(outcome.slowest as f64 / 1000.0);
            if !outcome.violations.is_empty() {
                tally.violations += 1;
                bad.push((plan.clone(), outcome.violations.clone()));
            }
        }
        let seconds = self.watch.elapsed().min(self.bounds.budget).as_secs();
        self.bar.set_position(seconds);
        let (plans, found) = (report.plans, report.violations.len() + bad.len());
        self.bar
            .set_message(format!("{plans} plans, {found} violations"));
        bad
    }

    /// Reduces a failing plan and adds it to the report.
    fn reduce(&self, worker: &mut WorkerProcess, plan: &Plan, says: Vec<Violation>) -> Result<()> {
        let Some(first) = says.first().cloned() else {
            return Ok(());
        };
        let wanted = self.report.lock().violations.len() < MAX_REDUCED;
        let mut parts = None;
        let small = if wanted {
            let order = WorkerRequest::Shrink {
                plan: plan.to_string(),
                found: first.clone(),
            };
            match worker.request(&order)? {
                WorkerResponse::Shrunk {
                    plan,
                    steps,
                    difference,
                } => {
                    parts = difference;
                    Some((plan, steps))
                }
                other => bail!("shrinking failed: {other:?}"),
            }
        } else {
            None
        };
        self.report.lock().violations.push(Finding {
            oracle: first.oracle,
            says,
            plan: plan.to_string(),
            small,
            difference: parts,
        });
        Ok(())
    }

    fn close(self) -> CampaignReport {
        let mut report = self.report.into_inner();
        let mut all = Vec::new();
        for tally in report.workloads.values_mut() {
            tally.median_cost = median(&mut tally.costs);
            all.append(&mut tally.costs);
        }
        report.median_cost = median(&mut all);
        report.seconds = self.watch.elapsed().as_secs_f64();
        report.measure(self.bounds.budget);
        report
    }
}

/// The median of microseconds, in milliseconds.
fn median(costs: &mut [u64]) -> f64 {
    costs.sort_unstable();
    let median = costs.get(costs.len() / 2).copied().unwrap_or_default();
    median as f64 / 1000.0
}

fn bar(budget: Duration) -> Result<ProgressBar> {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} s  {msg}")?;
    Ok(ProgressBar::new(budget.as_secs()).with_style(style))
}

/// A worker process.
pub(crate) struct WorkerProcess {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl WorkerProcess {
    pub(crate) fn start(seed: u64) -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["--work", "--seed", &seed.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = process
            .stdin
            .take()
            .context("a worker without standard input")?;
        let answers = process
            .stdout
            .take()
            .context("a worker without standard output")?;
        Ok(Self {
            process,
            orders,
            answers: BufReader::new(answers),
        })
    }

    fn play(&mut self, batch: &Batch) -> Result<Vec<PlanOutcome>> {
        let played = self.request(&WorkerRequest::Play {
            workload: batch.workload.to_owned(),
            seed: batch.seed,
            plans: batch.plans.iter().map(ToString::to_string).collect(),
        })?;
        match played {
            WorkerResponse::Played(outcomes) => Ok(outcomes),
            other => bail!("{}: {other:?}", batch.workload),
        }
    }

    fn show(&mut self, swarm: &Swarm) -> Result<(Vec<TraceEntry>, Vec<Violation>)> {
        let shown = self.request(&WorkerRequest::Show {
            workload: swarm.workload.to_owned(),
            seed: swarm.seed,
        })?;
        match shown {
            WorkerResponse::Shown { entries, says } => Ok((entries, says)),
            other => bail!("{}: {other:?}", swarm.workload),
        }
    }

    pub(crate) fn request(&mut self, order: &WorkerRequest) -> Result<WorkerResponse> {
        serde_json::to_writer(&mut self.orders, order)?;
        self.orders.write_all(b"\n")?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            let status = self.process.wait()?;
            bail!("a worker has exited: {status}");
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
