//! The real kube-controller-manager at work on a `neap up`: Go informers on every kind.
//!
//! It is given something to do for each of its controllers, through kubectl, while the server does
//! its own housekeeping. All of it must come to rest within the run, and kube-controller-manager
//! must have nothing to complain about.

mod api;
mod controllers;
mod kubectl;
mod log;
mod manager;
mod node;
mod work;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

pub use self::manager::Identity;
use self::{api::Api, kubectl::Kubectl, manager::Manager, node::Node};
use crate::{server::Server, stopwatch::Stopwatch};

/// How many objects are in the namespace whose end is timed.
const CROWD: usize = 100;

/// What to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The server to work on.
    pub neap: PathBuf,
    /// The program that is kube-controller-manager and kubectl.
    pub reference: PathBuf,
    /// How long the controllers run at least.
    pub length: Duration,
    /// As whom they come.
    pub identity: Identity,
}

/// Runs it and tells what was seen; an error with the log's own words if something is not as it
/// should be.
pub async fn run(plan: &Plan, tell: impl Fn(String)) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("informers-").tempdir()?;
    let data = folder.path().join("data");
    let mut server = Server::start(&plan.neap, Some(&data))?;
    let watch = Stopwatch::start();
    let mut manager = Manager::start(&plan.reference, &data, plan.identity)?;
    let done = work(plan, &server, &data, &tell).await;
    let left = plan.length.saturating_sub(watch.elapsed());
    if done.is_ok() {
        tokio::time::sleep(left).await;
    }
    let said = manager.log()?;
    drop(manager);
    let complaints = log::complaints(&said);
    if let Err(error) = done {
        bail!(
            "{error:#}\nkube-controller-manager said:\n{}",
            complaints.join("\n")
        );
    }
    if !complaints.is_empty() {
        bail!(
            "kube-controller-manager complains:\n{}",
            complaints.join("\n")
        );
    }
    log::collector_follows(&said, &deletable(&Api(server.client()?)).await?)?;
    anyhow::ensure!(!server.has_ended(), "the server is gone");
    tell(format!("no complaints in {} s", watch.elapsed().as_secs()));
    Ok(())
}

/// The order of the day.
async fn work(plan: &Plan, server: &Server, data: &Path, tell: &impl Fn(String)) -> Result<()> {
    let api = Api(server.client()?);
    let kubectl = Kubectl {
        program: plan.reference.clone(),
        folder: data.to_owned(),
    };
    let mut node = Node::start(&api).await?;
    kubectl.run("create namespace harbour")?;
    kubectl.run("create deployment web -n harbour --image=example.com/web:1 --replicas=3")?;
    kubectl.run("rollout status deployment web -n harbour --timeout=90s")?;
    kubectl.file("work.yaml", work::MANIFEST)?;
    kubectl.run("apply -n harbour -f work.yaml")?;
    work::is_done(&api, tell).await?;
    furniture_returns(&api, &kubectl).await?;
    tell("what every namespace has, again after it was deleted".into());
    rollouts(&kubectl)?;
    tell("a rollout, its undoing, a drained node".into());
    owners_go(&api, &kubectl).await?;
    tell("dependents that follow their owners, or not, as they were asked".into());
    crowd_ends(&api, &kubectl, tell).await?;
    nothing_was_refused(&api).await?;
    kubectl.run("delete namespace harbour --timeout=90s")?;
    tell("the end of a namespace with everything in it".into());
    node.must_run()
}

/// The server and the controllers both make these; one of them is enough.
async fn furniture_returns(api: &Api, kubectl: &Kubectl) -> Result<()> {
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
        kubectl.run(&format!("delete -n harbour {object}"))?;
        let is_there = |items: &[Value]| items.iter().any(|item| item["metadata"]["name"] == name);
        api.until(object, collection, is_there).await?;
    }
    Ok(())
}

fn rollouts(kubectl: &Kubectl) -> Result<()> {
    let status = "rollout status deployment web -n harbour --timeout=90s";
    kubectl.run("set image deployment web -n harbour web=example.com/web:2")?;
    kubectl.run(status)?;
    let history = kubectl.run("rollout history deployment web -n harbour")?;
    anyhow::ensure!(
        history.lines().any(|line| line.starts_with("2 ")),
        "{history}"
    );
    kubectl.run("rollout undo deployment web -n harbour")?;
    kubectl.run(status)?;
    kubectl.run("rollout restart statefulset db -n harbour")?;
    kubectl.run("rollout status statefulset db -n harbour --timeout=90s")?;
    kubectl.run("scale deployment web -n harbour --replicas=5")?;
    kubectl.run(status)?;
    let pier = node::NAME;
    kubectl.run(&format!(
        "drain {pier} --ignore-daemonsets --force --timeout=90s"
    ))?;
    kubectl.run(&format!("uncordon {pier}"))?;
    kubectl.run(status)?;
    Ok(())
}

async fn owners_go(api: &Api, kubectl: &Kubectl) -> Result<()> {
    let pods = "/api/v1/namespaces/harbour/pods";
    let labelled = |items: &[Value], app: &str| {
        let of_app = |pod: &&Value| pod["metadata"]["labels"]["app"] == app;
        items.iter().filter(of_app).cloned().collect::<Vec<_>>()
    };
    kubectl.run("delete deployment web -n harbour --timeout=90s")?;
    api.until("the pods go with their deployment", pods, |items| {
        labelled(items, "web").is_empty()
    })
    .await?;
    kubectl.run("delete statefulset db -n harbour --cascade=foreground --timeout=90s")?;
    let left = labelled(&items(api, pods).await?, "db");
    anyhow::ensure!(left.is_empty(), "a foreground delete left {left:?}");
    kubectl.run("delete replicationcontroller old -n harbour --cascade=orphan --timeout=90s")?;
    let orphans = labelled(&items(api, pods).await?, "old");
    let alone = |pod: &Value| pod["metadata"]["ownerReferences"].is_null();
    anyhow::ensure!(
        orphans.len() == 1 && orphans.iter().all(alone),
        "orphans are {orphans:?}"
    );
    Ok(())
}

/// Times the end of a namespace that is full.
async fn crowd_ends(api: &Api, kubectl: &Kubectl, tell: &impl Fn(String)) -> Result<()> {
    kubectl.run("create namespace crowd")?;
    for number in 0..CROWD {
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
    tell(format!(
        "the end of a namespace with {CROWD} objects, after {} ms",
        took.as_millis()
    ));
    Ok(())
}

/// A controller that was refused something says so in an event.
async fn nothing_was_refused(api: &Api) -> Result<()> {
    let events = items(api, "/api/v1/events").await?;
    let warnings: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "Warning")
        .map(|event| format!("{}: {}", event["reason"], event["message"]))
        .collect();
    anyhow::ensure!(warnings.is_empty(), "events warn: {warnings:?}");
    Ok(())
}

async fn items(api: &Api, collection: &str) -> Result<Vec<Value>> {
    let mut list = api.get(collection).await?;
    let items = list["items"].as_array_mut().context("not a list")?;
    Ok(std::mem::take(items))
}

/// What the server says can be deleted: `group/plural`, or the plural alone. Events are left out,
/// because the garbage collector leaves them out.
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
