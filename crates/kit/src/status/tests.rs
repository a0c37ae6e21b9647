use super::*;

const GENERATION: Option<i64> = Some(3);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn ready(status: ConditionStatus, message: &str) -> ConditionUpdate {
    ConditionUpdate::new("Ready", status, "Tested", message)
}

#[test]
fn the_transition_time_changes_with_the_status_and_not_with_the_message() {
    let first = updated_conditions(
        &[],
        &[ready(ConditionStatus::False, "one")],
        GENERATION,
        at(10),
    );
    let same = updated_conditions(
        &first,
        &[ready(ConditionStatus::False, "two")],
        Some(4),
        at(20),
    );
    assert_eq!(same[0].last_transition_time.0, at(10));
    assert_eq!(
        (same[0].message.as_str(), same[0].observed_generation),
        ("two", Some(4))
    );
    let turned = updated_conditions(
        &same,
        &[ready(ConditionStatus::True, "two")],
        Some(4),
        at(30),
    );
    assert_eq!(turned[0].last_transition_time.0, at(30));
}

#[test]
fn applying_the_same_update_again_changes_nothing() {
    let condition_updates = Readiness::Ready("Served", "all is well".into()).condition_updates();
    let first = updated_conditions(
        &[],
        &condition_updates,
        GENERATION,
        "2026-01-01T00:00:00.5Z".parse().unwrap(),
    );
    let again = updated_conditions(&first, &condition_updates, GENERATION, at(99));
    assert_eq!(first, again);
    assert_eq!(first[0].last_transition_time.0.subsec_nanosecond(), 0);
}

#[test]
fn conditions_of_other_types_stay() {
    let others = updated_conditions(
        &[],
        &[ConditionUpdate::new(
            "Approved",
            ConditionStatus::True,
            "Tested",
            "",
        )],
        None,
        at(1),
    );
    let both = updated_conditions(
        &others,
        &[ready(ConditionStatus::True, "")],
        GENERATION,
        at(2),
    );
    assert_eq!(both[0], others[0]);
    assert_eq!(both[1].type_, "Ready");
}

#[test]
fn exactly_one_of_the_three_conditions_is_true() {
    let reason = "Because";
    for (readiness, expected) in [
        (
            Readiness::Ready(reason, String::new()),
            [true, false, false],
        ),
        (
            Readiness::Reconciling(reason, String::new()),
            [false, true, false],
        ),
        (
            Readiness::Stalled(reason, String::new()),
            [false, false, true],
        ),
    ] {
        let condition_updates = readiness.condition_updates();
        assert_eq!(
            condition_updates.map(|update| update.status == ConditionStatus::True),
            expected
        );
    }
}
