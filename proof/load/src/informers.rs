//! Runs the real kube-controller-manager against a `neap up`: Go informers on every kind.
//!
//! Each of its controllers gets work, through kubectl, while the server does its own housekeeping.
//! All of it must come to rest within the run, and kube-controller-manager must log no complaint.

mod api;
mod controllers;
mod kubectl;
mod log;
mod manager;
mod node;
mod work;

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

pub use self::manager::ControllerIdentity;
use self::{api::Api, kubectl::Kubectl, manager::Manager, node::Node};
use crate::{server::Server, stopwatch::Stopwatch};

/// Objects in the namespace whose deletion is timed.
const CROWD_SIZE: usize = 100;

/// The parameters of a run.
#[derive(Debug, Clone)]
pub struct InformerRunOptions {
    pub neap: PathBuf,
    /// The program that is kube-controller-manager and kubectl.
    pub reference: PathBuf,
    /// The minimum time for which the controllers run.
    pub length: Duration,
    /// The identity of the controllers.
    pub identity: ControllerIdentity,
}

/// Runs it and reports each result; the error contains the relevant lines of the log.
pub async fn run(plan: &InformerRunOptions, report: impl Fn(String)) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("informers-").tempdir()?;
    let data = folder.path().join("data");
    let mut server = Server::start(&plan.neap, Some(&data))?;
    let watch = Stopwatch::start();
    let mut manager = Manager::start(&plan.reference, &data, plan.identity)?;
    let run_state = InformerRun {
        api: Api(server.client()?),
        kubectl: Kubectl {
            program: plan.reference.clone(),
            folder: data.clone(),
        },
        report: &report,
    };
    let mut node = Node::start(&run_state.api).await?;
    let cpu_seconds = run_state.work().await;
    if cpu_seconds.is_ok() {
        tokio::time::sleep(plan.length.saturating_sub(watch.elapsed())).await;
    }
    let calm = manager.log()?;
    // Nothing comes to rest without the node, so its end is the cause of any other failure.
    node.must_run()?;
    check_log(cpu_seconds, &log::complaints(&calm))?;
    report(format!("no complaints in {} s", watch.elapsed().as_secs()));
    log::collector_follows(&calm, &deletable(&run_state.api).await?)?;
    let changed = run_state.disrupt().await;
    let later = manager.log()?;
    let later = later.get(calm.len()..).unwrap_or_default();
    node.must_run()?;
    check_log(changed, &log::complaints_during_deletion(later))?;
    ensure!(!server.has_ended(), "the server is gone");
    Ok(())
}

/// Fails if the work was not done, or with a complaint.
fn check_log(done: Result<()>, complaints: &[&str]) -> Result<()> {
    let said = complaints.join("\n");
    if let Err(error) = done {
        bail!("{error:#}\nkube-controller-manager said:\n{said}");
    }
    ensure!(
        complaints.is_empty(),
        "kube-controller-manager complains:\n{said}"
    );
    Ok(())
}

/// What happens while the controllers run.
struct InformerRun<'a, T> {
    api: Api,
    kubectl: Kubectl,
    report: &'a T,
}

impl<T: Fn(String)> InformerRun<'_, T> {
    /// The work of all controllers, and objects that are created again after deletion.
    async fn work(&self) -> Result<()> {
        let Self {
            api,
            kubectl,
            report,
        } = self;
        kubectl.run("create namespace harbour").await?;
        kubectl
            .run("config set-context --current --namespace=harbour")
            .await?;
        kubectl
            .run("create deployment web --image=example.com/web:1 --replicas=3")
            .await?;
        kubectl
            .run("rollout status deployment web --timeout=90s")
            .await?;
        kubectl.file("work.yaml", work::MANIFEST)?;
        kubectl.run("apply -f work.yaml").await?;
        work::is_done(api, report).await?;
        default_objects_are_recreated(api, kubectl).await?;
        report("what every namespace has, again after it was deleted".into());
        crowd_ends(api, kubectl, report).await?;
        nothing_was_refused(api).await
    }

    /// Pods that are replaced, and objects that are deleted while controllers reconcile them.
    async fn disrupt(&self) -> Result<()> {
        let Self {
            api,
            kubectl,
            report,
        } = self;
        rollouts(kubectl).await?;
        report("a rollout, its undoing, a drained node".into());
        owners_go(api, kubectl).await?;
        report("dependents that follow their owners, or not, as they were asked".into());
        kubectl
            .run("delete namespace harbour --timeout=90s")
            .await?;
        report("the end of a namespace with everything in it".into());
        Ok(())
    }
}

/// The server and the controllers both create these; one of them is enough.
async fn default_objects_are_recreated(api: &Api, kubectl: &Kubectl) -> Result<()> {
    for (object, collection, name) in [
        (
            "serviceaccount default",
            "/api/v1/namespaces/harbour/serviceaccounts",
            "default",
        ),
        (
            "configmap kube-root-ca.crt",
            "/api/v1/namespaces/harbour/configmaps",
            "kube-root-ca.crt",
        ),
    ] {
        kubectl.run(&format!("delete {object}")).await?;
        let is_there = |items: &[Value]| items.iter().any(|item| item["metadata"]["name"] == name);
        api.until(object, collection, is_there).await?;
    }
    Ok(())
}

async fn rollouts(kubectl: &Kubectl) -> Result<()> {
    let status = "rollout status deployment web --timeout=90s";
    kubectl
        .run("set image deployment web web=example.com/web:2")
        .await?;
    kubectl.run(status).await?;
    let history = kubectl.run("rollout history deployment web").await?;
    ensure!(
        history.lines().any(|line| line.starts_with("2 ")),
        "{history}"
    );
    kubectl.run("rollout undo deployment web").await?;
    kubectl.run(status).await?;
    kubectl.run("rollout restart statefulset db").await?;
    kubectl
        .run("rollout status statefulset db --timeout=90s")
        .await?;
    kubectl.run("scale deployment web --replicas=5").await?;
    kubectl.run(status).await?;
    let pier = node::NAME;
    kubectl
        .run(&format!(
            "drain {pier} --ignore-daemonsets --force --timeout=90s"
        ))
        .await?;
    kubectl.run(&format!("uncordon {pier}")).await?;
    kubectl.run(status).await?;
    Ok(())
}

async fn owners_go(api: &Api, kubectl: &Kubectl) -> Result<()> {
    let pods = "/api/v1/namespaces/harbour/pods";
    let labelled = |items: &[Value], app: &str| {
        let of_app = |pod: &&Value| pod["metadata"]["labels"]["app"] == app;
        items.iter().filter(of_app).cloned().collect::<Vec<_>>()
    };
    kubectl.run("delete deployment web --timeout=90s").await?;
    api.until("the pods go with their deployment", pods, |items| {
        labelled(items, "web").is_empty()
    })
    .await?;
    kubectl
        .run("delete statefulset db --cascade=foreground --timeout=90s")
        .await?;
    let left = labelled(&items(api, pods).await?, "db");
    ensure!(left.is_empty(), "a foreground delete left {left:?}");
    kubectl
        .run("delete replicationcontroller old --cascade=orphan --timeout=90s")
        .await?;
    let orphans = labelled(&items(api, pods).await?, "old");
    let alone = |pod: &Value| pod["metadata"]["ownerReferences"].is_null();
    ensure!(
        orphans.len() == 1 && orphans.iter().all(alone),
        "orphans are {orphans:?}"
    );
    Ok(())
}

/// Times the deletion of a full namespace.
async fn crowd_ends(api: &Api, kubectl: &Kubectl, report: &impl Fn(String)) -> Result<()> {
    kubectl.run("create namespace crowd").await?;
    for number in 0..CROWD_SIZE {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{number}")},
        });
        api.create("/api/v1/namespaces/crowd/configmaps", &map)
            .await?;
    }
    api.delete("/api/v1/namespaces/crowd").await?;
    let gone = |items: &[Value]| items.iter().all(|item| item["metadata"]["name"] != "crowd");
    let took = api
        .until("the end of the namespace", "/api/v1/namespaces", gone)
        .await?;
    report(format!(
        "the end of a namespace with {CROWD_SIZE} objects, after {} ms",
        took.as_millis()
    ));
    Ok(())
}

/// A controller that was refused something records an Event.
async fn nothing_was_refused(api: &Api) -> Result<()> {
    let events = items(api, "/api/v1/events").await?;
    let warnings: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "Warning")
        .map(|event| format!("{}: {}", event["reason"], event["message"]))
        .collect();
    ensure!(warnings.is_empty(), "events warn: {warnings:?}");
    Ok(())
}

async fn items(api: &Api, collection: &str) -> Result<Vec<Value>> {
    let mut list = api.get(collection).await?;
    let items = list["items"].as_array_mut().context("not a list")?;
    Ok(std::mem::take(items))
}

/// The resources that can be deleted, as `group/plural` or the plural alone. Events are left out,
/// because the garbage collector ignores them.
async fn deletable(api: &Api) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let groups = api.get("/apis").await?;
    let groups = groups["groups"].as_array().context("no groups")?;
    let versions = groups
        .iter()
        .filter_map(|group| group["preferredVersion"]["groupVersion"].as_str());
    let paths = versions.map(|version| format!("/apis/{version}"));
    for path in paths.chain(["/api/v1".to_owned()]) {
        let document = api.get(&path).await?;
        let version = document["groupVersion"].as_str().unwrap_or_default();
        let prefix = version
            .split_once('/')
            .map_or(String::new(), |(group, _)| format!("{group}/"));
        let resources = document["resources"].as_array().context("no resources")?;
        let names = resources.iter().filter(|resource| is_deletable(resource));
        found.extend(
            names.filter_map(|resource| Some(format!("{prefix}{}", resource["name"].as_str()?))),
        );
    }
    found.retain(|name| name != "events" && name != "events.k8s.io/events");
    Ok(found)
}

fn is_deletable(resource: &Value) -> bool {
    let verbs = resource["verbs"].as_array();
    let can = |verb: &str| verbs.is_some_and(|verbs| verbs.iter().any(|known| known == verb));
    ["delete", "list", "watch"].iter().all(|verb| can(verb))
}
