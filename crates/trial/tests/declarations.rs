//! A controller whose declaration is walked through and that begins anywhere, and one that is wrong.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::ConfigMap};
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::Error,
    controller::{Options, Outcome},
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended},
};
use neap_trial::{
    Ground, Workload,
    generate::Chance,
    judge::Oracle,
    starts::{Start, Starts},
    walk::{Schema, Subject},
};
use serde_json::{Value, json};

/// What a controller does about children that are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Care {
    Removes,
    /// A mistake.
    Forgets,
    /// Another, which only a strange declaration shows.
    Panics,
    /// It says what it was told in confidence.
    Tells,
}

/// Keeps as many ConfigMaps as a ReplicaSet has replicas.
fn maps(site: &Site, care: Care) -> Result<Vec<Service>, Ended> {
    let sets: Cache<ReplicaSet> = site.all()?;
    let maps: Cache<ConfigMap> = site.all()?;
    let controller = site.controller(Options::new("maps"));
    let (one, two) = (controller.trigger(), controller.trigger());
    sets.follow(move |_| one.changed(Key::new("default", "web")));
    maps.follow(move |_| two.changed(Key::new("default", "web")));
    let (hand, known) = (site.hand("maps"), (sets.clone(), maps.clone()));
    let reconcile = move |key: Key| {
        let (sets, maps, hand) = (sets.clone(), maps.clone(), hand.clone());
        async move {
            let Some(set) = sets.get(&key) else {
                return Ok::<_, Error>(Outcome::Gone);
            };
            let spec = set.spec.clone().unwrap_or_default();
            let wait = spec.min_ready_seconds.unwrap_or_default();
            assert!(care != Care::Panics || wait < 1000, "who waits so long?");
            if care == Care::Tells {
                tracing::debug!(?spec, "looks");
            }
            let count = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or_default();
            let names: Vec<_> = (0..count).map(|number| format!("map-{number}")).collect();
            let there = maps.list("default");
            for name in &names {
                if !there.iter().any(|map| map.name_any() == *name) {
                    hand.create(&child(&set, name)).await?;
                }
            }
            let owned = there
                .iter()
                .filter(|map| !map.owner_references().is_empty());
            for surplus in owned.filter(|map| !names.contains(&map.name_any())) {
                if care != Care::Forgets {
                    hand.remove::<ConfigMap>(surplus, None).await?;
                }
            }
            Ok(Outcome::Settled)
        }
    };
    Ok(vec![Service::new("maps", move |stop| async move {
        let known = async move {
            known.0.synced().await;
            known.1.synced().await;
        };
        controller.run_once_known(known, reconcile, stop).await;
    })])
}

fn child(set: &ReplicaSet, name: &str) -> ConfigMap {
    let object = json!({"metadata": {
        "name": name, "namespace": "default", "ownerReferences": [set.controller_owner_ref(&())],
    }});
    serde_json::from_value(object).unwrap()
}

fn workload(care: Care) -> Workload {
    Workload::new("maps").actor("controller", move |site| maps(site, care))
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

fn ground() -> Ground {
    Ground::ready().unwrap()
}

/// What the first chain finds.
fn walked(care: Care) -> Vec<Oracle> {
    let subject = Subject {
        workload: workload(care),
        object: web(),
        schema: Schema::built_in("io.k8s.api.apps.v1.ReplicaSet").unwrap(),
        afresh: true,
        leaves: None,
    };
    let walked = subject.walk(0, 7, &ground()).unwrap();
    assert!(walked.changes > walked.refused, "{walked:?}");
    assert!(walked.properties.iter().all(|(_, values)| *values >= 3));
    let found = walked.violations.iter();
    found.map(|violation| violation.oracle).collect()
}

#[test]
fn a_walk_finds_what_stays_behind_and_what_panics() {
    assert_eq!(walked(Care::Removes), []);
    assert!(walked(Care::Forgets).contains(&Oracle::EndState));
    assert!(walked(Care::Panics).contains(&Oracle::Panic));
    assert!(walked(Care::Tells).contains(&Oracle::Secret));
}

fn make(chance: &mut Chance) -> Start {
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
    Start {
        declared: vec![web()],
        remains: (0..4).filter(|_| chance.below(2) == 0).map(map).collect(),
    }
}

fn starts(care: Care) -> Starts {
    Starts::new(workload(care), make)
}

/// How many of twenty start states go wrong.
fn started(care: Care) -> usize {
    let starts = starts(care);
    let ground = ground();
    let clean = starts.clean(&starts.number(0, 7), 7, &ground).unwrap();
    assert_eq!(clean.violations, []);
    let wrong = (0..20).filter(|number| {
        let start = starts.number(*number, 7);
        let found = starts.play(&start, &clean.end, 7, &ground).unwrap();
        !found.is_empty()
    });
    wrong.count()
}

#[test]
fn start_states_come_to_what_a_clean_start_comes_to() {
    assert_eq!(started(Care::Removes), 0);
    assert!(started(Care::Forgets) > 5);
}

#[test]
fn a_clean_start_that_goes_wrong_is_told_of() {
    let starts = starts(Care::Tells);
    let clean = starts.clean(&starts.number(0, 7), 7, &ground()).unwrap();
    let found: Vec<_> = clean.violations.iter().map(ToString::to_string).collect();
    assert!(
        found[0].starts_with("O13 a clean start goes wrong: a log line"),
        "{found:?}"
    );
}
