use std::time::Duration;

use super::*;
use crate::{
    Call, EntryKind, UserRequest,
    judge::Oracle,
    plan::{Verb, parse},
};

const PLAN: &str = "
plan large
workload web seed 1
on write.before verb=delete kind=pods name=c #9 for one do conflict x 5
on watch.event verb=watch kind=pods name=b #2 for one do delay 8s
on write.before verb=create kind=pods name=a #1 for one do crash
";

fn delete(name: &str) -> TraceEntry {
    TraceEntry {
        at: Duration::ZERO,
        actor: "one".to_owned(),
        call: Call {
            verb: Verb::Delete,
            group: String::new(),
            kind: "pods".to_owned(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
            any_age: false,
            after: None,
        },
        kind: EntryKind::Request,
    }
}

fn steps(workload: &Workload) -> Vec<&str> {
    workload.steps.iter().map(|step| &*step.name).collect()
}

/// Fails when a delete is refused in the third step, which needs the first.
fn wrong(workload: &Workload, plan: &Plan) -> bool {
    let refused = |rule: &Rule| rule.to_string().contains("delete");
    steps(workload).contains(&"third") && plan.rules.iter().any(refused)
}

#[test]
fn one_rule_two_steps_and_small_numbers_are_left() {
    let mut workload = Workload::new("web");
    for name in ["first", "second", "third", "fourth"] {
        workload = workload.step(name, Vec::<UserRequest>::new());
    }
    let violation = Violation {
        oracle: Oracle::EndState,
        kind: "pods".to_owned(),
        text: String::new(),
    };
    let case = Case {
        workload,
        plan: parse(PLAN).unwrap().remove(0),
    };
    let small = shrink(case, &violation, 500, |workload, draft| {
        if !steps(workload).contains(&"first") {
            return Vec::new();
        }
        // With fewer steps there are fewer deletes, and different ones.
        let plans = draft(&[delete("d"), delete("e"), delete("e")]);
        let judged = plans.into_iter().map(|plan| {
            let violations = vec![violation.clone(); usize::from(wrong(workload, &plan))];
            (plan, violations)
        });
        judged.collect()
    });
    assert_eq!(steps(&small.workload), ["first", "third"]);
    let [rule] = &small.plan.rules[..] else {
        panic!("{}", small.plan);
    };
    assert_eq!(
        rule.to_string(),
        "on write.before verb=delete kind=pods name=d #1 for one do conflict x 1"
    );
}
