use super::*;

const WRITE: Action = Action::Write {
    expected: None,
    other_preconditions: false,
};

fn update(expected: u64) -> Action {
    Action::Write {
        expected: Some(expected),
        other_preconditions: false,
    }
}

const DELETE: Action = Action::Delete {
    expected: None,
    other_preconditions: false,
};

fn operation(called: u64, answered: u64, action: Action, outcome: Outcome) -> Operation {
    Operation {
        action,
        outcome,
        content: None,
        called,
        answered,
    }
}

/// Each operation starts after the one before has ended.
fn in_turn(operations: &[(Action, Outcome)]) -> Vec<Operation> {
    let numbered = (0..).zip(operations);
    numbered
        .map(|(at, (action, outcome))| operation(at * 2, at * 2 + 1, *action, *outcome))
        .collect()
}

fn holds(operations: &[Operation]) -> bool {
    let mut record = OperationLog::default();
    for operation in operations {
        record.push(("/configmaps".into(), "d/x".into()), *operation);
    }
    record.check(None).violations.is_empty()
}

use Action::{Create, Get};
use Outcome::{Conflict, Created, Exists, Found, Gone, NotFound, Unknown, Written};

#[test]
fn an_object_lives_and_dies() {
    assert!(holds(&in_turn(&[
        (Get, NotFound),
        (Create, Created(4)),
        (Create, Exists),
        (Get, Found(4)),
        (update(4), Written(6)),
        (update(4), Conflict),
        (WRITE, Written(6)),
        (WRITE, Written(9)),
        (DELETE, Gone),
        (DELETE, NotFound),
        (update(9), NotFound),
        (Create, Created(12)),
    ])));
}

#[test]
fn impossible_histories_are_caught() {
    for (name, operations) in [
        (
            "a stale read",
            in_turn(&[(Create, Created(1)), (WRITE, Written(2)), (Get, Found(1))]),
        ),
        (
            "a lost update",
            in_turn(&[
                (Create, Created(1)),
                (update(1), Written(2)),
                (update(1), Written(3)),
            ]),
        ),
        (
            "a lost create",
            in_turn(&[(Create, Created(1)), (Get, NotFound)]),
        ),
        (
            "two creates",
            in_turn(&[(Create, Created(1)), (Create, Created(2))]),
        ),
        (
            "a ghost",
            in_turn(&[(Create, Created(1)), (DELETE, Gone), (Get, Found(1))]),
        ),
        (
            "a revision that goes back",
            in_turn(&[(Create, Created(5)), (WRITE, Written(3))]),
        ),
        (
            "a conflict without another write",
            in_turn(&[(Create, Created(1)), (update(1), Conflict)]),
        ),
        (
            "a conflict too soon",
            vec![
                operation(0, 1, Create, Created(1)),
                operation(2, 9, update(1), Written(2)),
                operation(3, 4, update(1), Conflict),
                operation(5, 6, Get, Found(1)),
            ],
        ),
        (
            "a read that goes back while a write is under way",
            vec![
                operation(0, 1, Create, Created(1)),
                operation(2, 9, WRITE, Written(2)),
                operation(3, 4, Get, Found(2)),
                operation(5, 6, Get, Found(1)),
            ],
        ),
        (
            "a read of what was never written",
            in_turn(&[(Create, Created(1)), (Get, Found(2))]),
        ),
    ] {
        assert!(!holds(&operations), "{name}");
    }
}

#[test]
fn what_overlaps_may_be_ordered_either_way() {
    for read in [Found(1), Found(2)] {
        assert!(holds(&[
            operation(0, 1, Create, Created(1)),
            operation(2, 9, WRITE, Written(2)),
            operation(3, 4, Get, read),
        ]));
    }
}

#[test]
fn a_lost_answer_may_or_may_not_have_happened() {
    let lost = |action| operation(2, u64::MAX, action, Unknown);
    for (action, reads, possible) in [
        (WRITE, vec![Found(1)], true),
        (WRITE, vec![Found(5)], true),
        (WRITE, vec![Found(1), Found(5)], true),
        (WRITE, vec![Found(5), Found(1)], false),
        (WRITE, vec![Found(5), Found(6)], false),
        (WRITE, vec![NotFound, Found(5)], false),
        (DELETE, vec![Found(5)], true),
        (DELETE, vec![Found(1), NotFound], true),
        (DELETE, vec![NotFound, Found(1)], false),
        (Create, vec![NotFound], false),
        (Get, vec![NotFound], false),
    ] {
        let mut operations = vec![operation(0, 1, Create, Created(1)), lost(action)];
        operations.extend((0..).zip(&reads).map(|(i, read)| {
            let at = 10 + i * 2;
            operation(at, at + 1, Get, *read)
        }));
        assert_eq!(holds(&operations), possible, "{action:?} {reads:?}");
    }
}

#[test]
fn a_lost_write_does_not_explain_what_was_created_later() {
    assert!(!holds(&[
        operation(0, 1, Create, Created(1)),
        operation(2, u64::MAX, WRITE, Unknown),
        operation(3, 4, Get, Found(7)),
        operation(5, 6, DELETE, Gone),
        operation(7, 8, Create, Created(7)),
    ]));
}

#[test]
fn one_revision_says_one_thing() {
    let mut operations = in_turn(&[(Create, Created(1)), (Get, Found(1)), (Get, Found(1))]);
    operations[0].content = Some((0, 7));
    operations[1].content = Some((0, 7));
    assert!(holds(&operations));
    operations[2].content = Some((0, 8));
    assert!(!holds(&operations));
    operations[2].content = Some((1, 8));
    assert!(holds(&operations), "another version may look different");
}

/// Eight clients with overlapping operations, answered as by a correct server.
fn busy(operations: u64) -> Vec<Operation> {
    let mut revision = 1;
    let mut all = vec![operation(0, 1, Create, Created(1))];
    for i in 1..operations {
        let moment = i * 10;
        let (action, outcome) = match i % 4 {
            0 => {
                revision += 1;
                (WRITE, Written(revision))
            }
            1 => {
                revision += 1;
                (update(revision - 1), Written(revision))
            }
            2 => (update(revision + 1000), Conflict),
            _ => (Get, Found(revision)),
        };
        let spread = 5 + (i * 7919) % 35;
        let called = moment.saturating_sub(spread);
        all.push(operation(called.max(2), moment + spread, action, outcome));
    }
    all
}

#[test]
fn a_hundred_thousand_operations_are_no_burden() {
    assert!(holds(&busy(100_000)));
    let mut wrong = busy(20_000);
    let last = wrong.len() - 1;
    wrong[last].outcome = Found(3);
    wrong[last].action = Get;
    assert!(!holds(&wrong));
}
