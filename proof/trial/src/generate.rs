//! Generates plans from the trace of a run without faults.
//!
//! Every write meets every kind of failure, every restart every staleness, every event every way in
//! which a watch can fail: one at a time, then two at a time. The rest of the time budget goes to
//! random plans.

mod fault_sites;
mod rng;
mod site_classes;

use std::time::Duration;

pub use fault_sites::{FaultSite, fault_sites};
pub use rng::SeededRng;
pub use site_classes::{SiteClass, fault_kinds};

use crate::{
    plan::{Action, ActorFilter, Fault, Filter, Nth, Plan, Point, Rule},
    poisoned_objects,
};

/// Longer than the write timeout.
const REQUEST_DELAY: Duration = Duration::from_secs(12);

/// Faults for a write before it reaches the server.
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
        Action::Delay(REQUEST_DELAY),
        Action::Pause(Duration::from_secs(40)),
    ]
}

/// Faults for a write that is committed but not answered yet.
fn after() -> Vec<Action> {
    vec![
        Action::Crash,
        fail(500, None),
        fail(504, None),
        Action::Delay(REQUEST_DELAY),
    ]
}

/// Faults for a watch event. A process that crashes at an event may restart where a run without
/// faults has no work, which shows whether it reconciles what it received no event for.
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

/// Changes by which a lagging server is behind at most.
const MAX_LAG: usize = 6;

/// Every rule with a single fault, for every site.
pub fn single(fault_sites: &[FaultSite]) -> Vec<Rule> {
    let mut rules = Vec::new();
    for place in fault_sites {
        rules.extend(actions(place).into_iter().map(|action| place.rule(action)));
        if place.renews() {
            // Long enough for another candidate to take over the Lease.
            rules.push(place.rule_for_more(7, fail(500, None)));
            rules.push(place.rule_for_more(3, Action::Delay(REQUEST_DELAY)));
        }
    }
    rules
}

/// Rules under which no write to a poisoned object succeeds, one for each kind of failure.
pub(crate) fn poison() -> Vec<Rule> {
    let later = Some(Duration::from_secs(2));
    let actions = [
        fail(422, None),
        fail(500, None),
        fail(429, later),
        fail(409, None),
        Action::Delay(REQUEST_DELAY),
    ];
    let rule = |action| Rule {
        point: Point::WriteBefore,
        filter: Filter {
            namespace: Some(poisoned_objects::NAMESPACE.to_owned()),
            ..Filter::default()
        },
        nth: Nth::Every(1),
        actor: ActorFilter::Any,
        action,
    };
    actions.into_iter().map(rule).collect()
}

fn actions(place: &FaultSite) -> Vec<Action> {
    match place.point {
        Point::WriteBefore => before(place.creates()),
        Point::WriteAfter => {
            let mut all = after();
            all.extend((1..=MAX_LAG).map(|events| Action::CrashStale(events, Vec::new())));
            let alone = |kind: &String| Action::CrashStale(MAX_LAG, vec![kind.clone()]);
            all.extend(place.kinds.iter().map(alone));
            all.push(Action::Lag(3, Vec::new(), Duration::from_secs(10)));
            all
        }
        Point::WatchEvent => event(),
        Point::ExtBefore => {
            let mut all = vec![
                Action::Crash,
                fail(500, None),
                fail(429, Some(Duration::from_secs(2))),
                Action::Delay(REQUEST_DELAY),
                Action::Pause(Duration::from_secs(40)),
            ];
            if place.is_http() {
                all.extend([Action::Lose, Action::Twice]);
            }
            all
        }
        Point::ExtAfter => {
            let mut all = after();
            all.push(Action::Pause(Duration::from_secs(40)));
            if place.is_http() {
                all.extend([Action::Lose, Action::Truncate(1), Action::Corrupt(1)]);
            }
            all
        }
        Point::Read | Point::ListPage | Point::WatchOpen => {
            let later = Some(Duration::from_secs(1));
            vec![
                fail(500, None),
                fail(429, later),
                Action::Delay(REQUEST_DELAY),
            ]
        }
    }
}

/// A plan named after its rules.
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
