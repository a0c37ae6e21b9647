//! What one user asks for does not keep others waiting, and what is too large is refused before anything is
//! written.

use std::{collections::BTreeMap, sync::Arc};

use futures::future::BoxFuture;
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::{ConfigMap, ResourceQuota},
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{SECOND, cluster::TestCluster, stand_ins::InProcess};
use crate::{
    api::{
        BuildbarnBrowser, BuildbarnFrontend, BuildbarnScheduler, BuildbarnStorage, BuildbarnWorker,
        MAX_SHARDS, State,
    },
    farm::{Component, settings, validate},
    jsonnet::{Evaluate, EvaluationError},
};

/// Evaluates in the test's own process, except texts with the word `endless`: those never end.
#[derive(Debug, Default)]
struct Stuck {
    asked: Mutex<Vec<String>>,
}

impl Evaluate for Stuck {
    fn evaluate<'a>(
        &'a self,
        files: &'a BTreeMap<String, String>,
        main: &'a str,
        variables: &'a BTreeMap<String, String>,
    ) -> BoxFuture<'a, Result<Value, EvaluationError>> {
        self.asked.lock().push(main.to_owned());
        if files.values().any(|text| text.contains("endless")) {
            return Box::pin(std::future::pending());
        }
        InProcess.evaluate(files, main, variables)
    }
}

#[tokio::test(start_paused = true)]
async fn configurations_that_never_end_delay_no_other_farm() {
    let cluster = TestCluster::evaluated_by(Arc::new(Stuck::default())).await;
    // More farms than reconciles at a time.
    for number in 0..20 {
        let (name, map) = (format!("b{number}"), format!("m{number}"));
        let data = json!({"browser.jsonnet": "endless"});
        let map = json!({"metadata": {"name": map}, "data": data});
        let browser = json!({
            "metadata": {"name": name, "labels": {"buildbarn.io/farm": name}},
            "spec": {"configMapName": map["metadata"]["name"]},
        });
        cluster.put_config_map(map).await;
        cluster.create::<BuildbarnBrowser>(browser).await;
    }
    cluster.pass(SECOND * 2).await;
    assert_eq!(
        cluster.reason::<BuildbarnBrowser>("b0").await,
        "EvaluatingConfiguration"
    );
    cluster.farm().await;
    cluster.pass(SECOND * 2).await;
    cluster.pods_are_ready().await;
    cluster.pass(SECOND * 2).await;
    assert_eq!(cluster.reason::<BuildbarnStorage>("storage").await, "Ready");
}

#[tokio::test(start_paused = true)]
async fn a_farm_with_absurdly_many_shards_is_refused_before_anything_is_rendered() {
    let cluster = TestCluster::ready().await;
    let many = json!({"spec": {"replicas": MAX_SHARDS + 1}});
    assert!(cluster.refuses::<BuildbarnStorage>("storage", many).await);
    let workers = json!({"spec": {"replicas": 100_000}});
    assert!(
        cluster
            .refuses::<BuildbarnWorker>("ubuntu22-04", workers)
            .await
    );
    // One that was stored before the definition had the limit.
    let object = json!({
        "metadata": {"name": "storage", "namespace": "default"}, "spec": {"replicas": 2_147_483_647},
    });
    let storage: BuildbarnStorage = serde_json::from_value(object).unwrap();
    let farm = [Component::from(&storage)];
    let problem = validate::problem(&farm[0], &farm).unwrap();
    assert_eq!(problem.reason, "TooManyReplicas");
    let shards = settings::settings(&farm).unwrap().storage.shards.len();
    assert_eq!(i32::try_from(shards), Ok(MAX_SHARDS));
}

#[test]
fn an_image_without_a_name_is_refused_with_its_field() {
    let metadata = json!({"metadata": {"name": "one", "namespace": "default"}});
    let problem = |component: Component| validate::problem(&component, &[]).unwrap();
    for image in ["", " "] {
        let mut object = metadata.clone();
        object["spec"] = json!({"image": image});
        let browser: BuildbarnBrowser = serde_json::from_value(object.clone()).unwrap();
        let frontend: BuildbarnFrontend = serde_json::from_value(object).unwrap();
        for component in [Component::from(&browser), Component::from(&frontend)] {
            let found = problem(component);
            assert_eq!(found.reason, "InvalidImage");
            assert!(
                found.message.starts_with("spec.image is empty"),
                "{found:?}"
            );
        }
    }
    for field in ["image", "runnerImage", "runnerInstallerImage"] {
        let mut object = metadata.clone();
        object["spec"] = json!({field: ""});
        let worker: BuildbarnWorker = serde_json::from_value(object).unwrap();
        let message = problem(Component::from(&worker)).message;
        assert!(
            message.contains(&format!("spec.{field} is empty")),
            "{message}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_no_config_map_can_hold_is_a_finding_and_creates_no_workload() {
    let cluster = TestCluster::open().await;
    cluster.farm().await;
    let shards = |length: usize| -> Vec<Value> {
        let key = |number: i32| format!("{number}{}", "k".repeat(length));
        (0..400).map(|it| json!({"key": key(it)})).collect()
    };
    let storage = json!({
        "metadata": {"name": "big", "labels": {"buildbarn.io/farm": "big"}},
        "spec": {"replicas": 400, "shards": shards(1000)},
    });
    cluster.create::<BuildbarnStorage>(storage).await;
    let frontend = json!({
        "metadata": {"name": "big-frontend", "labels": {"buildbarn.io/farm": "big"}}, "spec": {},
    });
    cluster.create::<BuildbarnFrontend>(frontend).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(
        cluster.reason::<BuildbarnFrontend>("big-frontend").await,
        "ConfigTooLarge"
    );
    assert!(cluster.get::<Deployment>("big-frontend").await.is_none());
    let maps = cluster.list::<ConfigMap>().await;
    let rendered = maps.iter().filter_map(|it| it.metadata.name.as_deref());
    assert_eq!(rendered.filter(|it| it.contains("big-frontend")).count(), 0);
    assert!(cluster.get::<StatefulSet>("storage").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_workload_is_not_created_before_its_config_map() {
    let cluster = TestCluster::open().await;
    let quota = json!({"metadata": {"name": "none"}, "spec": {"hard": {"configmaps": "0"}}});
    cluster.create::<ResourceQuota>(quota).await;
    cluster.pass(SECOND * 10).await;
    cluster.farm().await;
    cluster.pass(SECOND * 10).await;
    assert_eq!(cluster.list::<ConfigMap>().await.len(), 0);
    assert_eq!(cluster.list::<StatefulSet>().await.len(), 0);
    assert_eq!(cluster.list::<Deployment>().await.len(), 0);
    assert_eq!(
        cluster.reason::<BuildbarnStorage>("storage").await,
        "WriteRefused"
    );
    // Once it is there, the workload is.
    cluster.remove::<ResourceQuota>("none").await;
    cluster.pass(SECOND * 600).await;
    assert_eq!(cluster.list::<StatefulSet>().await.len(), 1);
    assert_eq!(cluster.list::<Deployment>().await.len(), 4);
}

/// The YAML of a page of the documentation.
fn yaml_of(page: &str) -> Vec<Value> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/farm/");
    let text = std::fs::read_to_string(format!("{folder}{page}")).unwrap();
    let blocks = text.split("```yaml\n").skip(1);
    let blocks = blocks.filter_map(|it| it.split("```").next());
    blocks
        .flat_map(|it| serde_saphyr::from_multiple::<Value>(it).unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_smallest_farm_of_the_documentation_becomes_ready() {
    let cluster = TestCluster::open().await;
    let objects = yaml_of("your-first-farm.md");
    assert_eq!(objects.len(), 4);
    for mut object in objects {
        assert!(object.get("spec").is_none(), "it has no settings: {object}");
        object["metadata"]["namespace"] = "default".into();
        let kind = object["kind"].as_str().unwrap();
        let resource =
            ApiResource::from_gvk(&GroupVersionKind::gvk("buildbarn.io", "v1alpha1", kind));
        let api: Api<DynamicObject> =
            Api::namespaced_with(cluster.client.clone(), "default", &resource);
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    cluster.pass(SECOND * 2).await;
    cluster.pods_are_ready().await;
    cluster.pass(SECOND * 2).await;
    let scheduler: BuildbarnScheduler = cluster.get("scheduler").await.unwrap();
    assert_eq!(scheduler.status.unwrap().state, Some(State::Ready));
    let worker: BuildbarnWorker = cluster.get("linux").await.unwrap();
    assert_eq!(worker.status.unwrap().state, Some(State::Ready));
}

fn aged(object: Value, name: &str, farm: &str, created: &str) -> Value {
    let mut object = object;
    object["metadata"] = json!({
        "name": name, "namespace": "default", "uid": name, "creationTimestamp": created,
        "labels": {"buildbarn.io/farm": farm},
    });
    object
}

#[test]
fn what_an_older_component_uses_is_not_taken_by_a_new_one() {
    let spec = json!({"spec": {"configMapName": "mine"}});
    let browser = |name: &str, farm: &str, created: &str| {
        let object = aged(spec.clone(), name, farm, created);
        Component::from(&serde_json::from_value::<BuildbarnBrowser>(object).unwrap())
    };
    let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    let all = [browser("zzz", "zzz", old), browser("aaa", "aaa", new)];
    let claimed = |farm| crate::farm::component::claimed_elsewhere(farm, &all);
    assert!(claimed("zzz").is_empty());
    assert!(claimed("aaa").contains("mine"));
    // The same for the storage of a farm, and for the prefix of a scheduler.
    let storage = |name: &str, created: &str| {
        let object = aged(json!({"spec": {}}), name, "", created);
        Component::from(&serde_json::from_value::<BuildbarnStorage>(object).unwrap())
    };
    let scheduler = |name: &str, created: &str| {
        let object = aged(json!({"spec": {}}), name, "", created);
        Component::from(&serde_json::from_value::<BuildbarnScheduler>(object).unwrap())
    };
    let farm = [
        storage("aaa", new),
        storage("zzz", old),
        scheduler("bbb", new),
        scheduler("yyy", old),
    ];
    let reason = |index: usize| validate::problem(&farm[index], &farm).map(|it| it.reason);
    assert_eq!(reason(0), Some("SecondStorage"));
    assert_eq!(reason(1), None);
    assert_eq!(reason(2), Some("DuplicatePrefix"));
    assert_eq!(reason(3), None);
    let settings = settings::settings(&farm).unwrap();
    assert_eq!(settings.storage.name, "zzz");
    assert_eq!(settings.schedulers[""], "yyy");
}
