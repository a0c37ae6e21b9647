//! Counts what passes, and says which rules strike.
//!
//! One run can be the beginning of many: where the plans of a process do not agree, it goes on as
//! several, each for those that do. What plans have in common is played once.

use std::{fmt, time::Duration};

use neap_replay::{Pen, Role, split};

use super::Call;
use crate::{
    judge::Outcome,
    plan::{Action, Plan, Point, Rule},
};

/// No run needs so much of a core; whoever takes more never comes to an end.
const PATIENCE: Duration = Duration::from_secs(20);

/// The plans that this process plays for. All of them have met the same faults so far.
pub(crate) struct Director {
    plans: Vec<Waiting>,
    /// Whether it plays for itself too: the run without any fault.
    calm: bool,
    /// What tells the process that this one comes from; nothing if there is none.
    pen: Option<Pen>,
    /// What came of the plans that others played.
    told: Vec<(usize, Outcome)>,
}

struct Waiting {
    index: usize,
    rules: Vec<Armed>,
}

#[derive(Debug)]
struct Armed {
    rule: Rule,
    seen: u32,
    fired: u32,
}

impl Director {
    /// Plays one plan.
    pub(crate) fn of(plan: &Plan) -> Self {
        Self {
            plans: vec![Waiting::of(0, plan)],
            calm: false,
            pen: None,
            told: Vec::new(),
        }
    }

    /// Plays none, and each of `plans` in a process of its own, from where it strikes.
    pub(crate) fn of_all(plans: &[Plan]) -> Self {
        let waiting = plans.iter().enumerate();
        let plans = waiting.map(|(index, plan)| Waiting::of(index, plan));
        Self {
            plans: plans.collect(),
            calm: true,
            pen: None,
            told: Vec::new(),
        }
    }

    /// What happens here. Plans that do not agree go on in processes of their own.
    pub(crate) fn strike(&mut self, point: Point, actor: &str, call: &Call) -> Vec<Action> {
        let plans = self.plans.iter_mut();
        let mut struck: Vec<_> = plans.map(|plan| plan.strike(point, actor, call)).collect();
        if struck.iter().all(Vec::is_empty) {
            return Vec::new();
        }
        if !self.calm && struck.windows(2).all(|pair| pair[0] == pair[1]) {
            return struck.swap_remove(0);
        }
        let mut groups: Vec<(Vec<Action>, Vec<Waiting>)> = Vec::new();
        for (plan, actions) in std::mem::take(&mut self.plans).into_iter().zip(struck) {
            match groups.iter_mut().find(|(others, _)| *others == actions) {
                Some((_, plans)) => plans.push(plan),
                None => groups.push((actions, vec![plan])),
            }
        }
        let stay = groups.iter().position(|(actions, _)| actions.is_empty());
        // This process has nothing to do but play for some of them.
        let stay = stay.or_else(|| (!self.calm).then_some(0));
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

    /// Lets another process play for `plans`; true in that process.
    fn split_off(&mut self, plans: Vec<Waiting>) -> bool {
        let told = match split(PATIENCE) {
            Ok(Role::Child(pen)) => {
                self.plans = plans;
                self.calm = false;
                self.pen = Some(pen);
                self.told.clear();
                return true;
            }
            Ok(Role::Parent(child)) => child.wait().map_err(|error| error.to_string()),
            Err(error) => Err(format!("its process cannot split: {error}")),
        };
        let told = told.and_then(|told| {
            let read = serde_json::from_slice::<Vec<(usize, Outcome)>>(&told);
            read.map_err(|_| "the process that played it died without a word".to_owned())
        });
        let (told, why) = match told {
            Ok(told) => (
                told,
                "the process that played it did not tell of it".to_owned(),
            ),
            Err(why) => (Vec::new(), why),
        };
        for plan in plans {
            let mut heard = told.iter().filter(|(index, _)| *index == plan.index);
            let outcome = heard.next().map(|(_, outcome)| outcome.clone());
            let outcome = outcome.unwrap_or_else(|| Outcome::silent(&format!("{plan}: {why}")));
            self.told.push((plan.index, outcome));
        }
        false
    }

    /// The rules of the plan that is played which never struck.
    pub(crate) fn idle(&self) -> Vec<usize> {
        self.plans.first().map(Waiting::idle).unwrap_or_default()
    }

    /// Ends a process that split off from another; what came of all plans in the one that did not.
    pub(crate) fn close(&mut self, outcome: impl FnOnce() -> Outcome) -> Vec<(usize, Outcome)> {
        let plans = std::mem::take(&mut self.plans);
        let mut told = std::mem::take(&mut self.told);
        let Some(pen) = self.pen.take() else {
            let never = |plan: &Waiting| (plan.index, Outcome::never(plan.rules.len()));
            told.extend(plans.iter().map(never));
            return told;
        };
        let outcome = outcome();
        told.extend(plans.iter().map(|plan| {
            let idle = plan.idle();
            let outcome = outcome.clone();
            (plan.index, Outcome { idle, ..outcome })
        }));
        pen.finish(&serde_json::to_vec(&told).unwrap_or_default())
    }
}

/// By its rules: names of plans are not known here.
impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, armed) in self.rules.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(f, "{comma}`{}`", armed.rule)?;
        }
        Ok(())
    }
}

impl Waiting {
    fn idle(&self) -> Vec<usize> {
        let rules = self.rules.iter().enumerate();
        let idle = rules.filter(|(_, armed)| armed.fired == 0);
        idle.map(|(index, _)| index).collect()
    }

    fn of(index: usize, plan: &Plan) -> Self {
        let arm = |rule: &Rule| Armed {
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

impl fmt::Debug for Director {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Director")
            .field("plans", &self.plans.len())
            .finish_non_exhaustive()
    }
}
