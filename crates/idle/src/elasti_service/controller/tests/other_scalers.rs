//! Other controllers that scale the target: KEDA, autoscalers and GitOps tools.

use k8s_openapi::{
    api::autoscaling::v2::HorizontalPodAutoscaler,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::Value;

use super::*;

/// The definition of KEDA 2, as far as it is used here.
fn keda() -> CustomResourceDefinition {
    let target = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "kind": {"type": "string"}, "apiVersion": {"type": "string"},
    }});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "required": ["scaleTargetRef"], "properties": {"scaleTargetRef": target}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    let definition = json!({
        "metadata": {"name": "scaledobjects.keda.sh"},
        "spec": {
            "group": "keda.sh", "scope": "Namespaced",
            "names": {"kind": "ScaledObject", "plural": "scaledobjects",
                "singular": "scaledobject", "shortNames": ["so"]},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
            }],
        },
    });
    serde_json::from_value(definition).unwrap()
}

struct ScaledObjects(Api<DynamicObject>, ApiResource);

impl ScaledObjects {
    fn new(cluster: &TestCluster) -> Self {
        let named = GroupVersionKind::gvk("keda.sh", "v1alpha1", "ScaledObject");
        let resource = ApiResource::from_gvk_with_plural(&named, "scaledobjects");
        Self(
            Api::default_namespaced_with(cluster.client.clone(), &resource),
            resource,
        )
    }

    async fn create(&self, name: &str, annotations: Value) {
        let spec = json!({"spec": {"scaleTargetRef": {"name": "web"}, "triggers": []}});
        let mut object = DynamicObject::new(name, &self.1).data(spec);
        object.metadata.annotations = serde_json::from_value(annotations).unwrap();
        self.0
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }

    async fn annotations(&self, name: &str) -> Value {
        let found = self.0.get(name).await.unwrap();
        json!(found.metadata.annotations.unwrap_or_default())
    }
}

async fn declare_with_autoscaler(cluster: &TestCluster) {
    let mut service = cluster::elasti_service();
    service["spec"]["autoscaler"] = json!({"type": "keda", "name": "scale-web"});
    cluster.create::<ElastiService>(service).await;
}

async fn conflict(cluster: &TestCluster) -> (String, String) {
    let conditions = cluster.status().await.conditions;
    let found = conditions.into_iter().find(|it| it.type_ == "Conflict");
    found.map_or_else(Default::default, |it| (it.status, it.reason))
}

#[tokio::test(start_paused = true)]
async fn keda_is_paused_during_sleep_and_resumed_on_wake() {
    let cluster = TestCluster::open().await;
    cluster.define(keda()).await;
    let objects = ScaledObjects::new(&cluster);
    objects.create("scale-web", json!({"team": "shop"})).await;
    declare_with_autoscaler(&cluster).await;
    cluster.verdicts.idle();
    cluster.pass(MINUTE * 11).await;
    assert_eq!(cluster.replicas().await, 0);
    let paused = json!({
        "team": "shop", "autoscaling.keda.sh/paused": "true",
        "autoscaling.keda.sh/paused-replicas": "0", "idle.neaptide.dev/paused": "true",
    });
    assert_eq!(objects.annotations("scale-web").await, paused);
    assert_eq!(conflict(&cluster).await.0, "", "it is named");
    cluster.verdicts.busy();
    cluster.pass(SECOND * 2).await;
    assert_eq!(cluster.replicas().await, 1);
    let resumed = json!({"team": "shop", "autoscaling.keda.sh/paused": "false"});
    assert_eq!(objects.annotations("scale-web").await, resumed);
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_kube_elasti_is_resumed_and_a_users_pause_stays() {
    for (pause, resumed) in [
        (
            json!({"autoscaling.keda.sh/paused": "true", "autoscaling.keda.sh/paused-replicas": "0"}),
            true,
        ),
        (json!({"autoscaling.keda.sh/paused": "true"}), false),
        (json!({"autoscaling.keda.sh/paused-replicas": "3"}), false),
    ] {
        let cluster = TestCluster::open().await;
        cluster.define(keda()).await;
        let objects = ScaledObjects::new(&cluster);
        objects.create("scale-web", pause.clone()).await;
        cluster.scale(0).await;
        cluster.pods_are_ready(false).await;
        declare_with_autoscaler(&cluster).await;
        cluster
            .patch_status::<ElastiService>("web", json!({"mode": "proxy"}))
            .await;
        cluster.verdicts.busy();
        cluster.pass(SECOND * 10).await;
        assert_eq!(cluster.replicas().await, 1);
        let now = objects.annotations("scale-web").await;
        if resumed {
            assert_eq!(now, json!({"autoscaling.keda.sh/paused": "false"}));
        } else {
            assert_eq!(now, pause);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_former_target_is_restored_when_another_is_named() {
    let cluster = TestCluster::open().await;
    cluster.define(keda()).await;
    let objects = ScaledObjects::new(&cluster);
    for name in ["scale-web", "scale-more"] {
        objects.create(name, json!({})).await;
    }
    declare_with_autoscaler(&cluster).await;
    let mut other = cluster::deployment();
    other["metadata"]["name"] = json!("other");
    cluster.create::<Deployment>(other).await;
    cluster.verdicts.idle();
    cluster.pass(MINUTE * 11).await;
    assert_eq!(cluster.replicas().await, 0);
    let resting = cluster.status().await.resting.unwrap();
    assert_eq!(resting.scaled_object.as_deref(), Some("scale-web"));
    let change = json!({"spec": {
        "scaleTargetRef": {"name": "other"},
        "autoscaler": {"type": "keda", "name": "scale-more"},
    }});
    cluster.patch::<ElastiService>("web", change).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.replicas().await, 3, "as many as before");
    let resumed = json!({"autoscaling.keda.sh/paused": "false"});
    assert_eq!(objects.annotations("scale-web").await, resumed);
    let wake = cluster.status().await.last_wake.unwrap();
    assert_eq!(wake.cause, "TargetChanged");
    // The other one sleeps after its cooldown.
    cluster.pass(MINUTE * 11).await;
    let other: Deployment = cluster.get("other").await.unwrap();
    assert_eq!(other.spec.unwrap().replicas, Some(0));
    assert_eq!(cluster.replicas().await, 3);
    // A former target that was deleted is skipped.
    cluster.delete::<Deployment>("other").await;
    objects
        .0
        .delete("scale-more", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    let change = json!({"spec": {"scaleTargetRef": {"name": "web"}, "autoscaler": null}});
    cluster.patch::<ElastiService>("web", change).await;
    cluster.pass(SECOND * 5).await;
    let status = cluster.status().await;
    assert_eq!((status.mode, status.resting), (Some(Mode::Serve), None));
    assert_eq!(cluster.replicas().await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_former_target_is_restored_even_if_its_object_is_deleted_at_once() {
    let cluster = TestCluster::asleep().await;
    let mut other = cluster::deployment();
    other["metadata"]["name"] = json!("other");
    cluster.create::<Deployment>(other).await;
    let change = json!({"spec": {"scaleTargetRef": {"name": "other"}}});
    cluster.patch::<ElastiService>("web", change).await;
    cluster.delete::<ElastiService>("web").await;
    cluster.pods_are_ready(true).await;
    cluster.pass(SECOND * 10).await;
    assert!(cluster.get::<ElastiService>("web").await.is_none());
    assert_eq!(cluster.replicas().await, 3);
}

#[tokio::test(start_paused = true)]
async fn unnamed_scaled_objects_and_autoscalers_are_conflicts() {
    let cluster = TestCluster::open().await;
    cluster.define(keda()).await;
    cluster.declare().await;
    cluster.pass(SECOND * 2).await;
    assert_eq!(conflict(&cluster).await.0, "");
    let hpa = json!({"metadata": {"name": "scale-web"}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 5,
    }});
    cluster.create::<HorizontalPodAutoscaler>(hpa).await;
    cluster.pass(SECOND * 2).await;
    let (truth, reason) = conflict(&cluster).await;
    assert_eq!((&*truth, &*reason), ("True", "UnnamedAutoscaler"));
    let autoscaler = json!({"spec": {"autoscaler": {"type": "hpa", "name": "scale-web"}}});
    cluster.patch::<ElastiService>("web", autoscaler).await;
    cluster.pass(SECOND * 2).await;
    assert_eq!(conflict(&cluster).await.0, "False");
    let objects = ScaledObjects::new(&cluster);
    objects.create("unnamed", json!({})).await;
    cluster.pass(SECOND * 2).await;
    assert_eq!(conflict(&cluster).await.1, "UnnamedScaledObject");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_reverts_replicas_is_named_in_the_conflict() {
    let cluster = TestCluster::open().await;
    cluster.declare().await;
    cluster.pass(SECOND * 2).await;
    let mut applied = cluster::deployment();
    applied["apiVersion"] = json!("apps/v1");
    applied["kind"] = json!("Deployment");
    let parameters = PatchParams::apply("argocd-controller").force();
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client.clone());
    let apply = Patch::Apply(&applied);
    deployments.patch("web", &parameters, &apply).await.unwrap();
    cluster.pass(SECOND * 2).await;
    let (truth, reason) = conflict(&cluster).await;
    assert_eq!((&*truth, &*reason), ("True", "GitOps"));
    let conditions = cluster.status().await.conditions;
    let found = conditions
        .into_iter()
        .find(|it| it.type_ == "Conflict")
        .unwrap();
    assert!(
        found.message.contains("Argo CD") && found.message.contains("ignore"),
        "{found:?}"
    );
    // Without replicas in what it applies, the conflict is over.
    applied["spec"].as_object_mut().unwrap().remove("replicas");
    let apply = Patch::Apply(&applied);
    deployments.patch("web", &parameters, &apply).await.unwrap();
    cluster.pass(SECOND * 2).await;
    assert_eq!(conflict(&cluster).await.0, "False");
}
