//! A process that plays what it is told to.

use std::{
    collections::HashMap,
    io::{BufRead, Write, stdin, stdout},
};

use anyhow::{Context, Result};
use neap_trial::{
    Ground, Workload,
    apart::{apart, calm, play},
    difference::difference,
    judge::{Reference, Violation},
    plan::{Plan, parse},
    shrink::{Case, shrink},
    walk::Subject,
};

use crate::{
    message::{Answer, Order},
    start_states::StartStates,
    walk, workloads,
};

/// No failure needs more tries than that to become small.
const TRIES: usize = 80;

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
    subjects: Vec<Subject>,
    starts: StartStates,
}

impl Worker {
    pub(crate) fn new() -> Result<Self> {
        let workloads = workloads();
        Ok(Self {
            ground: ground()?,
            subjects: walk::subjects(&workloads)?,
            starts: StartStates::of(&workloads),
            workloads,
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
            Order::Show { workload, seed } => {
                let shown = calm(self.workload(&workload)?, seed, &self.ground);
                let (reference, entries, _) = shown.map_err(anyhow::Error::msg)?;
                self.references.insert((workload, seed), reference);
                Ok(Answer::Shown(entries))
            }
            Order::Shrink { plan, found } => self.shrink(&parse(&plan)?[0], &found),
            Order::Walk {
                subject,
                chain,
                seed,
            } => {
                let subject = walk::find(&self.subjects, &subject)?;
                let walked = apart(seed, || subject.walk(chain, seed, &self.ground));
                Ok(Answer::Walked(walked.map_err(anyhow::Error::msg)?))
            }
            Order::Start {
                workload,
                from,
                count,
                seed,
            } => {
                let numbers = from..from + count;
                let played = self.starts.play(&workload, numbers, seed, &self.ground);
                Ok(Answer::Started(played?))
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

    fn shrink(&self, plan: &Plan, found: &Violation) -> Result<Answer> {
        let case = Case {
            workload: self.workload(&plan.workload)?.clone(),
            plan: plan.clone(),
        };
        let small = shrink(case, found, TRIES, |case| {
            let Case { workload, plan } = case;
            let tried = calm(workload, plan.seed, &self.ground).and_then(|(reference, _, _)| {
                let plans = std::slice::from_ref(plan);
                play(workload, plan.seed, plans, &reference, &self.ground)
            });
            let mut outcomes = tried.unwrap_or_default().into_iter();
            let outcome = outcomes.next();
            // A fault that no longer strikes proves nothing.
            let outcome = outcome.filter(|outcome| outcome.idle.is_empty());
            outcome
                .map(|outcome| outcome.violations)
                .unwrap_or_default()
        });
        let steps = small.workload.steps.iter();
        Ok(Answer::Shrunk {
            plan: small.plan.to_string(),
            steps: steps.map(|step| step.name.to_owned()).collect(),
            difference: difference(&small, found, &self.ground).ok(),
        })
    }
}

/// A server that runs begin with.
pub(crate) fn ground() -> Result<Ground> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    Ok(runtime.block_on(Ground::prepare())?)
}
