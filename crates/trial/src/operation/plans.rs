//! The plans of each family.

use std::{collections::BTreeSet, time::Duration};

use super::{Family, NAME, expect::Course};
use crate::{
    generate::plan,
    plan::{Action, Fault, Filter, Nth, Plan, Point, Rule, Verb, Who},
};

/// Longer than a Lease lasts.
const LONG: Duration = Duration::from_secs(40);
/// Longer than it takes another to go on meanwhile.
const LONGER: Duration = Duration::from_secs(70);

/// The plans, and for each whether the system outside knows what it has done by its key.
pub(super) fn of(family: Family, course: &Course, seed: u64) -> Vec<(Plan, bool)> {
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

type Called = (String, String);

fn calls(course: &Course) -> BTreeSet<Called> {
    course.asked.iter().flatten().cloned().collect()
}

/// Whoever is asked for it says no, for ever.
fn refused(call: Called) -> Rule {
    let fail = Action::Fail(Fault {
        code: 500,
        retry_after: None,
    });
    outside(Point::ExtBefore, call, Nth::Every(1), fail)
}

/// What was done is not written down, or nobody hears that it was.
fn repeated(course: &Course) -> Vec<(Vec<Rule>, bool)> {
    let mut all = Vec::new();
    // Every second write is that of an attempt that has ended; the last is that of the end.
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

fn crashes(course: &Course) -> Vec<(Vec<Rule>, bool)> {
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

fn takeovers(course: &Course) -> Vec<(Vec<Rule>, bool)> {
    let mut all = Vec::new();
    for number in 1..course.writes {
        all.push((
            vec![write(Point::WriteBefore, number, Action::Pause(LONG))],
            false,
        ));
    }
    for call in calls(course) {
        let rule = |point, action| outside(point, call.clone(), Nth::At(1), action);
        for point in [Point::ExtBefore, Point::ExtAfter] {
            all.push((vec![rule(point, Action::Pause(LONG))], false));
        }
        // Its request is on the way while another goes on, and arrives after that one's: only the
        // fence tells them apart where keys are forgotten.
        let late = rule(Point::ExtBefore, Action::Delay(LONGER));
        let stopped = rule(Point::ExtBefore, Action::Pause(LONG));
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

fn outside(point: Point, (call, thing): Called, nth: Nth, action: Action) -> Rule {
    let filter = Filter {
        name: Some(thing),
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
        actor: Who::Any,
        action,
    }
}
