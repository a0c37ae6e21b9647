//! Walks and start states of a controller, and of controllers with one defect each.

use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::ConfigMap};
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::Error,
    context::Context,
    controller::{ControllerOptions, Outcome},
    key::Key,
    manager::Component,
    watch::{Cache, WatchesStopped},
};
use neap_trial::{
    ClusterTemplate, Workload,
    generate::SeededRng,
    judge::Oracle,
    start_states::{StartState, StartStates},
    walk::{Schema, Subject},
};
use serde_json::{Value, json};

/// The defect of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    /// Surplus children stay.
    KeepsSurplus,
    /// It panics at an unusual declaration.
    Panics,
    /// It logs the spec, which contains a secret.
    LogsSpec,
}

/// Keeps as many ConfigMaps as a ReplicaSet has replicas.
fn maps(context: &Context, defect: Defect) -> Result<Vec<Component>, WatchesStopped> {
    let sets: Cache<ReplicaSet> = context.cache()?;
    let maps: Cache<ConfigMap> = context.cache()?;
    let controller = context.controller(ControllerOptions::new("maps"));
    let (one, two) = (controller.enqueuer(), controller.enqueuer());
    sets.subscribe(move |_| one.enqueue(Key::new("default", "web")));
    maps.subscribe(move |_| two.enqueue(Key::new("default", "web")));
    let (writer, known) = (context.writer("maps"), (sets.clone(), maps.clone()));
    let reconcile = move |key: Key| {
        let (sets, maps, writer) = (sets.clone(), maps.clone(), writer.clone());
        async move {
            let Some(set) = sets.get(&key) else {
                return Ok::<_, Error>(Outcome::Gone);
            };
            let spec = set.spec.clone().unwrap_or_default();
            let wait = spec.min_ready_seconds.unwrap_or_default();
            assert!(
                defect != Defect::Panics || wait < 1000,
                "who waits so long?"
            );
            if defect == Defect::LogsSpec {
                tracing::debug!(?spec, "looks");
            }
            let count = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or_default();
            let names: Vec<_> = (0..count).map(|number| format!("map-{number}")).collect();
            let there = maps.list("default");
            for name in &names {
                if !there.iter().any(|map| map.name_any() == *name) {
                    writer.create(&child(&set, name)).await?;
                }
            }
            let owned = there
                .iter()
                .filter(|map| !map.owner_references().is_empty());
            for surplus in owned.filter(|map| !names.contains(&map.name_any())) {
                if defect != Defect::KeepsSurplus {
                    writer.remove::<ConfigMap>(surplus, None).await?;
                }
            }
            Ok(Outcome::Done)
        }
    };
    Ok(vec![Component::new("maps", move |stop| async move {
        let known = async move {
            known.0.synced().await;
            known.1.synced().await;
        };
        controller.run_when(known, reconcile, stop).await;
    })])
}

fn child(set: &ReplicaSet, name: &str) -> ConfigMap {
    let object = json!({"metadata": {
        "name": name, "namespace": "default", "ownerReferences": [set.controller_owner_ref(&())],
    }});
    serde_json::from_value(object).unwrap()
}

fn workload(defect: Defect) -> Workload {
    Workload::new("maps").actor("controller", move |context| maps(context, defect))
}

fn web() -> Value {
    let container = json!({"name": "main", "image": "app"});
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    })
}

fn template() -> ClusterTemplate {
    ClusterTemplate::prepare_blocking().unwrap()
}

/// The violated oracles of the first chain.
fn walk_violations(defect: Defect) -> Vec<Oracle> {
    let subject = Subject {
        workload: workload(defect),
        object: web(),
        schema: Schema::built_in("io.k8s.api.apps.v1.ReplicaSet").unwrap(),
        afresh: true,
        leaves: None,
    };
    let report = subject.walk(0, 7, &template()).unwrap();
    assert!(report.changes > report.refused, "{report:?}");
    assert!(report.properties.iter().all(|(_, values)| *values >= 3));
    let found = report.violations.iter();
    found.map(|violation| violation.oracle).collect()
}

#[test]
fn a_walk_finds_what_stays_behind_and_what_panics() {
    assert_eq!(walk_violations(Defect::None), []);
    assert!(walk_violations(Defect::KeepsSurplus).contains(&Oracle::EndState));
    assert!(walk_violations(Defect::Panics).contains(&Oracle::Panic));
    assert!(walk_violations(Defect::LogsSpec).contains(&Oracle::Secret));
}

fn make(rng: &mut SeededRng) -> StartState {
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": true,
        "uid": "@/apis/apps/v1/namespaces/default/replicasets/web",
    });
    let map = |number: usize| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("map-{number}"), "namespace": "default", "ownerReferences": [owner]},
        })
    };
    StartState {
        declared: vec![web()],
        leftovers: (0..4).filter(|_| rng.below(2) == 0).map(map).collect(),
    }
}

fn starts(defect: Defect) -> StartStates {
    StartStates::new(workload(defect), make)
}

/// The number of start states, of twenty, that fail.
fn failing_start_states(defect: Defect) -> usize {
    let starts = starts(defect);
    let template = template();
    let clean = starts.clean(&starts.number(0, 7), 7, &template).unwrap();
    assert_eq!(clean.violations, []);
    let wrong = (0..20).filter(|number| {
        let start = starts.number(*number, 7);
        let found = starts.play(&start, &clean.end, 7, &template).unwrap();
        !found.is_empty()
    });
    wrong.count()
}

#[test]
fn start_states_come_to_what_a_clean_start_comes_to() {
    assert_eq!(failing_start_states(Defect::None), 0);
    assert!(failing_start_states(Defect::KeepsSurplus) > 5);
}

#[test]
fn a_failing_clean_start_is_reported() {
    let starts = starts(Defect::LogsSpec);
    let clean = starts.clean(&starts.number(0, 7), 7, &template()).unwrap();
    let found: Vec<_> = clean.violations.iter().map(ToString::to_string).collect();
    assert!(
        found[0].starts_with("O13 a clean start goes wrong: a log line"),
        "{found:?}"
    );
}
