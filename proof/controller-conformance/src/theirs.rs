//! The real kube-controller-manager on the real server, in real time.

use std::path::Path;

use anyhow::{Context, Result};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use neap_kit::clock::Clock;
use neap_load::reference::ReferenceOptions;
use tokio::task::JoinSet;

use crate::{
    node,
    play::{Recording, ScenarioRunner, Unfinished},
    scenario::Scenario,
    write_tracker::WriteTracker,
};

/// Those that we have too, and those whose work our server does by itself.
const CONTROLLERS: [&str; 13] = [
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "persistentvolumeclaim-protection-controller",
    "replicaset-controller",
    "serviceaccount-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
];

/// Starts the control plane of `program`, and plays scenarios there.
pub async fn play(program: &Path, scenarios: &[Scenario]) -> Result<Recording> {
    let mut plan = ReferenceOptions::new(program);
    plan.controllers = Some(CONTROLLERS.join(","));
    let reference = plan.start().await?;
    let file = Kubeconfig::read_from(reference.kubeconfig())?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let clock = Clock::system();
    node::register(&client).await?;
    let tracker = WriteTracker::new(clock);
    let mut tasks = JoinSet::new();
    tasks.spawn(node::run(client.clone(), clock));
    tasks.spawn(tracker.clone().run(client.clone()));
    let runner = ScenarioRunner {
        client,
        clock,
        tracker,
        unfinished: Unfinished::default(),
    };
    tokio::select! {
        played = runner.play(scenarios) => Ok(played),
        ended = tasks.join_next() => {
            ended.context("nothing runs")???;
            anyhow::bail!("the play of the nodes has ended")
        }
    }
}
