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
    Entry, Workload,
    apart::calm,
    judge::{ALLOWANCES, Outcome, Violation},
    plan::Plan,
};
use parking_lot::Mutex;

use crate::{
    aside::Aside,
    canary,
    message::{Answer, Order},
    report::{Finding, Report, Tally},
    stopwatch::Stopwatch,
    supply::{Batch, Supply, Swarm, Turn, Why},
    worker,
};

/// Every plan that once found something, and those that have a twin with real processes.
const CORPUS: &str = concat!(
    include_str!("../corpus.plan"),
    include_str!("../twins.plan")
);
/// Every so manieth batch is played twice.
const AGAIN: usize = 40;
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
    let mut report = Report {
        canary: canary::dies(&ground, seed)?,
        allowances: &ALLOWANCES,
        ..Report::default()
    };
    let mut known = Vec::new();
    for workload in aside.played(workloads) {
        let shown = calm(workload, seed, &ground).map_err(anyhow::Error::msg)?;
        let (reference, entries, restless) = shown;
        let says = restless.iter();
        let says =
            says.map(|violation| format!("without any fault: {}: {violation}", workload.name));
        report.restless.extend(says);
        report.fields.compared += reference.share.compared;
        report.fields.masked += reference.share.masked;
        let tally = Tally {
            writes: reference.writes(),
            ..Tally::default()
        };
        report.workloads.insert(workload.name.to_owned(), tally);
        known.push((workload, reference.writes(), entries));
    }
    let supply = Supply::new(&known, seed, CORPUS)?;
    report.alone = (supply.alone(), 0);
    for (workload, pairs) in supply.pairs() {
        let tally = report.workloads.entry(workload.to_owned()).or_default();
        tally.pairs = (pairs, 0);
    }
    let desk = Desk {
        supply: Mutex::new(supply),
        report: Mutex::new(report),
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
        // What declarations need would make the other larger, and its splits slower.
        let mut beside = Worker::start(self.seed)?;
        let mut number = 0_usize;
        while self.watch.elapsed() < self.budget {
            if let Some(order) = self.aside.due(self.watch, self.seed) {
                let begun = self.watch.elapsed();
                let answer = beside.ask(&order)?;
                let mut report = self.report.lock();
                self.aside.note(&order, answer, &mut report)?;
                self.aside
                    .spent(&order, self.watch.elapsed().saturating_sub(begun));
                continue;
            }
            if self.aside.is_all() {
                break;
            }
            let turn = self.supply.lock().next();
            let batch = match turn {
                Turn::Play(batch) => batch,
                Turn::Show(swarm) => {
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
            if number.is_multiple_of(AGAIN) {
                self.compare(&batch, &outcomes, &worker.play(&batch)?);
            }
            number += 1;
            let bad = self.note(&batch, &outcomes);
            for (plan, violations) in bad {
                self.examine(&mut worker, &plan, violations)?;
            }
        }
        Ok(())
    }

    /// The same plans have to leave the same traces.
    fn compare(&self, batch: &Batch, once: &[Outcome], again: &[Outcome]) {
        let mut report = self.report.lock();
        for ((plan, one), other) in batch.plans.iter().zip(once).zip(again) {
            report.again += 1;
            if one.fingerprint == other.fingerprint {
                report.replayed += 1;
            } else {
                let differs = format!("another trace when played again:\n{plan}");
                report.restless.push(differs);
            }
        }
    }

    /// Counts outcomes; the plans under which something went wrong.
    fn note(&self, batch: &Batch, outcomes: &[Outcome]) -> Vec<(Plan, Vec<Violation>)> {
        let mut bad = Vec::new();
        let mut report = self.report.lock();
        for (plan, outcome) in batch.plans.iter().zip(outcomes) {
            if !outcome.idle.is_empty() {
                report.void += 1;
                if batch.why == Why::Corpus {
                    let void = format!("a plan of the corpus no longer strikes:\n{plan}");
                    report.restless.push(void);
                }
                // Those of its faults that did strike may have done harm all the same.
                if !outcome.violations.is_empty() {
                    bad.push((plan.clone(), outcome.violations.clone()));
                }
                continue;
            }
            let new = usize::from(report.is_new(plan));
            report.plans += new;
            report.alone.1 += usize::from(batch.why == Why::Alone);
            for rule in &plan.rules {
                let fault = rule.action.word(rule.point);
                let row = report.matrix.entry(fault).or_default();
                *row.entry(plan.workload.clone()).or_default() += 1;
            }
            let tally = report.workloads.entry(plan.workload.clone()).or_default();
            tally.plans += new;
            tally.costs.push(outcome.cost);
            tally.pairs.1 += usize::from(batch.why == Why::Pairs);
            tally.slowest = tally.slowest.max(outcome.slowest as f64 / 1000.0);
            if !outcome.violations.is_empty() {
                tally.violations += 1;
                bad.push((plan.clone(), outcome.violations.clone()));
            }
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
        let mut parts = None;
        let small = if wanted {
            let order = Order::Shrink {
                plan: plan.to_string(),
                found: first.clone(),
            };
            match worker.ask(&order)? {
                Answer::Shrunk {
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

    fn close(self) -> Report {
        let mut report = self.report.into_inner();
        let mut all = Vec::new();
        for tally in report.workloads.values_mut() {
            tally.median_cost = median(&mut tally.costs);
            all.append(&mut tally.costs);
        }
        report.median_cost = median(&mut all);
        report.seconds = self.watch.elapsed().as_secs_f64();
        report.measure(self.budget);
        report
    }
}

/// Of microseconds, in milliseconds.
fn median(costs: &mut [u64]) -> f64 {
    costs.sort_unstable();
    let median = costs.get(costs.len() / 2).copied().unwrap_or_default();
    median as f64 / 1000.0
}

fn bar(budget: Duration) -> Result<ProgressBar> {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} s  {msg}")?;
    Ok(ProgressBar::new(budget.as_secs()).with_style(style))
}

/// A process that plays.
pub(crate) struct Worker {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    pub(crate) fn start(seed: u64) -> Result<Self> {
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

    fn play(&mut self, batch: &Batch) -> Result<Vec<Outcome>> {
        let played = self.ask(&Order::Play {
            workload: batch.workload.to_owned(),
            seed: batch.seed,
            plans: batch.plans.iter().map(ToString::to_string).collect(),
        })?;
        match played {
            Answer::Played(outcomes) => Ok(outcomes),
            other => bail!("{}: {other:?}", batch.workload),
        }
    }

    fn show(&mut self, swarm: &Swarm) -> Result<(Vec<Entry>, Vec<Violation>)> {
        let shown = self.ask(&Order::Show {
            workload: swarm.workload.to_owned(),
            seed: swarm.seed,
        })?;
        match shown {
            Answer::Shown { entries, says } => Ok((entries, says)),
            other => bail!("{}: {other:?}", swarm.workload),
        }
    }

    pub(crate) fn ask(&mut self, order: &Order) -> Result<Answer> {
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
