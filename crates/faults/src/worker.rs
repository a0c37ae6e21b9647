//! A process that plays what it is told to.

use std::{
    collections::HashMap,
    io::{BufRead, Write, stdin, stdout},
    sync::OnceLock,
};

use anyhow::{Context, Result};
use neap_trial::{
    Ground, Workload,
    apart::{apart, calm, play},
    difference::difference,
    judge::{Oracle, Reference, Violation},
    plan::{Plan, parse},
    shrink::{Case, Draft, shrink},
    walk::{Subject, Walked},
};

use crate::{
    message::{Answer, Order},
    start_states::StartStates,
    walk, workloads,
};

/// No failure needs more tries than that to become small.
const TRIES: usize = 600;
/// Nor is it worth more than that, in microseconds of a core: some failures are storms.
const EFFORT: u64 = 2_000_000;
/// So many plans are tried before looking whether one of them has failed.
const FEW: usize = 4;

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
    /// Made when the first is walked: what is large makes every split slow.
    subjects: OnceLock<Vec<Subject>>,
    starts: StartStates,
}

impl Worker {
    pub(crate) fn new() -> Result<Self> {
        let workloads = workloads();
        Ok(Self {
            ground: ground()?,
            subjects: OnceLock::new(),
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
                let (reference, entries, says) = shown.map_err(anyhow::Error::msg)?;
                self.keep((workload, seed), reference);
                Ok(Answer::Shown { entries, says })
            }
            Order::Shrink { plan, found } => self.shrink(&parse(&plan)?[0], &found),
            Order::Plant { bug } => {
                plant(bug.as_deref())?;
                // What is right has to be found out anew: nobody else knows of the mistake.
                self.references.clear();
                Ok(Answer::Planted)
            }
            Order::Walk {
                subject,
                chain,
                seed,
            } => {
                let subject = walk::find(self.subjects()?, &subject)?;
                let walked = apart(seed, || subject.walk(chain, seed, &self.ground));
                // A chain that cannot be walked to its end says so, and the others go on.
                let walked = walked.unwrap_or_else(|error| Walked {
                    violations: vec![Violation::new(Oracle::Panic, "walk", error)],
                    ..Walked::default()
                });
                Ok(Answer::Walked(walked))
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

    fn subjects(&self) -> Result<&[Subject]> {
        if self.subjects.get().is_none() {
            let made = walk::subjects(&self.workloads)?;
            let _ = self.subjects.set(made);
        }
        Ok(self.subjects.get().map(Vec::as_slice).unwrap_or_default())
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
            self.keep(key, reference);
        }
        Ok(())
    }

    /// One for each workload: a long campaign comes by thousands of seeds.
    fn keep(&mut self, key: (String, u64), reference: Reference) {
        self.references.retain(|(name, _), _| *name != key.0);
        self.references.insert(key, reference);
    }

    fn shrink(&self, plan: &Plan, found: &Violation) -> Result<Answer> {
        let case = Case {
            workload: self.workload(&plan.workload)?.clone(),
            plan: plan.clone(),
        };
        let mut left = EFFORT;
        let small = shrink(case, found, TRIES, |workload, draft| {
            let tried = self.try_all(workload, plan.seed, draft, found, &mut left);
            // Some steps cannot be taken without others.
            tried.unwrap_or_default()
        });
        let steps = small.workload.steps.iter();
        Ok(Answer::Shrunk {
            plan: small.plan.to_string(),
            steps: steps.map(|step| step.name.to_string()).collect(),
            difference: difference(&small, found, &self.ground).ok(),
        })
    }

    /// Plays what `draft` makes of a run without faults, up to the first that fails like `found` or
    /// until nothing is left of the effort; the plans that say something, and what.
    fn try_all(
        &self,
        workload: &Workload,
        seed: u64,
        draft: Draft<'_>,
        found: &Violation,
        left: &mut u64,
    ) -> Result<Vec<(Plan, Vec<Violation>)>, String> {
        if *left == 0 {
            return Ok(Vec::new());
        }
        let (reference, entries, says) = calm(workload, seed, &self.ground)?;
        let plans = draft(&entries).into_iter();
        let (faulty, calm): (Vec<_>, Vec<_>) = plans.partition(|plan| !plan.rules.is_empty());
        let mut tried: Vec<_> = calm.into_iter().map(|plan| (plan, says.clone())).collect();
        for plans in faulty.chunks(FEW) {
            if *left == 0 {
                break;
            }
            let played = play(workload, seed, plans, &reference, &self.ground)?;
            for (plan, outcome) in plans.iter().zip(played) {
                *left = left.saturating_sub(outcome.cost);
                // A fault that no longer strikes proves nothing.
                if outcome.idle.is_empty() {
                    tried.push((plan.clone(), outcome.violations));
                }
            }
            let mut said = tried.iter().flat_map(|(_, violations)| violations);
            if said.any(|violation| violation.is_like(found)) {
                break;
            }
        }
        Ok(tried)
    }
}

/// Has the code under trial make this mistake, or none.
#[cfg(feature = "seeded")]
fn plant(bug: Option<&str>) -> Result<()> {
    let by_the_server = bug == Some(neap_trial::seeded::NAME);
    neap_trial::seeded::plant(by_the_server);
    Ok(neap_kit::seeded::plant(bug.filter(|_| !by_the_server))?)
}

#[cfg(not(feature = "seeded"))]
fn plant(bug: Option<&str>) -> Result<()> {
    anyhow::ensure!(bug.is_none(), "this was built without mistakes to plant");
    Ok(())
}

/// A server that runs begin with.
pub(crate) fn ground() -> Result<Ground> {
    Ok(Ground::ready()?)
}
