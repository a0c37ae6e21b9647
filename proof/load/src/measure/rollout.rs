//! How soon the pods of a Deployment exist.

use std::time::Duration;

use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{Figure, median, milliseconds};
use crate::{
    client::{Client, Connection, Watch},
    server::Server,
    stopwatch::Stopwatch,
    subject::{RunningServer, Storage, Subject},
};

const REPLICAS: usize = 50;
/// Time to wait for pods and accounts.
const ROLLOUT_TIMEOUT: Duration = Duration::from_mins(1);
const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
/// Pods of the real control plane need a service account, which a controller creates.
const ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/default";
const CONTROLLERS: &str = "deployment-controller,replicaset-controller,serviceaccount-controller";

/// Ours with its node and its controllers, or the real control plane with the controllers it needs.
enum FullServer {
    Neap(Server),
    Reference(RunningServer),
}

impl FullServer {
    async fn start(subject: &Subject) -> Result<Self> {
        match subject {
            Subject::Neap(neap) => {
                let neap = neap.clone();
                let server = tokio::task::spawn_blocking(move || Server::start_whole(&neap, None));
                Ok(Self::Neap(server.await??))
            }
            Subject::Reference(plan) => {
                let mut plan = plan.clone();
                plan.controllers = Some(CONTROLLERS.to_owned());
                let running = Subject::Reference(plan).start(Storage::Memory).await?;
                Ok(Self::Reference(running))
            }
        }
    }

    fn client(&self) -> Result<Client> {
        match self {
            Self::Neap(server) => server.client(),
            Self::Reference(running) => Ok(running.client().clone()),
        }
    }
}

/// From the POST of a Deployment of 50 until all its pods exist.
pub async fn rollout(subject: &Subject, times: usize) -> Result<Vec<Figure>> {
    let mut taken = Vec::new();
    for _ in 0..times {
        let server = FullServer::start(subject).await?;
        let client = server.client()?;
        let mut connection = client.connect().await?;
        let ready = account(&mut connection);
        timeout(ROLLOUT_TIMEOUT, ready)
            .await
            .context("no account")??;
        // Once one pod exists, the controllers have started to work.
        pods(&client, &mut connection, "first", 1).await?;
        let took = pods(&client, &mut connection, "many", REPLICAS).await?;
        taken.push(milliseconds(took));
    }
    let worst = taken.iter().copied().fold(0.0, f64::max);
    Ok(vec![("pods", median(taken)?), ("pods worst", worst)])
}

async fn account(connection: &mut Connection) -> Result<()> {
    while connection.send(Method::GET, ACCOUNT, "").await?.status != 200 {
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Creates a Deployment and waits for its pods; returns the time that took.
async fn pods(
    client: &Client,
    connection: &mut Connection,
    name: &str,
    replicas: usize,
) -> Result<Duration> {
    let path = format!("{PODS}?watch=1&labelSelector=app%3D{name}");
    let mut watch = client.connect().await?.watch(&path).await?;
    let body = deployment(name, replicas).to_string();
    let stopwatch = Stopwatch::start();
    let made = connection.send(Method::POST, DEPLOYMENTS, body).await?;
    made.success()?;
    timeout(ROLLOUT_TIMEOUT, added(&mut watch, replicas))
        .await
        .with_context(|| format!("{name}: not all pods"))??;
    Ok(stopwatch.elapsed())
}

async fn added(watch: &mut Watch, mut missing: usize) -> Result<()> {
    while missing > 0 {
        let event = watch.next().await?.context("the watch ended")?;
        missing -= usize::from(event["type"] == "ADDED");
    }
    Ok(())
}

fn deployment(name: &str, replicas: usize) -> Value {
    let labels = json!({"app": name});
    let container = json!({"name": "main", "image": "busybox", "command": ["sleep", "1000"]});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    })
}
