//! When nothing changes, nothing is written.

use std::{path::Path, time::Duration};

use k8s_openapi::api::{
    apps::v1::ReplicaSet,
    batch::v1::{CronJob, Job},
    core::v1::{Node, PersistentVolumeClaim, Pod, Service},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::stage::{Fate, Kubelet, Stage};

const MINUTE: Duration = Duration::from_mins(1);

fn template(fate: &str, cpu: &str) -> Value {
    let ports = json!([{"name": "http", "containerPort": 8080}]);
    let resources = json!({"requests": {"cpu": cpu}});
    let container = json!({"name": "main", "image": "app", "ports": ports, "resources": resources});
    json!({
        "metadata": {"labels": {"app": fate, "fate": fate}},
        "spec": {"restartPolicy": "Always", "containers": [container]},
    })
}

fn job(fate: &str) -> Value {
    let mut template = template(fate, "1m");
    template["spec"]["restartPolicy"] = "Never".into();
    json!({"metadata": {"name": fate}, "spec": {"backoffLimit": 1, "template": template}})
}

/// Everything in every state in which it may stay.
async fn furnish(stage: &Stage) {
    let node = json!({"metadata": {"name": "one"}});
    stage.create_for_all::<Node>(node).await;
    let nodes: Api<Node> = Api::all(stage.client.clone());
    let room = json!({"status": {"allocatable": {"cpu": "1", "pods": "50"}}});
    let merge = PatchParams::default();
    let patched = nodes.patch_status("one", &merge, &Patch::Merge(room)).await;
    patched.unwrap();
    let open = json!({"spec": {"taints": null}});
    let patched = nodes.patch("one", &merge, &Patch::Merge(open)).await;
    patched.unwrap();
    for (name, cpu) in [("web", "1m"), ("greedy", "2")] {
        let set = json!({
            "metadata": {"name": name},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": name}}, "template": template(name, cpu)},
        });
        stage.create::<ReplicaSet>(set).await;
        let service = json!({
            "metadata": {"name": name},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": "http"}]},
        });
        stage.create::<Service>(service).await;
        let budget = json!({
            "metadata": {"name": name},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}},
        });
        stage.create::<PodDisruptionBudget>(budget).await;
    }
    for fate in ["good", "bad", "long"] {
        stage.create::<Job>(job(fate)).await;
    }
    for (name, schedule) in [("yearly", "0 0 31 12 *"), ("forbid", "5 0 1 1 *")] {
        let spec = json!({
            "schedule": schedule, "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": job("long")["spec"]},
        });
        let cron = json!({"metadata": {"name": name}, "spec": spec});
        stage.create::<CronJob>(cron).await;
    }
    for (name, class) in [("bound", "standard"), ("waiting", "nobody's")] {
        let resources = json!({"requests": {"storage": "1Gi"}});
        let spec = json!({"storageClassName": class, "accessModes": ["ReadWriteOnce"], "resources": resources});
        let claim = json!({"metadata": {"name": name}, "spec": spec});
        stage.create::<PersistentVolumeClaim>(claim).await;
    }
}

#[tokio::test(start_paused = true)]
async fn when_nothing_changes_nothing_is_written() {
    let kubelet = Kubelet::default()
        .fate("good", Fate::Ends(0, MINUTE))
        .fate("bad", Fate::Ends(1, MINUTE))
        .fate("long", Fate::Unready);
    let services = |site: &_| crate::services(site, Path::new("/nowhere"));
    let mut stage = Stage::open(services).await.with(kubelet);
    furnish(&stage).await;
    // Until the last Events have expired, too.
    stage.pass(180 * MINUTE).await;
    let before = (revision(&stage).await, stage.writes());
    assert!(before.1 > 0, "writes are counted");
    stage.pass(24 * 60 * MINUTE).await;
    assert_eq!((revision(&stage).await, stage.writes()), before);
    stage.assert_all_run();
}

async fn revision(stage: &Stage) -> Option<String> {
    let pods: Api<Pod> = stage.api();
    let list = pods.list(&ListParams::default()).await.unwrap();
    list.metadata.resource_version
}
