//! The plans of each family.

use std::{collections::BTreeSet, time::Duration};

use super::{Family, NAME, expect::ExpectedCourse};
use crate::{
    generate::plan,
    plan::{Action, ActorFilter, Fault, Filter, Nth, Plan, Point, Rule, Verb},
};

/// Longer than the Lease duration.
const LEASE_EXPIRY_PAUSE: Duration = Duration::from_secs(40);
/// Longer than a takeover.
const TAKEOVER_DELAY: Duration = Duration::from_secs(70);

/// The plans; the flag says whether the external system forgets keys.
pub(super) fn of(family: Family, course: &ExpectedCourse, seed: u64) -> Vec<(Plan, bool)> {
    let make = |rules: Vec<Rule>| plan(NAME, seed, rules);
    let rules: Vec<(Vec<Rule>, bool)> = match family {
        Family::Fail => calls(course)
            .into_iter()
            .map(|call| (vec![refused(call)], false))
            .collect(),
        Family::Repeat => repeated(course),
        Family::Crash => crashes(course),
        Family::Takeover => takeovers(course),
    };
    let plans = rules.into_iter();
    plans
        .map(|(rules, forgets)| (make(rules), forgets))
        .collect()
}

type CallTarget = (String, String);

fn calls(course: &ExpectedCourse) -> BTreeSet<CallTarget> {
    course.calls.iter().flatten().cloned().collect()
}

/// The external system always refuses the call.
fn refused(call: CallTarget) -> Rule {
    let fail = Action::Fail(Fault {
        code: 500,
        retry_after: None,
    });
    outside(Point::ExtBefore, call, Nth::Every(1), fail)
}

/// The end of the step is not recorded, or the answer is lost.
fn repeated(course: &ExpectedCourse) -> Vec<(Vec<Rule>, bool)> {
    let mut all = Vec::new();
    // Every second write records the end of an attempt; the last one records the end of the
    // operation.
    for number in (2..course.writes).step_by(2) {
        for point in [Point::WriteBefore, Point::WriteAfter] {
            let fail = Action::Fail(Fault {
                code: 500,
                retry_after: None,
            });
            all.push((vec![write(point, number, fail)], false));
        }
    }
    for call in calls(course) {
        let lost = Action::Fail(Fault {
            code: 504,
            retry_after: None,
        });
        let rule = outside(Point::ExtAfter, call, Nth::At(1), lost);
        all.push((vec![rule], false));
    }
    all
}

fn crashes(course: &ExpectedCourse) -> Vec<(Vec<Rule>, bool)> {
    let mut all = Vec::new();
    for number in 1..=course.writes {
        for point in [Point::WriteBefore, Point::WriteAfter] {
            all.push((vec![write(point, number, Action::Crash)], false));
        }
    }
    for call in calls(course) {
        for point in [Point::ExtBefore, Point::ExtAfter] {
            let rule = outside(point, call.clone(), Nth::At(1), Action::Crash);
            all.push((vec![rule], false));
        }
    }
    all
}

fn takeovers(course: &ExpectedCourse) -> Vec<(Vec<Rule>, bool)> {
    let mut all = Vec::new();
    for number in 1..course.writes {
        all.push((
            vec![write(
                Point::WriteBefore,
                number,
                Action::Pause(LEASE_EXPIRY_PAUSE),
            )],
            false,
        ));
    }
    for call in calls(course) {
        let rule = |point, action| outside(point, call.clone(), Nth::At(1), action);
        for point in [Point::ExtBefore, Point::ExtAfter] {
            all.push((vec![rule(point, Action::Pause(LEASE_EXPIRY_PAUSE))], false));
        }
        // The call is in flight while another process takes over, and arrives after that process's
        // call. Where keys are forgotten, only the fence distinguishes them.
        let late = rule(Point::ExtBefore, Action::Delay(TAKEOVER_DELAY));
        let stopped = rule(Point::ExtBefore, Action::Pause(LEASE_EXPIRY_PAUSE));
        all.push((vec![late, stopped], true));
    }
    all
}

fn write(point: Point, number: u32, action: Action) -> Rule {
    let filter = Filter {
        verb: Some(Verb::Update),
        kind: Some("operations/status".to_owned()),
        ..Filter::default()
    };
    rule(point, filter, Nth::At(number), action)
}

fn outside(point: Point, (call, target): CallTarget, nth: Nth, action: Action) -> Rule {
    let filter = Filter {
        name: Some(target),
        call: Some(call),
        ..Filter::default()
    };
    rule(point, filter, nth, action)
}

fn rule(point: Point, filter: Filter, nth: Nth, action: Action) -> Rule {
    Rule {
        point,
        filter,
        nth,
        actor: ActorFilter::Any,
        action,
    }
}
