use neap_kit::operation::Phase;

use super::*;

fn component(name: &str, progress: ComponentProgress) -> RolloutComponent {
    RolloutComponent {
        name: name.to_owned(),
        revision: "1".to_owned(),
        progress,
        replaces: true,
        owner: OwnerReference {
            api_version: "buildbarn.io/v1alpha1".to_owned(),
            kind: "BuildbarnStorage".to_owned(),
            name: name.to_owned(),
            uid: name.to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        },
    }
}

fn running() -> ComponentProgress {
    ComponentProgress::Running("new pods start".to_owned())
}

/// The operations of a cluster.
struct History {
    farm: Key,
    operations: Vec<Operation>,
    seconds: i64,
}

impl History {
    fn new() -> Self {
        Self {
            farm: Key::new("buildbarn", ""),
            operations: Vec::new(),
            seconds: 0,
        }
    }

    /// Decides, and does what was decided. Returns the number of writes.
    fn found(&mut self, target: &str, components: &[(&str, ComponentProgress)]) -> usize {
        self.seconds += 10;
        let components = components.iter();
        let record = decide(&RolloutFacts {
            farm: &self.farm,
            operations: Some(&self.operations),
            components: components
                .map(|(name, progress)| RolloutComponent {
                    revision: target.to_owned(),
                    ..component(name, progress.clone())
                })
                .collect(),
            now: Timestamp::from_second(self.seconds).unwrap(),
        });
        let writes = record.updates.len() + record.forgotten.len();
        for (before, after) in record.updates {
            let at = self.operations.iter().position(|it| *it == before);
            self.operations[at.unwrap()] = after;
        }
        let forgotten: Vec<_> = record.forgotten.iter().map(|it| it.key.clone()).collect();
        self.operations
            .retain(|it| !forgotten.contains(&Key::of(it)));
        let begins = usize::from(record.begins.is_some());
        self.operations.extend(record.begins);
        writes + begins
    }

    fn last(&self) -> (String, Phase, Vec<(String, StepState)>) {
        let operation = self.operations.last().unwrap();
        let status = operation.status.clone().unwrap_or_default();
        let steps = status.steps.into_iter();
        let steps = steps.map(|step| (step.name, step.state)).collect();
        (operation.name_any(), status.phase, steps)
    }
}

#[test]
fn a_roll_out_is_one_operation_from_its_first_component_to_its_last() {
    use ComponentProgress::{Pending, Settled};
    let mut history = History::new();
    assert_eq!(history.found("a", &[("storage", Settled)]), 0);
    let begin = [
        ("storage", running()),
        ("worker", Pending),
        ("browser", Settled),
    ];
    assert_eq!(history.found("b", &begin), 1);
    assert_eq!(history.operations[0].spec.steps, ["storage", "worker"]);
    assert_eq!(
        history.last(),
        ("rollout-1".to_owned(), Phase::Pending, vec![])
    );
    assert_eq!(history.found("b", &begin), 1);
    assert_eq!(history.found("b", &begin), 0, "nothing has changed");
    let storage = |state| ("storage".to_owned(), state);
    let (_, phase, steps) = history.last();
    assert_eq!(
        (phase, steps),
        (Phase::Running, vec![storage(StepState::Running)])
    );
    let next = [
        ("storage", Settled),
        ("worker", running()),
        ("browser", Settled),
    ];
    assert_eq!(history.found("b", &next), 1);
    let end = [
        ("storage", Settled),
        ("worker", Settled),
        ("browser", Settled),
    ];
    assert_eq!(history.found("b", &end), 1);
    let (_, phase, steps) = history.last();
    let worker = ("worker".to_owned(), StepState::Succeeded);
    assert_eq!(phase, Phase::Succeeded);
    assert_eq!(steps, [storage(StepState::Succeeded), worker]);
    assert_eq!(history.found("b", &end), 0);
    let times: Vec<_> = history.operations[0].timeline().steps;
    assert_eq!(times[0].ended, Some(times[1].began));
    assert!(times[0].began < times[1].began);
}

#[test]
fn a_failure_names_the_component_and_the_reason_and_the_next_change_is_another_operation() {
    use ComponentProgress::{Failed, Pending, Settled};
    let mut history = History::new();
    history.found("b", &[("storage", running()), ("worker", Pending)]);
    history.found("b", &[("storage", running()), ("worker", Pending)]);
    let failed = Failed("0 of 2 pods are ready".to_owned());
    let stopped = [("storage", failed), ("worker", Pending)];
    assert_eq!(history.found("b", &stopped), 1);
    assert_eq!(history.found("b", &stopped), 0, "it stays so");
    let first = history.operations[0].status.clone().unwrap();
    assert_eq!(
        (first.phase, first.step.as_deref()),
        (Phase::Failed, Some("storage"))
    );
    assert_eq!(first.cause.unwrap().message, "0 of 2 pods are ready");
    assert_eq!(history.operations[0].timeline().steps.len(), 1);
    history.found("c", &[("storage", running()), ("worker", Pending)]);
    history.found("c", &[("storage", Settled), ("worker", Settled)]);
    assert_eq!(history.last().1, Phase::Succeeded);
}

#[test]
fn a_change_during_a_roll_out_ends_it_and_begins_another() {
    use ComponentProgress::{Pending, Settled};
    let mut history = History::new();
    history.found("b", &[("storage", running()), ("worker", Pending)]);
    history.found("b", &[("storage", running()), ("worker", Pending)]);
    assert_eq!(
        history.found("c", &[("storage", running()), ("worker", Pending)]),
        2
    );
    let first = history.operations[0].status.clone().unwrap();
    assert_eq!(first.phase, Phase::Cancelled);
    assert_eq!(history.last().0, "rollout-2");
    history.found("c", &[("storage", Settled), ("worker", Settled)]);
    assert_eq!(history.last().1, Phase::Succeeded);
}

#[test]
fn a_component_that_is_deleted_does_not_end_the_roll_out_of_the_others() {
    use ComponentProgress::{Pending, Settled};
    let mut history = History::new();
    history.found("b", &[("storage", running()), ("worker", Pending)]);
    history.found("b", &[("storage", running()), ("worker", Pending)]);
    assert_eq!(history.found("b", &[("storage", running())]), 1);
    history.found("b", &[("storage", Settled)]);
    let (name, phase, steps) = history.last();
    assert_eq!((&*name, phase), ("rollout-1", Phase::Succeeded));
    assert!(steps.contains(&("worker".to_owned(), StepState::Skipped)));
}

#[test]
fn a_new_farm_and_pods_that_restart_are_no_roll_outs() {
    let facts = |progress, replaces| {
        RolloutFacts {
            farm: &Key::new("buildbarn", "ci"),
            operations: Some(&[]),
            components: vec![RolloutComponent {
                replaces,
                ..component("storage", progress)
            }],
            now: Timestamp::UNIX_EPOCH,
        }
        .begins_name()
    };
    assert_eq!(facts(running(), false), None);
    assert_eq!(facts(ComponentProgress::Settled, true), None);
    assert_eq!(facts(running(), true).as_deref(), Some("ci-rollout-1"));
}

#[test]
fn only_the_last_operations_are_kept() {
    use ComponentProgress::Settled;
    let mut history = History::new();
    for number in 0..9 {
        let target = format!("{number}");
        history.found(&target, &[("storage", running())]);
        history.found(&target, &[("storage", Settled)]);
    }
    history.found("8", &[("storage", Settled)]);
    let names: Vec<_> = history
        .operations
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    assert_eq!(
        names,
        [
            "rollout-5",
            "rollout-6",
            "rollout-7",
            "rollout-8",
            "rollout-9"
        ]
    );
}

impl RolloutFacts<'_> {
    fn begins_name(&self) -> Option<String> {
        decide(self).begins.map(|it| it.name_any())
    }
}
