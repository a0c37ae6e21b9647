//! Measures the operator: 200 farms of five resources on an API server in this process, whose pods are made
//! ready as soon as their workloads exist. Prints a line of JSON.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{Deployment, StatefulSet},
        core::v1::{ConfigMap, Namespace, Service, ServiceAccount},
        networking::v1::{Ingress, NetworkPolicy},
        policy::v1::PodDisruptionBudget,
    },
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use neap_farm::{
    api::{
        BuildbarnBrowser, BuildbarnFrontend, BuildbarnScheduler, BuildbarnStorage, BuildbarnWorker,
        State, definitions,
    },
    operator,
};
use neap_kit::{apply::Object, clock::Clock, context::Context, lease::Leadership, watch::Watches};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

const FARMS: usize = 200;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pocket = Pocket::open(Options::new(Environment::simulated(7))).await?;
    let users = Client::new(pocket.service(), "default");
    let writes = Arc::<AtomicU64>::default();
    let counted = writes.clone();
    let operators =
        pocket
            .service()
            .map_request(move |request: http::Request<kube::client::Body>| {
                if request.method() != http::Method::GET {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
                request
            });
    let clock = Clock::system();
    let all = Api::all(users.clone());
    for definition in definitions() {
        all.create(&PostParams::default(), &definition).await?;
    }
    clock.sleep(Duration::from_secs(1)).await;
    let (watches, runner) = Watches::new(clock);
    let context = Context {
        client: Client::new(operators, "default"),
        watches,
        leadership: Leadership::without_election(clock),
        clock,
    };
    let stop = CancellationToken::new();
    let mut tasks = tokio::task::JoinSet::new();
    for component in operator::components(&context, "/nowhere".into(), "buildbarn-system")? {
        tasks.spawn(component.run(stop.clone()));
    }
    tasks.spawn(runner.run(stop.clone()));
    tasks.spawn(ready_pods(users.clone(), clock));
    let before = resident();
    create_farms(&users).await?;
    let begun = clock.uptime();
    while !all_ready(&users).await? {
        clock.sleep(Duration::from_millis(250)).await;
    }
    let took = clock.uptime().saturating_sub(begun);
    clock.sleep(Duration::from_secs(3)).await;
    let after_ready = writes.load(Ordering::Relaxed);
    clock.sleep(Duration::from_secs(20)).await;
    let steady = writes.load(Ordering::Relaxed) - after_ready;
    let objects = objects(&users).await?;
    let figures = json!({
        "farms": FARMS,
        "secondsUntilReady": took.as_secs_f64(),
        "writesPerFarm": after_ready as f64 / FARMS as f64,
        "objectsPerFarm": objects as f64 / FARMS as f64,
        "writesInSteadyState": steady,
        "residentMiBWithServer": resident() - before,
    });
    std::io::Write::write_all(&mut std::io::stdout(), format!("{figures}\n").as_bytes())?;
    Ok(())
}

async fn create_farms(client: &Client) -> kube::Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for number in 0..FARMS {
        let name = format!("farm-{number}");
        let namespace = parsed(json!({"metadata": {"name": name}}));
        namespaces
            .create(&PostParams::default(), &namespace)
            .await?;
        create::<BuildbarnStorage>(client, &name, "storage").await?;
        create::<BuildbarnScheduler>(client, &name, "scheduler").await?;
        create::<BuildbarnWorker>(client, &name, "linux").await?;
        create::<BuildbarnFrontend>(client, &name, "frontend").await?;
        create::<BuildbarnBrowser>(client, &name, "browser").await?;
    }
    Ok(())
}

async fn create<K>(client: &Client, namespace: &str, name: &str) -> kube::Result<()>
where
    K: Object + Resource<Scope = NamespaceResourceScope>,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let object = parsed(json!({"metadata": {"name": name}, "spec": {}}));
    api.create(&PostParams::default(), &object).await.map(drop)
}

#[expect(clippy::expect_used, reason = "the objects are written above")]
fn parsed<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("the object has the form of its kind")
}

/// Does what the controllers of a cluster do, as far as the operator sees it.
async fn ready_pods(client: Client, clock: Clock) {
    loop {
        let _ = mark::<Deployment>(&client).await;
        let _ = mark::<StatefulSet>(&client).await;
        clock.sleep(Duration::from_millis(500)).await;
    }
}

async fn mark<K>(client: &Client) -> kube::Result<()>
where
    K: Object + Resource<Scope = NamespaceResourceScope>,
{
    let all: Api<K> = Api::all(client.clone());
    for workload in all.list(&ListParams::default()).await? {
        let value = serde_json::to_value(&workload).unwrap_or_default();
        let generation = workload.meta().generation;
        if value["status"]["observedGeneration"] == json!(generation) {
            continue;
        }
        let replicas = &value["spec"]["replicas"];
        let status = json!({"status": {
            "observedGeneration": generation, "replicas": replicas,
            "readyReplicas": replicas, "updatedReplicas": replicas,
        }});
        let namespace = workload.namespace().unwrap_or_default();
        let api: Api<K> = Api::namespaced(client.clone(), &namespace);
        let patch = Patch::Merge(&status);
        api.patch_status(&workload.name_any(), &PatchParams::default(), &patch)
            .await?;
    }
    Ok(())
}

async fn all_ready(client: &Client) -> kube::Result<bool> {
    let mut ready = 0;
    macro_rules! count {
        ($($kind:ident),+) => {
            $(for it in Api::<$kind>::all(client.clone()).list(&ListParams::default()).await? {
                ready += usize::from(it.status.and_then(|it| it.state) == Some(State::Ready));
            })+
        };
    }
    count!(
        BuildbarnStorage,
        BuildbarnScheduler,
        BuildbarnWorker,
        BuildbarnFrontend,
        BuildbarnBrowser
    );
    Ok(ready == FARMS * 5)
}

async fn objects(client: &Client) -> kube::Result<usize> {
    let mut count = 0;
    macro_rules! count {
        ($($kind:ident),+) => {
            $(for it in Api::<$kind>::all(client.clone()).list(&ListParams::default()).await? {
                count += usize::from(!it.owner_references().is_empty());
            })+
        };
    }
    count!(
        ConfigMap,
        Service,
        ServiceAccount,
        Deployment,
        StatefulSet,
        Ingress,
        NetworkPolicy
    );
    count!(PodDisruptionBudget);
    Ok(count)
}

/// The resident memory of this process, in mebibytes.
fn resident() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next());
    kibibytes.and_then(|it| it.parse::<i64>().ok()).unwrap_or(0) / 1024
}
