//! Makes plans of what a run shows.
//!
//! Every write meets every kind of failure, every restart every staleness, every event every way in
//! which a watch can fail: one at a time, then two at a time. What is left of the time goes to
//! chance.

mod chance;
mod points;
mod sites;

use std::time::Duration;

pub use chance::Chance;
pub use points::{Place, places};
pub use sites::{Site, kinds};

use crate::{
    plan::{Action, Fault, Filter, Nth, Plan, Point, Rule, Who},
    poison,
};

/// Longer than a write may take.
const LONG: Duration = Duration::from_secs(12);

/// What happens to a write before it reaches the server.
fn before(verb_creates: bool) -> Vec<Action> {
    let surprise = if verb_creates { 409 } else { 404 };
    vec![
        Action::Crash,
        fail(500, None),
        fail(429, Some(Duration::from_secs(2))),
        fail(503, None),
        fail(surprise, None),
        Action::Conflict(1),
        Action::Conflict(5),
        Action::Delay(LONG),
        Action::Pause(Duration::from_secs(40)),
    ]
}

/// What happens to a write that was done and not answered yet.
fn after() -> Vec<Action> {
    vec![
        Action::Crash,
        fail(500, None),
        fail(504, None),
        Action::Delay(LONG),
    ]
}

/// What happens to an event. Whoever dies of it starts anew where in a calm run nothing may have been
/// done: that shows who does not look at what he was not told of.
fn event() -> Vec<Action> {
    vec![
        Action::Crash,
        Action::Reset,
        Action::Gone,
        Action::Merge(Duration::from_secs(20)),
        Action::Delay(Duration::from_secs(8)),
        Action::Twice,
    ]
}

fn fail(code: u16, retry_after: Option<Duration>) -> Action {
    Action::Fail(Fault { code, retry_after })
}

/// A server is at most so many changes behind.
const STALEST: usize = 6;

/// One fault at each place: all of them.
pub fn single(places: &[Place]) -> Vec<Rule> {
    let mut rules = Vec::new();
    for place in places {
        rules.extend(actions(place).into_iter().map(|action| place.rule(action)));
        if place.renews() {
            // Long enough for another to take over.
            rules.push(place.rule_for_more(7, fail(500, None)));
            rules.push(place.rule_for_more(3, Action::Delay(LONG)));
        }
    }
    rules
}

/// Nothing can be written for poisoned objects: all the ways in which that happens.
pub(crate) fn poison() -> Vec<Rule> {
    let later = Some(Duration::from_secs(2));
    let actions = [
        fail(422, None),
        fail(500, None),
        fail(429, later),
        fail(409, None),
        Action::Delay(LONG),
    ];
    let rule = |action| Rule {
        point: Point::WriteBefore,
        filter: Filter {
            namespace: Some(poison::NAMESPACE.to_owned()),
            ..Filter::default()
        },
        nth: Nth::Every(1),
        actor: Who::Any,
        action,
    };
    actions.into_iter().map(rule).collect()
}

fn actions(place: &Place) -> Vec<Action> {
    match place.point {
        Point::WriteBefore => before(place.creates()),
        Point::WriteAfter => {
            let mut all = after();
            all.extend((1..=STALEST).map(|events| Action::CrashStale(events, Vec::new())));
            let alone = |kind: &String| Action::CrashStale(STALEST, vec![kind.clone()]);
            all.extend(place.kinds.iter().map(alone));
            all.push(Action::Lag(3, Vec::new(), Duration::from_secs(10)));
            all
        }
        Point::WatchEvent => event(),
        Point::ExtBefore => vec![
            Action::Crash,
            fail(500, None),
            fail(429, Some(Duration::from_secs(2))),
            Action::Delay(LONG),
            Action::Pause(Duration::from_secs(40)),
        ],
        Point::ExtAfter => {
            let mut all = after();
            all.push(Action::Pause(Duration::from_secs(40)));
            all
        }
        Point::Read | Point::ListPage | Point::WatchOpen => {
            let later = Some(Duration::from_secs(1));
            vec![fail(500, None), fail(429, later), Action::Delay(LONG)]
        }
    }
}

/// A plan of one rule, named by what it does.
pub fn plan(workload: &str, seed: u64, rules: Vec<Rule>) -> Plan {
    let words = rules.iter().map(|rule| {
        let word = rule.action.word(rule.point).replace(' ', "-");
        let Filter {
            kind, namespace, ..
        } = rule.filter.clone();
        let kind = kind.or(namespace).unwrap_or_default();
        format!("{word}-at-{}", kind.replace('/', "-"))
    });
    Plan {
        name: words.collect::<Vec<_>>().join("-and-"),
        workload: workload.to_owned(),
        seed,
        rules,
    }
}
