//! What users get wrong is reported, and changes nothing.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::{Value, json};

use super::{SECOND, cluster::TestCluster};
use crate::api::{
    BuildbarnBrowser, BuildbarnFrontend, BuildbarnScheduler, BuildbarnStorage, BuildbarnWorker,
    State,
};

#[tokio::test(start_paused = true)]
async fn what_the_definitions_exclude_is_refused() {
    let cluster = TestCluster::ready().await;
    let replicas = || json!({"spec": {"replicas": -1}});
    assert!(
        cluster
            .refuses::<BuildbarnStorage>("storage", replicas())
            .await
    );
    assert!(
        cluster
            .refuses::<BuildbarnScheduler>("scheduler", replicas())
            .await
    );
    assert!(
        cluster
            .refuses::<BuildbarnWorker>("ubuntu22-04", replicas())
            .await
    );
    assert!(
        cluster
            .refuses::<BuildbarnFrontend>("frontend", replicas())
            .await
    );
    assert!(
        cluster
            .refuses::<BuildbarnBrowser>("browser", replicas())
            .await
    );
    // The type of a platform property is text.
    for value in [
        json!(4),
        json!(true),
        json!(["linux"]),
        json!({"string": "linux"}),
    ] {
        let platform = json!([{"name": "OSFamily", "value": value}]);
        let change = json!({"spec": {"platform": platform}});
        assert!(
            cluster
                .refuses::<BuildbarnWorker>("ubuntu22-04", change)
                .await,
            "{value}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_would_shrink_stays_as_it_is() {
    let cluster = TestCluster::ready().await;
    let claim = |name: &str, size: &str| {
        json!({
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}},
            },
        })
    };
    let volume = claim("cas-storage-0", "33Gi");
    cluster.create::<PersistentVolumeClaim>(volume).await;
    let claims = ["cas", "ac", "fsac"].map(|name| claim(name, "1Gi"));
    let stores = json!({"cas": {"size": "512Mi", "indexSize": "16Mi"}});
    let smaller = json!({"spec": {"volumeClaimTemplates": claims, "stores": stores}});
    cluster.merge::<BuildbarnStorage>("storage", smaller).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(
        cluster.reason::<BuildbarnStorage>("storage").await,
        "VolumeShrinks"
    );
    let volume: PersistentVolumeClaim = cluster.get("cas-storage-0").await.unwrap();
    let requests = volume.spec.unwrap().resources.unwrap().requests.unwrap();
    assert_eq!(requests["storage"].0, "33Gi");
}

#[tokio::test(start_paused = true)]
async fn a_config_map_belongs_to_the_first_farm_that_names_it() {
    let cluster = TestCluster::ready().await;
    let rendered = cluster.rendered("browser").await;
    let mine = json!({"metadata": {"name": "mine"}, "data": rendered});
    cluster.put_config_map(mine).await;
    let change = json!({"spec": {"configMapName": "mine"}});
    cluster.merge::<BuildbarnBrowser>("browser", change).await;
    let other = json!({
        "metadata": {"name": "zweit", "labels": {"buildbarn.io/farm": "other"}},
        "spec": {"configMapName": "mine"},
    });
    cluster.create::<BuildbarnBrowser>(other).await;
    cluster.settle().await;
    assert_eq!(cluster.reason::<BuildbarnBrowser>("browser").await, "Ready");
    assert_eq!(
        cluster.reason::<BuildbarnBrowser>("zweit").await,
        "ConfigMapShared"
    );
    assert!(
        cluster
            .get::<k8s_openapi::api::apps::v1::Deployment>("zweit")
            .await
            .is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_fails_or_takes_a_port_twice_is_not_rolled_out() {
    let cluster = TestCluster::ready().await;
    let rendered = cluster.rendered("browser").await;
    let before = cluster.revision("browser").await;
    let change = json!({"spec": {"configMapName": "mine"}});
    cluster.merge::<BuildbarnBrowser>("browser", change).await;
    let twice = "local it = import 'rendered.jsonnet'; \
         it + { httpServers: it.httpServers + it.httpServers }";
    for (text, part) in [
        ("error 'no'", "no"),
        ("{ a: import '/etc/passwd' }", "/etc/passwd"),
        ("{", "browser.jsonnet"),
        (
            twice,
            "is the port of httpServers[0].listenAddresses[0] too",
        ),
    ] {
        let mut files = json!(rendered);
        files["rendered.jsonnet"] = files["browser.jsonnet"].clone();
        files["browser.jsonnet"] = text.into();
        let mine = json!({"metadata": {"name": "mine"}, "data": files});
        cluster.put_config_map(mine).await;
        cluster.pass(SECOND).await;
        let browser: BuildbarnBrowser = cluster.get("browser").await.unwrap();
        let conditions = browser.status.unwrap().conditions;
        let ready = conditions.iter().find(|it| it.type_ == "Ready").unwrap();
        assert_eq!(ready.reason, "ConfigInvalid", "{text}");
        assert!(ready.message.contains(part), "{text}: {}", ready.message);
    }
    assert_eq!(cluster.revision("browser").await, before);
}

#[tokio::test(start_paused = true)]
async fn a_worker_and_its_runner_cannot_have_the_same_port() {
    let cluster = TestCluster::ready().await;
    let mut files: Value = json!(cluster.rendered("ubuntu22-04").await);
    let runner = &mut files["runner-ubuntu22-04.jsonnet"];
    *runner = runner.as_str().unwrap().replace("9981", "9980").into();
    let mine = json!({"metadata": {"name": "mine"}, "data": files});
    cluster.put_config_map(mine).await;
    let change = json!({"spec": {"configMapName": "mine"}});
    cluster
        .merge::<BuildbarnWorker>("ubuntu22-04", change)
        .await;
    cluster.pass(SECOND).await;
    let worker: BuildbarnWorker = cluster.get("ubuntu22-04").await.unwrap();
    let conditions = worker.status.unwrap().conditions;
    let ready = conditions.iter().find(|it| it.type_ == "Ready").unwrap();
    assert_eq!(ready.reason, "ConfigInvalid");
    assert!(
        ready.message.contains("both share a pod"),
        "{}",
        ready.message
    );
}

#[tokio::test(start_paused = true)]
async fn an_image_of_an_unknown_version_is_warned_about_and_runs() {
    let cluster = TestCluster::ready().await;
    let change = json!({"spec": {"image": "registry.example.com/bb-browser:mine"}});
    cluster.merge::<BuildbarnBrowser>("browser", change).await;
    cluster.settle().await;
    let browser: BuildbarnBrowser = cluster.get("browser").await.unwrap();
    let status = browser.status.unwrap();
    assert_eq!(status.state, Some(State::Ready));
    let mut conditions = status.conditions.iter();
    assert!(conditions.any(|it| it.type_ == "SchemaUnknown" && it.status == "True"));
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_deleted_while_it_shrinks_goes_when_its_last_action_has_ended() {
    let cluster = TestCluster::ready().await;
    let names = ["w-0", "w-1", "w-2"];
    for name in names {
        cluster.worker_pod(name).await;
        cluster.queue.register(name, true);
    }
    let smaller = json!({"spec": {"replicas": 1}});
    cluster
        .merge::<BuildbarnWorker>("ubuntu22-04", smaller)
        .await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.queue.drains().len(), 2);
    cluster.remove::<BuildbarnWorker>("ubuntu22-04").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.queue.drains().len(), 3);
    assert_eq!(cluster.replicas("ubuntu22-04").await, 3, "all are busy");
    for name in names {
        cluster.queue.register(name, false);
    }
    cluster.pass(SECOND * 10).await;
    assert_eq!(cluster.replicas("ubuntu22-04").await, 0);
    for name in names {
        cluster.remove_pod(name).await;
    }
    cluster.pass(SECOND * 10).await;
    assert!(
        cluster
            .get::<BuildbarnWorker>("ubuntu22-04")
            .await
            .is_none()
    );
    assert!(cluster.queue.drains().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_the_server_refuses_is_reported_once_and_not_tried_all_the_time() {
    let cluster = TestCluster::ready().await;
    let cpu = json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}});
    let change = json!({"spec": {"resources": cpu}});
    cluster.merge::<BuildbarnFrontend>("frontend", change).await;
    cluster.pass(SECOND * 30).await;
    assert_eq!(
        cluster.reason::<BuildbarnFrontend>("frontend").await,
        "WriteRefused"
    );
    let refused = || {
        let calls = cluster.calls().into_iter();
        calls
            .filter(|call| call.ends_with("/deployments/frontend"))
            .count()
    };
    let (tries, writes) = (refused(), cluster.writes());
    cluster.pass(SECOND * 3600).await;
    assert!(refused() - tries <= 15, "{} tries", refused() - tries);
    let others = (cluster.writes() - writes) - (refused() - tries);
    assert_eq!(others, 0, "{:#?}", cluster.calls());
    let change = json!({"spec": {"resources": null}});
    cluster.merge::<BuildbarnFrontend>("frontend", change).await;
    cluster.settle().await;
    assert_eq!(
        cluster.reason::<BuildbarnFrontend>("frontend").await,
        "Ready"
    );
}
