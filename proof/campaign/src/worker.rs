//! A process that plays the requests of a campaign.

use std::{
    collections::HashMap,
    io::{BufRead, Write, stdin, stdout},
    sync::OnceLock,
};

use anyhow::{Context, Result};
use neap_trial::{
    ClusterTemplate, Workload,
    child_process::{in_child_process, play, play_without_faults},
    difference::difference,
    judge::{Oracle, Reference, Violation},
    plan::{Plan, parse},
    shrink::{Case, PlanDraft, shrink},
    walk::{Subject, WalkReport},
};

use crate::{
    protocol::{WorkerRequest, WorkerResponse},
    start_states::StartStatePlayer,
    walk, workloads,
};

/// Plans that are tried to reduce a failure.
const MAX_SHRINK_PLANS: usize = 600;
/// CPU time to reduce a failure, in microseconds: some failures are storms.
const MAX_SHRINK_MICROS: u64 = 2_000_000;
/// Plans that are played before checking whether one of them has failed.
const SHRINK_BATCH: usize = 4;

/// Executes each line of standard input as a request, until it ends.
pub(crate) fn run() -> Result<()> {
    let mut worker = Worker::new()?;
    for line in stdin().lock().lines() {
        let request = serde_json::from_str(&line?)?;
        let response = worker.execute(request);
        let response =
            response.unwrap_or_else(|error| WorkerResponse::Failed(format!("{error:#}")));
        let mut out = stdout().lock();
        serde_json::to_writer(&mut out, &response)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

pub(crate) struct Worker {
    pub(crate) template: ClusterTemplate,
    workloads: Vec<Workload>,
    references: HashMap<(String, u64), Reference>,
    /// Created at the first walk: a large heap makes every fork slow.
    subjects: OnceLock<Vec<Subject>>,
    starts: StartStatePlayer,
}

impl Worker {
    pub(crate) fn new() -> Result<Self> {
        let workloads = workloads();
        Ok(Self {
            template: template()?,
            subjects: OnceLock::new(),
            starts: StartStatePlayer::of(&workloads),
            workloads,
            references: HashMap::new(),
        })
    }

    fn execute(&mut self, request: WorkerRequest) -> Result<WorkerResponse> {
        match request {
            WorkerRequest::Play {
                workload,
                seed,
                plans,
            } => {
                let plans = parse(&plans.concat())?;
                self.ensure_reference(&workload, seed)?;
                let played = play(
                    self.workload(&workload)?,
                    seed,
                    &plans,
                    &self.references[&(workload.clone(), seed)],
                    &self.template,
                );
                Ok(WorkerResponse::Played(played.map_err(anyhow::Error::msg)?))
            }
            WorkerRequest::Show { workload, seed } => {
                let shown = play_without_faults(self.workload(&workload)?, seed, &self.template);
                let (reference, entries, says) = shown.map_err(anyhow::Error::msg)?;
                self.store_reference((workload, seed), reference);
                Ok(WorkerResponse::Shown { entries, says })
            }
            WorkerRequest::Shrink { plan, found } => self.shrink(&parse(&plan)?[0], &found),
            WorkerRequest::Plant { bug } => {
                plant(bug.as_deref())?;
                // The references were recorded without the mistake.
                self.references.clear();
                Ok(WorkerResponse::Planted)
            }
            WorkerRequest::Walk {
                subject,
                chain,
                seed,
            } => {
                let subject = walk::find(self.subjects()?, &subject)?;
                let walked = in_child_process(seed, || subject.walk(chain, seed, &self.template));
                // A chain that cannot be walked to its end is a violation, and the others go on.
                let walked = walked.unwrap_or_else(|error| WalkReport {
                    violations: vec![Violation::new(Oracle::Panic, "walk", error)],
                    ..WalkReport::default()
                });
                Ok(WorkerResponse::WalkReport(walked))
            }
            WorkerRequest::StartState {
                workload,
                from,
                count,
                seed,
            } => {
                let numbers = from..from + count;
                let played = self.starts.play(&workload, numbers, seed, &self.template);
                Ok(WorkerResponse::Started(played?))
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

    fn ensure_reference(&mut self, workload: &str, seed: u64) -> Result<()> {
        let key = (workload.to_owned(), seed);
        if !self.references.contains_key(&key) {
            let known = play_without_faults(self.workload(workload)?, seed, &self.template);
            let (reference, _, _) = known.map_err(anyhow::Error::msg)?;
            self.store_reference(key, reference);
        }
        Ok(())
    }

    /// Keeps one reference per workload: a long campaign uses thousands of seeds.
    fn store_reference(&mut self, key: (String, u64), reference: Reference) {
        self.references.retain(|(name, _), _| *name != key.0);
        self.references.insert(key, reference);
    }

    fn shrink(&self, plan: &Plan, found: &Violation) -> Result<WorkerResponse> {
        let case = Case {
            workload: self.workload(&plan.workload)?.clone(),
            plan: plan.clone(),
        };
        let mut left = MAX_SHRINK_MICROS;
        let small = shrink(case, found, MAX_SHRINK_PLANS, |workload, draft| {
            let tried = self.try_all(workload, plan.seed, draft, found, &mut left);
            // Some steps cannot be played without others.
            tried.unwrap_or_default()
        });
        let steps = small.workload.steps.iter();
        Ok(WorkerResponse::Shrunk {
            plan: small.plan.to_string(),
            steps: steps.map(|step| step.name.to_string()).collect(),
            difference: difference(&small, found, &self.template).ok(),
        })
    }

    /// Plays the plans that `draft` makes of a run without faults, up to the first that fails like
    /// `found` or until the effort is used up. Returns the plans all of whose faults struck, with
    /// their violations.
    fn try_all(
        &self,
        workload: &Workload,
        seed: u64,
        draft: PlanDraft<'_>,
        found: &Violation,
        left: &mut u64,
    ) -> Result<Vec<(Plan, Vec<Violation>)>, String> {
        if *left == 0 {
            return Ok(Vec::new());
        }
        let (reference, entries, says) = play_without_faults(workload, seed, &self.template)?;
        let plans = draft(&entries).into_iter();
        let (faulty, calm): (Vec<_>, Vec<_>) = plans.partition(|plan| !plan.rules.is_empty());
        let mut tried: Vec<_> = calm.into_iter().map(|plan| (plan, says.clone())).collect();
        for plans in faulty.chunks(SHRINK_BATCH) {
            if *left == 0 {
                break;
            }
            let played = play(workload, seed, plans, &reference, &self.template)?;
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

/// Activates a planted mistake, or none.
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

pub(crate) fn template() -> Result<ClusterTemplate> {
    Ok(ClusterTemplate::prepare_blocking()?)
}
