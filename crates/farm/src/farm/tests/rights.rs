//! The operator has the rights that it uses, and no others.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use serde_json::{Value, json};

use super::{
    MINUTE, SECOND,
    cluster::{TestCluster, UsedRight},
};
use crate::{
    api::{
        BuildbarnBrowser, BuildbarnFrontend, BuildbarnScheduler, BuildbarnStorage, BuildbarnWorker,
    },
    area::AREA,
};

/// Where owner references are checked, setting one needs the right to the finalizers of the owner.
const FINALIZERS: &str = "/finalizers";
/// The first two are used in other tests: a former configuration is deleted after its roll-out, and old
/// Operations after later ones. The others are deleted with their owner, by the cluster.
const NOT_HERE: [(&str, &str, &str); 7] = [
    ("", "configmaps", "delete"),
    ("neaptide.dev", "operations", "delete"),
    ("", "services", "delete"),
    ("networking.k8s.io", "networkpolicies", "delete"),
    ("policy", "poddisruptionbudgets", "delete"),
    ("monitoring.coreos.com", "servicemonitors", "delete"),
    ("apps", "statefulsets", "delete"),
];

fn granted() -> BTreeSet<UsedRight> {
    let rights = AREA.roles[0].rights.iter();
    let all = rights.flat_map(|right| {
        right.resources.iter().flat_map(move |resource| {
            let verbs = right.verbs.iter();
            verbs.map(move |verb| {
                let group = right.group.to_owned();
                (group, (*resource).to_owned(), (*verb).to_owned())
            })
        })
    });
    all.collect()
}

/// Everything that the operator does, but for elections.
async fn work(cluster: &TestCluster) {
    // A pool shrinks.
    let names = ["w-0", "w-1", "w-2"];
    for name in names {
        cluster.worker_pod(name).await;
        cluster.queue.register(name, false);
    }
    cluster.pass(SECOND).await;
    let smaller = json!({"spec": {"replicas": 1}});
    cluster
        .merge::<BuildbarnWorker>("ubuntu22-04", smaller)
        .await;
    cluster.pass(SECOND * 30).await;
    assert_eq!(cluster.replicas("ubuntu22-04").await, 1);
    for name in names {
        cluster.remove_pod(name).await;
    }
    cluster.settle().await;
    cluster.remove::<Service>("frontend").await;
    // Removed fields remove their objects.
    let off =
        json!({"spec": {"ingress": {"enabled": false}, "pod": {"serviceAccountName": "other"}}});
    cluster.merge::<BuildbarnScheduler>("scheduler", off).await;
    let one = json!({"spec": {"replicas": 1, "serviceType": "NodePort"}});
    cluster.merge::<BuildbarnFrontend>("frontend", one).await;
    cluster.settle().await;
    // A volume is smaller than its template.
    cluster
        .create::<PersistentVolumeClaim>(json!({
            "metadata": {"name": "cas-storage-0"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}},
            },
        }))
        .await;
    // A pool of another instance is another Deployment.
    let other = json!({"spec": {"instance": "other"}});
    cluster.merge::<BuildbarnWorker>("ubuntu22-04", other).await;
    cluster.settle().await;
    // More roll-outs than are remembered, and the same warning twice.
    for number in 0..7 {
        let annotations = json!({"number": number.to_string()});
        let change = json!({"spec": {"pod": {"annotations": annotations}}});
        cluster.merge::<BuildbarnBrowser>("browser", change).await;
        cluster.settle().await;
    }
    for replicas in [json!(0), Value::Null, json!(0), Value::Null] {
        let change = json!({"spec": {"replicas": replicas}});
        cluster.merge::<BuildbarnStorage>("storage", change).await;
        cluster.pass(MINUTE).await;
    }
    cluster.remove::<BuildbarnWorker>("ubuntu22-04").await;
    cluster.pass(MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn the_operator_has_the_rights_that_it_uses_and_no_others() {
    let cluster = TestCluster::ready().await;
    cluster.serve_monitors().await;
    work(&cluster).await;
    let (used, granted) = (cluster.rights(), granted());
    let beyond: Vec<_> = used.difference(&granted).collect();
    assert!(beyond.is_empty(), "used without being granted: {beyond:#?}");
    let idle = granted.difference(&used).filter(|(group, resource, verb)| {
        // An object that is applied and does not exist is created, which needs that right too.
        let applied = (group.clone(), resource.clone(), "patch".to_owned());
        let creates = verb == "create" && used.contains(&applied);
        !creates && !resource.ends_with(FINALIZERS) && !NOT_HERE.contains(&(group, resource, verb))
    });
    let idle: Vec<_> = idle.collect();
    assert!(idle.is_empty(), "granted and never used: {idle:#?}");
}
