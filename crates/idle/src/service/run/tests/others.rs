//! Others who scale the same, each told of with what to do about it.

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

/// What KEDA 2 defines, as far as anybody here reads it.
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

struct Objects(Api<DynamicObject>, ApiResource);

impl Objects {
    fn new(stage: &Stage) -> Self {
        let named = GroupVersionKind::gvk("keda.sh", "v1alpha1", "ScaledObject");
        let resource = ApiResource::from_gvk_with_plural(&named, "scaledobjects");
        Self(
            Api::default_namespaced_with(stage.client.clone(), &resource),
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

async fn named(stage: &Stage) {
    let mut service = stage::elasti_service();
    service["spec"]["autoscaler"] = json!({"type": "keda", "name": "scale-web"});
    stage.create::<ElastiService>(service).await;
}

async fn conflict(stage: &Stage) -> (String, String) {
    let conditions = stage.status().await.conditions;
    let found = conditions.into_iter().find(|it| it.type_ == "Conflict");
    found.map_or_else(Default::default, |it| (it.status, it.reason))
}

#[tokio::test(start_paused = true)]
async fn keda_is_paused_while_it_sleeps_and_goes_on_when_it_wakes() {
    let stage = Stage::open().await;
    stage.define(keda()).await;
    let objects = Objects::new(&stage);
    objects.create("scale-web", json!({"team": "shop"})).await;
    named(&stage).await;
    stage.verdicts.idle();
    stage.pass(MINUTE * 11).await;
    assert_eq!(stage.replicas().await, 0);
    let paused = json!({
        "team": "shop", "autoscaling.keda.sh/paused": "true",
        "autoscaling.keda.sh/paused-replicas": "0", "idle.neaptide.dev/paused": "true",
    });
    assert_eq!(objects.annotations("scale-web").await, paused);
    assert_eq!(conflict(&stage).await.0, "", "it is named");
    stage.verdicts.busy();
    stage.pass(SECOND * 2).await;
    assert_eq!(stage.replicas().await, 1);
    let goes_on = json!({"team": "shop", "autoscaling.keda.sh/paused": "false"});
    assert_eq!(objects.annotations("scale-web").await, goes_on);
}

#[tokio::test(start_paused = true)]
async fn keda_that_kubeelasti_paused_goes_on_and_a_users_pause_stays() {
    for (pause, goes_on) in [
        (
            json!({"autoscaling.keda.sh/paused": "true", "autoscaling.keda.sh/paused-replicas": "0"}),
            true,
        ),
        (json!({"autoscaling.keda.sh/paused": "true"}), false),
        (json!({"autoscaling.keda.sh/paused-replicas": "3"}), false),
    ] {
        let stage = Stage::open().await;
        stage.define(keda()).await;
        let objects = Objects::new(&stage);
        objects.create("scale-web", pause.clone()).await;
        stage.scale(0).await;
        stage.pods_are_ready(false).await;
        named(&stage).await;
        stage
            .patch_status::<ElastiService>("web", json!({"mode": "proxy"}))
            .await;
        stage.verdicts.busy();
        stage.pass(SECOND * 10).await;
        assert_eq!(stage.replicas().await, 1);
        let now = objects.annotations("scale-web").await;
        if goes_on {
            assert_eq!(now, json!({"autoscaling.keda.sh/paused": "false"}));
        } else {
            assert_eq!(now, pause);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_slept_is_restored_when_another_is_named() {
    let stage = Stage::open().await;
    stage.define(keda()).await;
    let objects = Objects::new(&stage);
    for name in ["scale-web", "scale-more"] {
        objects.create(name, json!({})).await;
    }
    named(&stage).await;
    let mut other = stage::deployment();
    other["metadata"]["name"] = json!("other");
    stage.create::<Deployment>(other).await;
    stage.verdicts.idle();
    stage.pass(MINUTE * 11).await;
    assert_eq!(stage.replicas().await, 0);
    let resting = stage.status().await.resting.unwrap();
    assert_eq!(resting.scaled_object.as_deref(), Some("scale-web"));
    let change = json!({"spec": {
        "scaleTargetRef": {"name": "other"},
        "autoscaler": {"type": "keda", "name": "scale-more"},
    }});
    stage.patch::<ElastiService>("web", change).await;
    stage.pass(SECOND * 5).await;
    assert_eq!(stage.replicas().await, 3, "as many as before");
    let goes_on = json!({"autoscaling.keda.sh/paused": "false"});
    assert_eq!(objects.annotations("scale-web").await, goes_on);
    let wake = stage.status().await.last_wake.unwrap();
    assert_eq!(wake.cause, "TargetChanged");
    // The other one sleeps in its time.
    stage.pass(MINUTE * 11).await;
    let other: Deployment = stage.get("other").await.unwrap();
    assert_eq!(other.spec.unwrap().replicas, Some(0));
    assert_eq!(stage.replicas().await, 3);
    // What is gone when another is named holds nobody up.
    stage.delete::<Deployment>("other").await;
    objects
        .0
        .delete("scale-more", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    let change = json!({"spec": {"scaleTargetRef": {"name": "web"}, "autoscaler": null}});
    stage.patch::<ElastiService>("web", change).await;
    stage.pass(SECOND * 5).await;
    let status = stage.status().await;
    assert_eq!((status.mode, status.resting), (Some(Mode::Serve), None));
    assert_eq!(stage.replicas().await, 3);
}

#[tokio::test(start_paused = true)]
async fn what_slept_is_restored_also_if_its_object_is_deleted_at_once() {
    let stage = Stage::asleep().await;
    let mut other = stage::deployment();
    other["metadata"]["name"] = json!("other");
    stage.create::<Deployment>(other).await;
    let change = json!({"spec": {"scaleTargetRef": {"name": "other"}}});
    stage.patch::<ElastiService>("web", change).await;
    stage.delete::<ElastiService>("web").await;
    stage.pods_are_ready(true).await;
    stage.pass(SECOND * 10).await;
    assert!(stage.get::<ElastiService>("web").await.is_none());
    assert_eq!(stage.replicas().await, 3);
}

#[tokio::test(start_paused = true)]
async fn scaled_objects_and_autoscalers_that_nobody_named_are_told_of() {
    let stage = Stage::open().await;
    stage.define(keda()).await;
    stage.declare().await;
    stage.pass(SECOND * 2).await;
    assert_eq!(conflict(&stage).await.0, "");
    let hpa = json!({"metadata": {"name": "scale-web"}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 5,
    }});
    stage.create::<HorizontalPodAutoscaler>(hpa).await;
    stage.pass(SECOND * 2).await;
    let (truth, reason) = conflict(&stage).await;
    assert_eq!((&*truth, &*reason), ("True", "UnnamedAutoscaler"));
    let autoscaler = json!({"spec": {"autoscaler": {"type": "hpa", "name": "scale-web"}}});
    stage.patch::<ElastiService>("web", autoscaler).await;
    stage.pass(SECOND * 2).await;
    assert_eq!(conflict(&stage).await.0, "False");
    let objects = Objects::new(&stage);
    objects.create("unnamed", json!({})).await;
    stage.pass(SECOND * 2).await;
    assert_eq!(conflict(&stage).await.1, "UnnamedScaledObject");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_puts_replicas_back_is_told_of_by_its_name() {
    let stage = Stage::open().await;
    stage.declare().await;
    stage.pass(SECOND * 2).await;
    let mut applied = stage::deployment();
    applied["apiVersion"] = json!("apps/v1");
    applied["kind"] = json!("Deployment");
    let parameters = PatchParams::apply("argocd-controller").force();
    let deployments: Api<Deployment> = Api::default_namespaced(stage.client.clone());
    let apply = Patch::Apply(&applied);
    deployments.patch("web", &parameters, &apply).await.unwrap();
    stage.pass(SECOND * 2).await;
    let (truth, reason) = conflict(&stage).await;
    assert_eq!((&*truth, &*reason), ("True", "GitOps"));
    let conditions = stage.status().await.conditions;
    let told = conditions
        .into_iter()
        .find(|it| it.type_ == "Conflict")
        .unwrap();
    assert!(
        told.message.contains("Argo CD") && told.message.contains("ignore"),
        "{told:?}"
    );
    // Without replicas in what it applies, all is well.
    applied["spec"].as_object_mut().unwrap().remove("replicas");
    let apply = Patch::Apply(&applied);
    deployments.patch("web", &parameters, &apply).await.unwrap();
    stage.pass(SECOND * 2).await;
    assert_eq!(conflict(&stage).await.0, "False");
}
