//! When nothing changes, nothing is written, and nothing is asked either.

use std::{collections::BTreeMap, path::Path, time::Duration};

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::{CronJob, Job},
    core::v1::{Node, PersistentVolumeClaim, Pod, Service},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use neap_kit::{
    lease::{Elector, Options as Election, Timings},
    manager::Service as Task,
    site::Site,
    watch::Ended,
};
use serde_json::{Value, json};

use crate::{
    node::{
        self,
        address::Block,
        image::Images,
        register::{self, Machine},
    },
    stage::{Call, Fate, Kubelet, Stage},
};

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
    furnish_workloads(stage).await;
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

/// Some whose pods are as they should be, and some whose pods have no room.
async fn furnish_workloads(stage: &Stage) {
    for (name, cpu) in [("rolled", "1m"), ("stuck", "2")] {
        let selector = json!({"matchLabels": {"app": name}});
        let spec = json!({"selector": selector, "template": template(name, cpu)});
        let with = |field: &str, value: Value| {
            let mut spec = spec.clone();
            spec[field] = value;
            json!({"metadata": {"name": format!("{name}-{}", field.to_lowercase())}, "spec": spec})
        };
        stage.create::<Deployment>(with("replicas", 2.into())).await;
        let named = with("serviceName", name.into());
        stage.create::<StatefulSet>(named).await;
        let patient = with("minReadySeconds", 5.into());
        stage.create::<DaemonSet>(patient).await;
    }
}

fn kubelet() -> Kubelet {
    Kubelet::default()
        .fate("good", Fate::Ends(0, MINUTE))
        .fate("bad", Fate::Ends(1, MINUTE))
        .fate("long", Fate::Unready)
}

/// All controllers on a furnished stage, until the last Events have expired, too.
async fn settled(services: impl FnOnce(&Site) -> Result<Vec<Task>, Ended>) -> Stage {
    let stage = Stage::open(services).await.with(kubelet());
    furnish(&stage).await;
    stage.pass(180 * MINUTE).await;
    stage
}

#[tokio::test(start_paused = true)]
async fn when_nothing_changes_nothing_is_written() {
    let mut stage = settled(|site| crate::services(site, Path::new("/nowhere"))).await;
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

/// All that `neap up` runs but pods, and somebody who leads.
fn everybody(site: &Site) -> Result<Vec<Task>, Ended> {
    let mut services = crate::services(site, Path::new("/nowhere"))?;
    let options = node::Options {
        name: "here".into(),
        folder: "/nowhere".into(),
        launcher: "/bin/neap".into(),
        images: Images::usual(Path::new("/bin/neap")),
        block: Block::new(3).unwrap(),
        environment: BTreeMap::new(),
        rooms: true,
        own_proc: false,
        as_root: false,
    };
    let mut machine = Machine::this(Path::new("/"), "v1.36.3");
    // The greedy have no room, wherever this runs.
    machine.cores = 1;
    services.push(register::service(site, &options, &machine)?);
    let options = Election {
        namespace: "default".into(),
        name: "neap".into(),
        identity: "me".into(),
        timings: Timings::default(),
    };
    let (elector, _) = Elector::new(site.client.clone(), options, site.clock).unwrap();
    services.push(Task::new("election", |stop| elector.run(stop)));
    Ok(services)
}

/// What a call is for, if it is one that time alone asks for.
fn purpose(call: &Call) -> Option<&'static str> {
    let leases = "/apis/coordination.k8s.io/v1/namespaces";
    let own = |name: &str| call.path == format!("{leases}/{name}");
    match call.method.as_str() {
        "WATCH" => Some("watch"),
        "PUT" if own("default/leases/neap") => Some("lease"),
        "PUT" if own("kube-node-lease/leases/here") => Some("heartbeat"),
        "PUT" if call.path == "/api/v1/nodes/here/status" => Some("report"),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn when_nothing_changes_only_watches_leases_and_heartbeats_are_asked_for() {
    let mut stage = settled(everybody).await;
    let before = stage.calls();
    let watched = |calls: &BTreeMap<Call, usize>| -> Vec<String> {
        let watches = calls.keys().filter(|call| call.method == "WATCH");
        watches.map(|call| call.path.clone()).collect()
    };
    stage.pass(10 * MINUTE).await;
    let calls = stage.calls();
    let mut purposes = BTreeMap::<_, usize>::new();
    for (call, times) in &calls {
        let purpose = purpose(call).unwrap_or_else(|| panic!("{times} times {call:?}"));
        *purposes.entry(purpose).or_default() += times;
    }
    assert_eq!(watched(&calls), watched(&before), "the same watches go on");
    assert!(watched(&calls).len() > 15, "{calls:?}");
    let most = 3 * watched(&calls).len();
    assert!(
        purposes["watch"] <= most,
        "each about every five minutes: {purposes:?}"
    );
    for (purpose, every) in [("lease", 2), ("heartbeat", 10)] {
        assert!(
            (599 / every..=601 / every).contains(&purposes[purpose]),
            "{purposes:?}"
        );
    }
    assert!((1..=3).contains(&purposes["report"]), "{purposes:?}");
    stage.assert_all_run();
}
