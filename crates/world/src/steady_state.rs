//! In a steady state nothing is written, and nothing is requested either.

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
    context::Context,
    lease::{ElectionOptions, Elector, LeaseTimings},
    manager::Component,
    watch::WatchesStopped,
};
use serde_json::{Value, json};

use crate::{
    node::{
        self,
        address::Block,
        image::Images,
        register::{self, Machine},
    },
    stage::{ApiCall, Kubelet, PodBehavior, TestCluster},
};

const MINUTE: Duration = Duration::from_mins(1);

fn template(behavior: &str, cpu: &str) -> Value {
    let ports = json!([{"name": "http", "containerPort": 8080}]);
    let resources = json!({"requests": {"cpu": cpu}});
    let container = json!({"name": "main", "image": "app", "ports": ports, "resources": resources});
    json!({
        "metadata": {"labels": {"app": behavior, "behavior": behavior}},
        "spec": {"restartPolicy": "Always", "containers": [container]},
    })
}

fn job(behavior: &str) -> Value {
    let mut template = template(behavior, "1m");
    template["spec"]["restartPolicy"] = "Never".into();
    json!({"metadata": {"name": behavior}, "spec": {"backoffLimit": 1, "template": template}})
}

/// Creates objects of every kind in every state in which they may remain.
async fn create_objects(cluster: &TestCluster) {
    let node = json!({"metadata": {"name": "one"}});
    cluster.create_cluster_scoped::<Node>(node).await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let allocatable = json!({"status": {"allocatable": {"cpu": "1", "pods": "50"}}});
    let merge = PatchParams::default();
    let patched = nodes
        .patch_status("one", &merge, &Patch::Merge(allocatable))
        .await;
    patched.unwrap();
    let open = json!({"spec": {"taints": null}});
    let patched = nodes.patch("one", &merge, &Patch::Merge(open)).await;
    patched.unwrap();
    for (name, cpu) in [("web", "1m"), ("greedy", "2")] {
        let set = json!({
            "metadata": {"name": name},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": name}}, "template": template(name, cpu)},
        });
        cluster.create::<ReplicaSet>(set).await;
        let service = json!({
            "metadata": {"name": name},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": "http"}]},
        });
        cluster.create::<Service>(service).await;
        let budget = json!({
            "metadata": {"name": name},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}},
        });
        cluster.create::<PodDisruptionBudget>(budget).await;
    }
    create_workloads(cluster).await;
    for behavior in ["good", "bad", "long"] {
        cluster.create::<Job>(job(behavior)).await;
    }
    for (name, schedule) in [("yearly", "0 0 31 12 *"), ("forbid", "5 0 1 1 *")] {
        let spec = json!({
            "schedule": schedule, "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": job("long")["spec"]},
        });
        let cron = json!({"metadata": {"name": name}, "spec": spec});
        cluster.create::<CronJob>(cron).await;
    }
    for (name, class) in [("bound", "standard"), ("waiting", "unprovisioned")] {
        let resources = json!({"requests": {"storage": "1Gi"}});
        let spec = json!({"storageClassName": class, "accessModes": ["ReadWriteOnce"], "resources": resources});
        let claim = json!({"metadata": {"name": name}, "spec": spec});
        cluster.create::<PersistentVolumeClaim>(claim).await;
    }
}

/// Creates workloads whose pods run, and workloads whose pods fit no node.
async fn create_workloads(cluster: &TestCluster) {
    for (name, cpu) in [("rolled", "1m"), ("stuck", "2")] {
        let selector = json!({"matchLabels": {"app": name}});
        let spec = json!({"selector": selector, "template": template(name, cpu)});
        let with = |field: &str, value: Value| {
            let mut spec = spec.clone();
            spec[field] = value;
            json!({"metadata": {"name": format!("{name}-{}", field.to_lowercase())}, "spec": spec})
        };
        cluster
            .create::<Deployment>(with("replicas", 2.into()))
            .await;
        let named = with("serviceName", name.into());
        cluster.create::<StatefulSet>(named).await;
        let patient = with("minReadySeconds", 5.into());
        cluster.create::<DaemonSet>(patient).await;
    }
}

fn kubelet() -> Kubelet {
    Kubelet::default()
        .behavior("good", PodBehavior::Ends(0, MINUTE))
        .behavior("bad", PodBehavior::Ends(1, MINUTE))
        .behavior("long", PodBehavior::Unready)
}

/// All controllers with these objects, until the last Events have expired.
async fn steady_cluster(
    components: impl FnOnce(&Context) -> Result<Vec<Component>, WatchesStopped>,
) -> TestCluster {
    let cluster = TestCluster::start(components).await.with_kubelet(kubelet());
    create_objects(&cluster).await;
    cluster.advance(180 * MINUTE).await;
    cluster
}

#[tokio::test(start_paused = true)]
async fn when_nothing_changes_nothing_is_written() {
    let mut cluster =
        steady_cluster(|context| crate::components(context, Path::new("/nowhere"))).await;
    let before = (revision(&cluster).await, cluster.writes());
    assert!(before.1 > 0, "writes are counted");
    cluster.advance(24 * 60 * MINUTE).await;
    assert_eq!((revision(&cluster).await, cluster.writes()), before);
    cluster.assert_all_run();
}

async fn revision(cluster: &TestCluster) -> Option<String> {
    let pods: Api<Pod> = cluster.api();
    let list = pods.list(&ListParams::default()).await.unwrap();
    list.metadata.resource_version
}

/// All that `neap up` runs except pods, and a leader elector.
fn all_components(context: &Context) -> Result<Vec<Component>, WatchesStopped> {
    let mut components = crate::components(context, Path::new("/nowhere"))?;
    let options = node::NodeOptions {
        name: "here".into(),
        folder: "/nowhere".into(),
        launcher: "/bin/neap".into(),
        images: Images::builtin(Path::new("/bin/neap")).into(),
        block: Block::new(3).unwrap(),
        environment: BTreeMap::new(),
        namespaces: true,
        own_proc: false,
        restricted: false,
        as_root: false,
    };
    let mut machine = Machine::this(Path::new("/"), "v1.36.3");
    // The pods of `greedy` fit no node, whatever machine this runs on.
    machine.cores = 1;
    components.push(register::component(context, &options, &machine)?);
    let options = ElectionOptions {
        namespace: "default".into(),
        name: "neap".into(),
        identity: "me".into(),
        timings: LeaseTimings::default(),
    };
    let (elector, _) = Elector::new(context.client.clone(), options, context.clock).unwrap();
    components.push(Component::new("election", |stop| elector.run(stop)));
    Ok(components)
}

/// The purpose of a call that is repeated by time alone.
fn purpose(call: &ApiCall) -> Option<&'static str> {
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
async fn when_nothing_changes_only_watches_leases_and_heartbeats_are_requested() {
    let mut cluster = steady_cluster(all_components).await;
    let before = cluster.calls();
    let watched = |calls: &BTreeMap<ApiCall, usize>| -> Vec<String> {
        let watches = calls.keys().filter(|call| call.method == "WATCH");
        watches.map(|call| call.path.clone()).collect()
    };
    cluster.advance(10 * MINUTE).await;
    let calls = cluster.calls();
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
    cluster.assert_all_run();
}
