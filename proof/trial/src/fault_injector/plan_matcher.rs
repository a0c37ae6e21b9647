//! Counts requests and events, and decides which rules strike.
//!
//! One run can be the common prefix of many plans: where the plans of a process differ, the process
//! forks, and each copy goes on with the plans that agree. The common prefix is played once.

use std::{fmt, time::Duration};

use neap_determinism::{ResultWriter, Role, fork_child};

use super::Call;
use crate::{
    judge::PlanOutcome,
    plan::{Action, Plan, Point, Rule},
};

/// CPU time for a run; a run that takes more does not terminate.
const RUN_CPU_LIMIT: Duration = Duration::from_secs(20);

/// The plans that this process plays. All of them have met the same faults so far.
pub(crate) struct PlanMatcher {
    plans: Vec<ActivePlan>,
    /// Whether the process also plays the run without faults.
    plays_reference: bool,
    /// Writes to the parent process; none in the first process.
    parent: Option<ResultWriter>,
    /// The outcomes of plans that child processes played.
    outcomes: Vec<(usize, PlanOutcome)>,
}

struct ActivePlan {
    index: usize,
    rules: Vec<RuleState>,
}

#[derive(Debug)]
struct RuleState {
    rule: Rule,
    seen: u32,
    fired: u32,
}

impl PlanMatcher {
    /// Plays one plan.
    pub(crate) fn of(plan: &Plan) -> Self {
        Self {
            plans: vec![ActivePlan::of(0, plan)],
            plays_reference: false,
            parent: None,
            outcomes: Vec::new(),
        }
    }

    /// Plays the run without faults, and each of `plans` in a child process from the moment it
    /// strikes.
    pub(crate) fn of_all(plans: &[Plan]) -> Self {
        let waiting = plans.iter().enumerate();
        let plans = waiting.map(|(index, plan)| ActivePlan::of(index, plan));
        Self {
            plans: plans.collect(),
            plays_reference: true,
            parent: None,
            outcomes: Vec::new(),
        }
    }

    /// The actions that strike here. Plans that differ go on in child processes.
    pub(crate) fn strike(&mut self, point: Point, actor: &str, call: &Call) -> Vec<Action> {
        let plans = self.plans.iter_mut();
        let mut struck: Vec<_> = plans.map(|plan| plan.strike(point, actor, call)).collect();
        if struck.iter().all(Vec::is_empty) {
            return Vec::new();
        }
        if !self.plays_reference && struck.windows(2).all(|pair| pair[0] == pair[1]) {
            return struck.swap_remove(0);
        }
        let mut groups: Vec<(Vec<Action>, Vec<ActivePlan>)> = Vec::new();
        for (plan, actions) in std::mem::take(&mut self.plans).into_iter().zip(struck) {
            match groups.iter_mut().find(|(others, _)| *others == actions) {
                Some((_, plans)) => plans.push(plan),
                None => groups.push((actions, vec![plan])),
            }
        }
        let stay = groups.iter().position(|(actions, _)| actions.is_empty());
        // Without a run of its own, this process goes on with one of the groups.
        let stay = stay.or_else(|| (!self.plays_reference).then_some(0));
        let stays = stay.map(|index| groups.swap_remove(index));
        for (actions, plans) in groups {
            if self.split_off(plans) {
                return actions;
            }
        }
        let (actions, plans) = stays.unwrap_or_default();
        self.plans = plans;
        actions
    }

    /// Forks a child process that plays `plans`; returns true in the child.
    fn split_off(&mut self, plans: Vec<ActivePlan>) -> bool {
        let outcomes = match fork_child(RUN_CPU_LIMIT) {
            Ok(Role::Child(parent)) => {
                self.plans = plans;
                self.plays_reference = false;
                self.parent = Some(parent);
                self.outcomes.clear();
                return true;
            }
            Ok(Role::Parent(child)) => child.wait().map_err(|error| error.to_string()),
            Err(error) => Err(format!("its process cannot fork: {error}")),
        };
        let outcomes = outcomes.and_then(|outcomes| {
            let read = serde_json::from_slice::<Vec<(usize, PlanOutcome)>>(&outcomes);
            read.map_err(|_| "the process that played it died without a result".to_owned())
        });
        let (outcomes, why) = match outcomes {
            Ok(outcomes) => (
                outcomes,
                "the process that played it returned no outcome".to_owned(),
            ),
            Err(why) => (Vec::new(), why),
        };
        for plan in plans {
            let mut received = outcomes.iter().filter(|(index, _)| *index == plan.index);
            let outcome = received.next().map(|(_, outcome)| outcome.clone());
            let outcome = outcome.unwrap_or_else(|| PlanOutcome::lost(&format!("{plan}: {why}")));
            self.outcomes.push((plan.index, outcome));
        }
        false
    }

    /// The rules of the current plan that never struck.
    pub(crate) fn idle(&self) -> Vec<usize> {
        self.plans.first().map(ActivePlan::idle).unwrap_or_default()
    }

    /// In a child process: sends the outcomes to the parent and exits. In the first process:
    /// returns all outcomes.
    pub(crate) fn finish(
        &mut self,
        outcome: impl FnOnce() -> PlanOutcome,
    ) -> Vec<(usize, PlanOutcome)> {
        let plans = std::mem::take(&mut self.plans);
        let mut outcomes = std::mem::take(&mut self.outcomes);
        let Some(parent) = self.parent.take() else {
            let never = |plan: &ActivePlan| (plan.index, PlanOutcome::not_struck(plan.rules.len()));
            outcomes.extend(plans.iter().map(never));
            return outcomes;
        };
        let outcome = outcome();
        outcomes.extend(plans.iter().map(|plan| {
            let idle = plan.idle();
            let outcome = outcome.clone();
            (plan.index, PlanOutcome { idle, ..outcome })
        }));
        parent.finish(&serde_json::to_vec(&outcomes).unwrap_or_default())
    }
}

/// Shows the rules, because the plan's name is not known here.
impl fmt::Display for ActivePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, armed) in self.rules.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(f, "{comma}`{}`", armed.rule)?;
        }
        Ok(())
    }
}

impl ActivePlan {
    fn idle(&self) -> Vec<usize> {
        let rules = self.rules.iter().enumerate();
        let idle = rules.filter(|(_, armed)| armed.fired == 0);
        idle.map(|(index, _)| index).collect()
    }

    fn of(index: usize, plan: &Plan) -> Self {
        let arm = |rule: &Rule| RuleState {
            rule: rule.clone(),
            seen: 0,
            fired: 0,
        };
        let rules = plan.rules.iter().map(arm).collect();
        Self { index, rules }
    }

    fn strike(&mut self, point: Point, actor: &str, call: &Call) -> Vec<Action> {
        let mut actions = Vec::new();
        for armed in &mut self.rules {
            let Rule {
                filter,
                nth,
                actor: who,
                action,
                ..
            } = &armed.rule;
            let meant = armed.rule.point == point
                && who.is(actor)
                && filter.fits(call.verb, &call.kind, &call.namespace, &call.name);
            if !meant {
                continue;
            }
            armed.seen += 1;
            if nth.means(armed.seen) {
                armed.fired += 1;
                actions.push(action.clone());
            }
        }
        actions
    }
}

impl fmt::Debug for PlanMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Director")
            .field("plans", &self.plans.len())
            .finish_non_exhaustive()
    }
}
