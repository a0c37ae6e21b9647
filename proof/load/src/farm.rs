//! Figures of the operator of farms: many farms at once, in a process of its own next to the API server.
//!
//! Nothing runs the workloads: [`workloads`] creates their pods, and reports that they are ready.

mod workloads;

use std::{collections::BTreeMap, path::Path, process::Command, time::Duration};

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use self::workloads::ReadyWorkloads;
use crate::{
    bulk::{BulkRequest, send_all},
    client::{Client, Connection},
    measure::{CONNECTIONS, Figure},
    objects::served,
    process::{peak_bytes, resident_bytes},
    release::{BackgroundProcess, free_address, install},
    server::Server,
    stopwatch::Stopwatch,
};

/// The five kinds, their names in paths, and the objects of a farm.
const KINDS: [(&str, &str, &str); 5] = [
    ("BuildbarnStorage", "buildbarnstorages", "storage"),
    ("BuildbarnScheduler", "buildbarnschedulers", "scheduler"),
    ("BuildbarnWorker", "buildbarnworkers", "ubuntu22-04"),
    ("BuildbarnFrontend", "buildbarnfrontends", "frontend"),
    ("BuildbarnBrowser", "buildbarnbrowsers", "browser"),
];
/// What the operator creates.
const OWNED: [&str; 8] = [
    "/api/v1/configmaps",
    "/api/v1/serviceaccounts",
    "/api/v1/services",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/statefulsets",
    "/apis/networking.k8s.io/v1/ingresses",
    "/apis/networking.k8s.io/v1/networkpolicies",
    "/apis/policy/v1/poddisruptionbudgets",
];
const SELECTOR: &str = "labelSelector=app.kubernetes.io/managed-by%3Dbuildbarn-operator";
/// The calls of the operator, by its metrics, and those that write nothing.
const CALLS: &str = "neaptide_api_calls_total{";
const READS: [&str; 3] = ["get", "list", "watch"];
/// The writes that each resource may cost besides its objects.
const WRITES_PER_RESOURCE: f64 = 2.0;

/// Time for all farms to become ready.
const READY_TIMEOUT: Duration = Duration::from_mins(10);
const READY_POLL: Duration = Duration::from_millis(250);
/// Time without writes after which the operator counts as at rest.
const REST: Duration = Duration::from_secs(10);
/// Time for which writes at rest are counted.
const COUNT_PERIOD: Duration = Duration::from_mins(1);

/// The time until as many farms are ready, what they cost, and what is written when nothing changes.
pub async fn operator(neap: &Path, farms: usize) -> Result<Vec<Figure>> {
    let server = Server::start_roomy(neap)?;
    for area in ["farm", "operations"] {
        install(neap, area, server.kubeconfig())?;
    }
    operator_on(neap, farms, server.client()?, server.kubeconfig()).await
}

/// The same on a running server that has the definitions. `kubeconfig` is that of the operator, and `client`
/// creates everything else.
pub async fn operator_on(
    neap: &Path,
    farms: usize,
    client: Client,
    kubeconfig: &Path,
) -> Result<Vec<Figure>> {
    let mut connection = client.connect().await?;
    for (_, plural, _) in KINDS {
        served(&mut connection, &collection(plural)).await?;
    }
    send_all(&client, CONNECTIONS, farms, namespace).await?;
    let mut operator = start(neap, kubeconfig)?;
    operator.ready("/readyz", READY_TIMEOUT).await?;
    let empty = resident_bytes(operator.id())?;
    let mut workloads = ReadyWorkloads::start(&client).await?;
    let watch = Stopwatch::start();
    send_all(&client, CONNECTIONS, farms * KINDS.len(), component).await?;
    wait_until_ready(&mut connection, &mut workloads, farms).await?;
    let ready = watch.elapsed();
    let written = rest(&operator).await?;
    let pods = workloads.pods().await?;
    let objects = count(&mut connection).await?;
    let (resident, peak) = (resident_bytes(operator.id())?, peak_bytes(operator.id())?);
    sleep(COUNT_PERIOD).await;
    let at_rest = writes(&operator).await? - written;
    let per_farm = |number: f64| number / farms as f64;
    let allowed = objects + WRITES_PER_RESOURCE * (farms * KINDS.len()) as f64;
    Ok(vec![
        ("ready", ready.as_secs_f64()),
        ("writes", per_farm(written)),
        ("objects", per_farm(objects)),
        ("writes beyond", per_farm(written - allowed)),
        ("empty", empty as f64),
        ("resident", resident as f64),
        ("peak", peak as f64),
        ("writes at rest", at_rest),
        ("pods", pods as f64),
        ("farms", farms as f64),
    ])
}

fn collection(plural: &str) -> String {
    format!("/apis/buildbarn.io/v1alpha1/{plural}")
}

fn namespace_name(farm: usize) -> String {
    format!("farm-{farm}")
}

fn post(path: String, object: &Value) -> BulkRequest {
    BulkRequest {
        method: Method::POST,
        path,
        content_type: "application/json",
        body: object.to_string(),
    }
}

fn namespace(farm: usize) -> BulkRequest {
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace_name(farm)},
    });
    post("/api/v1/namespaces".to_owned(), &object)
}

/// One of the resources, all of which have the defaults of their kind.
fn component(number: usize) -> BulkRequest {
    let (farm, kind) = (number / KINDS.len(), number % KINDS.len());
    let (kind, plural, name) = KINDS[kind];
    let namespace = namespace_name(farm);
    let object = json!({
        "apiVersion": "buildbarn.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": {},
    });
    let path = format!("/apis/buildbarn.io/v1alpha1/namespaces/{namespace}/{plural}");
    post(path, &object)
}

fn start(neap: &Path, kubeconfig: &Path) -> Result<BackgroundProcess> {
    let address = free_address()?;
    let mut command = Command::new(neap);
    command
        .args(["farm", "operator", "--health-probe-bind-address=0"])
        .arg(format!("--metrics-bind-address={address}"))
        .arg("--kubeconfig")
        .arg(kubeconfig);
    BackgroundProcess::start(&mut command, address)
}

/// Waits until the state of every resource is Ready.
async fn wait_until_ready(
    connection: &mut Connection,
    workloads: &mut ReadyWorkloads,
    farms: usize,
) -> Result<()> {
    let watch = Stopwatch::start();
    for (_, plural, _) in KINDS {
        let path = collection(plural);
        loop {
            let all = connection.send(Method::GET, &path, "").await?.success()?;
            let states = states(&all);
            let ready = states.get("Ready").copied().unwrap_or_default();
            if ready == farms {
                break;
            }
            workloads.pods().await?;
            ensure!(
                watch.elapsed() < READY_TIMEOUT,
                "of {farms} {plural} only {ready} are ready: {states:?}"
            );
            sleep(READY_POLL).await;
        }
    }
    Ok(())
}

/// How many resources have each state.
fn states(list: &Value) -> BTreeMap<String, usize> {
    let mut states = BTreeMap::new();
    for object in list["items"].as_array().into_iter().flatten() {
        let state = object["status"]["state"].as_str().unwrap_or("none");
        *states.entry(state.to_owned()).or_default() += 1;
    }
    states
}

/// Waits until the operator writes nothing. Returns what it has written.
async fn rest(operator: &BackgroundProcess) -> Result<f64> {
    let watch = Stopwatch::start();
    let mut before = writes(operator).await?;
    loop {
        sleep(REST).await;
        let now = writes(operator).await?;
        if (now - before).abs() < 0.5 {
            return Ok(now);
        }
        ensure!(
            watch.elapsed() < READY_TIMEOUT,
            "the operator does not cease to write: {now} writes"
        );
        before = now;
    }
}

/// The calls of the operator that write.
async fn writes(operator: &BackgroundProcess) -> Result<f64> {
    let mut writes = operator.metric(CALLS).await?;
    ensure!(writes > 0.0, "the operator counts no calls");
    for verb in READS {
        let prefix = format!("{CALLS}verb=\"{verb}\"");
        writes -= operator.metric(&prefix).await?;
    }
    Ok(writes)
}

/// The objects that the operator has created.
async fn count(connection: &mut Connection) -> Result<f64> {
    let mut objects = 0;
    for path in OWNED {
        let path = format!("{path}?{SELECTOR}");
        let list = connection.send(Method::GET, &path, "").await?.success()?;
        objects += list["items"].as_array().map_or(0, Vec::len);
    }
    ensure!(objects > 0, "the operator has created nothing");
    Ok(objects as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_farm_has_one_resource_of_each_kind() {
        let requests: Vec<_> = (0..10).map(component).collect();
        let of_second = requests.iter().filter(|it| it.path.contains("/farm-1/"));
        assert_eq!(of_second.count(), 5);
        assert!(requests[4].path.ends_with("/farm-0/buildbarnbrowsers"));
    }

    #[test]
    fn resources_without_a_state_are_counted_as_such() {
        let list = json!({"items": [
            {"status": {"state": "Ready"}}, {"status": {"state": "Creating"}}, {},
        ]});
        let states = states(&list);
        assert_eq!(states["Ready"], 1);
        assert_eq!(states["none"], 1);
    }
}
