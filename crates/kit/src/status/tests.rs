use super::*;

const GENERATION: Option<i64> = Some(3);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn ready(truth: Truth, message: &str) -> Statement {
    Statement::new("Ready", truth, "Tested", message)
}

#[test]
fn a_time_moves_with_the_status_and_not_with_the_message() {
    let first = conditions(&[], &[ready(Truth::False, "one")], GENERATION, at(10));
    let same = conditions(&first, &[ready(Truth::False, "two")], Some(4), at(20));
    assert_eq!(same[0].last_transition_time.0, at(10));
    assert_eq!(
        (same[0].message.as_str(), same[0].observed_generation),
        ("two", Some(4))
    );
    let turned = conditions(&same, &[ready(Truth::True, "two")], Some(4), at(30));
    assert_eq!(turned[0].last_transition_time.0, at(30));
}

#[test]
fn saying_the_same_again_changes_nothing() {
    let statements = Standing::Ready("Served", "all is well".into()).statements();
    let first = conditions(
        &[],
        &statements,
        GENERATION,
        "2026-01-01T00:00:00.5Z".parse().unwrap(),
    );
    let again = conditions(&first, &statements, GENERATION, at(99));
    assert_eq!(first, again);
    assert_eq!(first[0].last_transition_time.0.subsec_nanosecond(), 0);
}

#[test]
fn conditions_of_others_stay() {
    let others = conditions(
        &[],
        &[Statement::new("Approved", Truth::True, "Asked", "")],
        None,
        at(1),
    );
    let both = conditions(&others, &[ready(Truth::True, "")], GENERATION, at(2));
    assert_eq!(both[0], others[0]);
    assert_eq!(both[1].type_, "Ready");
}

#[test]
fn one_of_three_is_true() {
    let reason = "Because";
    for (standing, truths) in [
        (Standing::Ready(reason, String::new()), [true, false, false]),
        (
            Standing::Reconciling(reason, String::new()),
            [false, true, false],
        ),
        (
            Standing::Stalled(reason, String::new()),
            [false, false, true],
        ),
    ] {
        let statements = standing.statements();
        assert_eq!(
            statements.map(|statement| statement.truth == Truth::True),
            truths
        );
    }
}
