//! Counts what passes, and says which rules strike.
//!
//! A run without faults can be the beginning of many: where the first rule of a plan strikes, the
//! process goes on as two, and one of them plays that plan. What comes before the first fault is
//! played once for all.

use neap_replay::{Pen, Role, split};

use super::Call;
use crate::plan::{Action, Plan, Point, Rule};

/// Hears what came of each plan: its place in the list, and what the process that played it told.
pub(crate) type Listener = Box<dyn FnMut(usize, Option<Vec<u8>>) + Send>;

/// The plans that wait for their moment, or the one that is played.
pub(crate) struct Director {
    plans: Vec<Waiting>,
    playing: Option<Playing>,
    listener: Option<Listener>,
}

struct Waiting {
    index: usize,
    rules: Vec<Armed>,
}

struct Playing {
    plan: Waiting,
    /// What tells the process that this one comes from; nothing if there is none.
    pen: Option<Pen>,
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
            plans: Vec::new(),
            playing: Some(Playing {
                plan: Waiting::of(0, plan),
                pen: None,
            }),
            listener: None,
        }
    }

    /// Plays none, and each of `plans` in a process of its own, from where it strikes.
    pub(crate) fn of_all(plans: &[Plan], listener: Listener) -> Self {
        let waiting = plans.iter().enumerate();
        let plans = waiting.map(|(index, plan)| Waiting::of(index, plan));
        Self {
            plans: plans.collect(),
            playing: None,
            listener: Some(listener),
        }
    }

    /// What happens to something that passes `point`.
    pub(crate) fn strike(&mut self, point: Point, actor: &str, call: &Call) -> Vec<Action> {
        if let Some(playing) = &mut self.playing {
            return playing.plan.strike(point, actor, call);
        }
        let mut index = 0;
        while index < self.plans.len() {
            let actions = self.plans[index].strike(point, actor, call);
            if actions.is_empty() {
                index += 1;
                continue;
            }
            let plan = self.plans.swap_remove(index);
            let number = plan.index;
            match split() {
                Ok(Role::Child(pen)) => {
                    self.plans.clear();
                    let pen = Some(pen);
                    self.playing = Some(Playing { plan, pen });
                    return actions;
                }
                Ok(Role::Parent(child)) => {
                    let told = child.wait(crate::run::PATIENCE).ok().flatten();
                    self.tell(number, told);
                }
                Err(_) => self.tell(number, None),
            }
        }
        Vec::new()
    }

    fn tell(&mut self, index: usize, told: Option<Vec<u8>>) {
        if let Some(listener) = &mut self.listener {
            listener(index, told);
        }
    }

    /// The rules of the plan that is played which never struck.
    pub(crate) fn idle(&self) -> Vec<usize> {
        let Some(playing) = &self.playing else {
            return Vec::new();
        };
        let rules = playing.plan.rules.iter().enumerate();
        let idle = rules.filter(|(_, armed)| armed.fired == 0);
        idle.map(|(index, _)| index).collect()
    }

    /// The place of the plan that is played in the list, and what tells of it, if this process
    /// split off from another.
    pub(crate) fn split_off(&mut self) -> Option<(usize, Pen)> {
        let playing = self.playing.as_mut()?;
        Some((playing.plan.index, playing.pen.take()?))
    }

    /// The plans that never struck.
    pub(crate) fn never(&self) -> Vec<usize> {
        self.plans.iter().map(|plan| plan.index).collect()
    }
}

impl Waiting {
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

impl std::fmt::Debug for Director {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Director")
            .field("waiting", &self.plans.len())
            .finish_non_exhaustive()
    }
}
