//! A process that plays what it is told to.

use std::{
    collections::HashMap,
    io::{BufRead, Write, stdin, stdout},
};

use anyhow::{Context, Result};
use neap_trial::{
    Ground, Workload,
    apart::{calm, play},
    judge::{Reference, Violation},
    plan::{Plan, parse},
    shrink::{Case, Draft, shrink},
};

use crate::{
    message::{Answer, Order},
    workloads,
};

/// No failure needs more tries than that to become small.
const TRIES: usize = 600;

/// Does what each line of standard input says, until it ends.
pub(crate) fn run() -> Result<()> {
    let mut worker = Worker::new()?;
    for line in stdin().lock().lines() {
        let order = serde_json::from_str(&line?)?;
        let answer = worker.obey(order);
        let answer = answer.unwrap_or_else(|error| Answer::Failed(format!("{error:#}")));
        let mut out = stdout().lock();
        serde_json::to_writer(&mut out, &answer)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

pub(crate) struct Worker {
    pub(crate) ground: Ground,
    workloads: Vec<Workload>,
    references: HashMap<(String, u64), Reference>,
}

impl Worker {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            ground: ground()?,
            workloads: workloads(),
            references: HashMap::new(),
        })
    }

    fn obey(&mut self, order: Order) -> Result<Answer> {
        match order {
            Order::Play {
                workload,
                seed,
                plans,
            } => {
                let plans = parse(&plans.concat())?;
                self.know(&workload, seed)?;
                let played = play(
                    self.workload(&workload)?,
                    seed,
                    &plans,
                    &self.references[&(workload.clone(), seed)],
                    &self.ground,
                );
                Ok(Answer::Played(played.map_err(anyhow::Error::msg)?))
            }
            Order::Shrink { plan, found } => self.shrink(&parse(&plan)?[0], &found),
            Order::Plant { bug } => {
                plant(bug.as_deref())?;
                // What is right has to be found out anew: nobody else knows of the mistake.
                self.references.clear();
                Ok(Answer::Planted)
            }
            Order::Calm { workload, seed } => {
                let shown = calm(self.workload(&workload)?, seed, &self.ground);
                let (_, entries, says) = shown.map_err(anyhow::Error::msg)?;
                Ok(Answer::Calm { entries, says })
            }
        }
    }

    pub(crate) fn workload(&self, name: &str) -> Result<&Workload> {
        let mut all = self.workloads.iter();
        all.find(|workload| workload.name == name)
            .with_context(|| format!("there is no workload {name}"))
    }

    fn know(&mut self, workload: &str, seed: u64) -> Result<()> {
        let key = (workload.to_owned(), seed);
        if !self.references.contains_key(&key) {
            let known = calm(self.workload(workload)?, seed, &self.ground);
            let (reference, _, _) = known.map_err(anyhow::Error::msg)?;
            self.references.insert(key, reference);
        }
        Ok(())
    }

    /// Plays what `draft` makes of a run without faults; the plans that say something, and what.
    fn try_all(
        &self,
        workload: &Workload,
        seed: u64,
        draft: Draft<'_>,
    ) -> Result<Vec<(Plan, Vec<Violation>)>, String> {
        let (reference, entries, says) = calm(workload, seed, &self.ground)?;
        let (faulty, calm): (Vec<_>, Vec<_>) = draft(&entries)
            .into_iter()
            .partition(|plan| !plan.rules.is_empty());
        let played = play(workload, seed, &faulty, &reference, &self.ground)?;
        let played = faulty.into_iter().zip(played);
        // A fault that no longer strikes proves nothing.
        let struck = played.filter(|(_, outcome)| outcome.idle.is_empty());
        let struck = struck.map(|(plan, outcome)| (plan, outcome.violations));
        let calm = calm.into_iter().map(|plan| (plan, says.clone()));
        Ok(struck.chain(calm).collect())
    }

    fn shrink(&self, plan: &Plan, found: &Violation) -> Result<Answer> {
        let case = Case {
            workload: self.workload(&plan.workload)?.clone(),
            plan: plan.clone(),
        };
        let small = shrink(case, found, TRIES, |workload, draft| {
            self.try_all(workload, plan.seed, draft).unwrap_or_default()
        });
        let steps = small.workload.steps.iter();
        Ok(Answer::Shrunk {
            plan: small.plan.to_string(),
            steps: steps.map(|step| step.name.to_owned()).collect(),
        })
    }
}

/// Has the code under trial make this mistake, or none.
#[cfg(feature = "seeded")]
fn plant(bug: Option<&str>) -> Result<()> {
    Ok(neap_kit::seeded::plant(bug)?)
}

#[cfg(not(feature = "seeded"))]
fn plant(bug: Option<&str>) -> Result<()> {
    anyhow::ensure!(bug.is_none(), "this was built without mistakes to plant");
    Ok(())
}

/// A server that runs begin with.
pub(crate) fn ground() -> Result<Ground> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    Ok(runtime.block_on(Ground::prepare())?)
}
