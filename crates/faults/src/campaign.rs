//! Plays plans on every core until the time is over.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use neap_trial::{
    Workload,
    apart::calm,
    judge::{Outcome, Violation},
    plan::Plan,
};
use parking_lot::Mutex;

use crate::{
    aside::Aside,
    message::{Answer, Order},
    report::{Finding, Report, Tally},
    stopwatch::Stopwatch,
    supply::{Batch, Supply},
    worker,
};

/// So many failures are made small; more would say the same.
const SHRUNK: usize = 12;

/// Plays for `budget`.
pub(crate) fn run(
    workloads: &[Workload],
    budget: Duration,
    seed: u64,
    aside: Aside,
) -> Result<Report> {
    let watch = Stopwatch::start();
    let ground = worker::ground()?;
    let mut report = Report::default();
    let mut known = Vec::new();
    for workload in aside.played(workloads) {
        let shown = calm(workload, seed, &ground).map_err(anyhow::Error::msg)?;
        let (reference, entries, restless) = shown;
        let says = restless.iter();
        let says = says.map(|violation| format!("{}: {violation}", workload.name));
        report.restless.extend(says);
        report.fields.compared += reference.share.compared;
        report.fields.masked += reference.share.masked;
        let tally = Tally {
            writes: reference.writes(),
            ..Tally::default()
        };
        report.workloads.insert(workload.name.to_owned(), tally);
        known.push((workload, entries));
    }
    let supply = Supply::new(&known, seed, include_str!("../corpus.plan"))?;
    report.alone = (supply.alone(), 0);
    let desk = Desk {
        supply: Mutex::new(supply),
        report: Mutex::new(report),
        costs: Mutex::default(),
        bar: bar(budget)?,
        budget,
        seed,
        watch,
        aside,
    };
    let cores = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..cores).map(|_| scope.spawn(|| desk.lane())).collect();
        for lane in lanes {
            lane.join()
                .map_err(|_| anyhow::anyhow!("a lane panicked"))??;
        }
        anyhow::Ok(())
    })?;
    desk.bar.finish_and_clear();
    Ok(desk.close())
}

/// What the lanes share.
struct Desk {
    supply: Mutex<Supply>,
    report: Mutex<Report>,
    costs: Mutex<Vec<u64>>,
    bar: ProgressBar,
    budget: Duration,
    seed: u64,
    watch: Stopwatch,
    aside: Aside,
}

impl Desk {
    /// Hands out plans to one worker until the time is over.
    fn lane(&self) -> Result<()> {
        let mut worker = Worker::start(self.seed)?;
        while self.watch.elapsed() < self.budget {
            if let Some(order) = self.aside.due(self.watch, self.seed) {
                let begun = self.watch.elapsed();
                let answer = worker.ask(&order)?;
                let mut report = self.report.lock();
                self.aside.note(&order, answer, &mut report)?;
                self.aside
                    .spent(&order, self.watch.elapsed().saturating_sub(begun));
                continue;
            }
            if self.aside.is_all() {
                break;
            }
            let (batch, alone) = {
                let mut supply = self.supply.lock();
                let alone = !supply.is_exhausted();
                (supply.more(), alone)
            };
            let played = worker.ask(&Order::Play {
                workload: batch.workload.to_owned(),
                seed: self.seed,
                plans: batch.plans.iter().map(ToString::to_string).collect(),
            })?;
            let Answer::Played(outcomes) = played else {
                bail!("{}: {played:?}", batch.workload);
            };
            let bad = self.note(&batch, &outcomes, alone);
            for (plan, violations) in bad {
                self.examine(&mut worker, &plan, violations)?;
            }
        }
        Ok(())
    }

    /// Counts outcomes; the plans under which something went wrong.
    fn note(
        &self,
        batch: &Batch,
        outcomes: &[Outcome],
        alone: bool,
    ) -> Vec<(Plan, Vec<Violation>)> {
        let mut bad = Vec::new();
        let mut report = self.report.lock();
        for (plan, outcome) in batch.plans.iter().zip(outcomes) {
            if !outcome.idle.is_empty() {
                report.void += 1;
                continue;
            }
            report.plans += 1;
            report.alone.1 += usize::from(alone);
            for rule in &plan.rules {
                let fault = rule.action.word(rule.point);
                let row = report.matrix.entry(fault).or_default();
                *row.entry(plan.workload.clone()).or_default() += 1;
            }
            let tally = report.workloads.entry(plan.workload.clone()).or_default();
            tally.plans += 1;
            tally.slowest = tally.slowest.max(outcome.slowest as f64 / 1000.0);
            if !outcome.violations.is_empty() {
                tally.violations += 1;
                bad.push((plan.clone(), outcome.violations.clone()));
            }
            self.costs.lock().push(outcome.cost);
        }
        let seconds = self.watch.elapsed().min(self.budget).as_secs();
        self.bar.set_position(seconds);
        let (plans, found) = (report.plans, report.violations.len() + bad.len());
        self.bar
            .set_message(format!("{plans} plans, {found} violations"));
        bad
    }

    /// Makes a plan that fails smaller, and keeps it.
    fn examine(&self, worker: &mut Worker, plan: &Plan, says: Vec<Violation>) -> Result<()> {
        let Some(first) = says.first().cloned() else {
            return Ok(());
        };
        let wanted = self.report.lock().violations.len() < SHRUNK;
        let small = if wanted {
            let order = Order::Shrink {
                plan: plan.to_string(),
                found: first.clone(),
            };
            match worker.ask(&order)? {
                Answer::Shrunk { plan, steps } => Some((plan, steps)),
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
        });
        Ok(())
    }

    fn close(self) -> Report {
        let mut report = self.report.into_inner();
        let mut costs = self.costs.into_inner();
        costs.sort_unstable();
        let median = costs.get(costs.len() / 2).copied().unwrap_or_default();
        report.median_cost = median as f64 / 1000.0;
        report.seconds = self.watch.elapsed().as_secs_f64();
        report
    }
}

fn bar(budget: Duration) -> Result<ProgressBar> {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} s  {msg}")?;
    Ok(ProgressBar::new(budget.as_secs()).with_style(style))
}

/// A process that plays.
struct Worker {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    fn start(seed: u64) -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["--work", "--seed", &seed.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = process.stdin.take().context("a worker without an ear")?;
        let answers = process.stdout.take().context("a worker without a voice")?;
        Ok(Self {
            process,
            orders,
            answers: BufReader::new(answers),
        })
    }

    fn ask(&mut self, order: &Order) -> Result<Answer> {
        serde_json::to_writer(&mut self.orders, order)?;
        self.orders.write_all(b"\n")?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            let status = self.process.wait()?;
            bail!("a worker has ended: {status}");
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
