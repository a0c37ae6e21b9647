//! How soon a service is woken by its first byte: operator, resolver and API server as processes.

use std::{
    net::{IpAddr, SocketAddr},
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{
    OURS, Theirs,
    clients::{Client, ask_all, hear_all},
    home::{
        self, ELASTI, Home, NAMESPACE, OPERATOR, OPERATOR_HOST, OPERATOR_PORT, PATIENCE,
        RESOLVER_HOST, SLICES,
    },
    open_files,
    pod::Pod,
    proxy::Running,
};
use crate::{
    client::{Connection, Watch},
    measure::{median, milliseconds},
    stopwatch::Stopwatch,
};

/// Who has so many waiting and no pod ever.
const STUCK: &str = "stuck";
const WAITING: usize = 1_000;
/// Those who are woken take turns: so many beside nobody, so many beside who is stuck, and again.
const TURN: usize = 15;
const TURNS: usize = 6;
/// What was asked for last has come in after this time.
const SETTLE: Duration = Duration::from_secs(1);

/// An operator and a resolver, and services that sleep.
struct Scene {
    pod: Pod,
    _home: Home,
    api: Connection,
    scales: Watch,
    _processes: [Running; 2],
}

/// How long a wake took.
struct Took {
    /// From the first byte to the scale write.
    scaled: f64,
    /// From the first byte to the first byte at the pod, which is ready as soon as it is to run.
    heard: f64,
}

/// From the first byte to the scale write, and what somebody else who is stuck does to that.
pub async fn woken(neap: &Path) -> Result<Vec<Theirs>> {
    open_files(4_000)?;
    let mut scene = Scene::start(neap).await?;
    let (mut calm, mut beside) = (Vec::new(), Vec::new());
    let stuck = scene.address(STUCK).await?;
    // The first of all is on no connection that stands.
    scene.wake("first").await?;
    for turn in 0..TURNS {
        let crowded = turn % 2 == 1;
        let clients = if crowded {
            ask_all(stuck, WAITING).await?
        } else {
            Vec::new()
        };
        sleep(SETTLE).await;
        for number in 0..TURN {
            let took = scene.wake(&name(turn, number)).await?;
            if crowded { &mut beside } else { &mut calm }.push(took);
        }
        drop(clients);
        sleep(SETTLE).await;
    }
    let scaled = calm.iter().map(|took| took.scaled).collect();
    let of = |all: &[Took]| median(all.iter().map(|took| took.heard).collect());
    let (calm, beside) = (of(&calm)?, of(&beside)?);
    let figures = vec![
        ("scaled", median(scaled)?),
        ("woken", calm),
        ("stuck", beside / calm),
    ];
    Ok(vec![(OURS, figures)])
}

fn name(turn: usize, number: usize) -> String {
    format!("web-{turn}-{number}")
}

impl Scene {
    async fn start(neap: &Path) -> Result<Self> {
        let pod = Pod::start()?;
        let home = Home::start(neap).await?;
        let mut api = home.connect().await?;
        let all = (0..TURNS).flat_map(|turn| (0..TURN).map(move |number| name(turn, number)));
        let fixed = [STUCK, "first"].map(str::to_owned);
        for name in all.chain(fixed) {
            make(&mut api, &name).await?;
        }
        let operator = SocketAddr::new(IpAddr::from(OPERATOR_HOST), OPERATOR_PORT);
        let resolver = home.resolver(operator)?;
        let operator = start_operator(&home)?;
        let deployments = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments?watch=1");
        let scales = home.connect().await?.watch(&deployments).await?;
        let mut scene = Self {
            pod,
            _home: home,
            api,
            scales,
            _processes: [resolver, operator],
        };
        scene.asleep().await?;
        Ok(scene)
    }

    /// Returns once all services sleep.
    async fn asleep(&mut self) -> Result<()> {
        let watch = Stopwatch::start();
        loop {
            let all = self.api.send(Method::GET, ELASTI, "").await?.success()?;
            let all = all["items"].as_array().cloned().unwrap_or_default();
            let rest = all.iter().find(|one| one["status"]["mode"] != "proxy");
            let Some(rest) = rest else {
                return Ok(());
            };
            ensure!(watch.elapsed() < PATIENCE, "it does not sleep: {rest}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Where a resolver answers for a service.
    async fn address(&mut self, name: &str) -> Result<SocketAddr> {
        let path = format!("{ELASTI}/{name}");
        let found = self.api.send(Method::GET, &path, "").await?.success()?;
        let port = found["status"]["ports"][0]["resolverPort"].as_u64();
        let port = u16::try_from(port.context("it has no port")?)?;
        Ok(SocketAddr::new(IpAddr::from(RESOLVER_HOST), port))
    }

    async fn wake(&mut self, name: &str) -> Result<Took> {
        let address = self.address(name).await?;
        let mut client = Client::connect(address).await?;
        self.pod.heard.note_from_now();
        let from = self.pod.heard.now();
        client.begin().await?;
        let scaled = timeout(PATIENCE, self.scaled(name)).await;
        scaled.with_context(|| format!("{name} is not woken"))??;
        let scaled = self.pod.heard.now().saturating_sub(from);
        let slice = home::slice(name, &[("http", 80, self.pod.http)], true);
        home::create(&mut self.api, SLICES, &slice).await?;
        let heard = timeout(PATIENCE, self.pod.heard.moments(1)).await;
        let heard = heard.with_context(|| format!("{name} is not let go"))?;
        hear_all(vec![client]).await?;
        let heard = heard.first().copied().unwrap_or_default();
        Ok(Took {
            scaled: milliseconds(scaled),
            heard: milliseconds(heard.saturating_sub(from)),
        })
    }

    async fn scaled(&mut self, name: &str) -> Result<()> {
        loop {
            let event = self.scales.next().await?.context("the watch ended")?;
            let object = &event["object"];
            if object["metadata"]["name"] == name && object["spec"]["replicas"] == 1 {
                return Ok(());
            }
        }
    }
}

/// An operator beside `home`, whose numbers are at `OPERATOR_HOST` and the port after its own.
pub(super) fn start_operator(home: &Home) -> Result<Running> {
    let mut command = home.role("operator", OPERATOR, OPERATOR_HOST);
    let metrics = format!("{OPERATOR_HOST}:{}", OPERATOR_PORT + 1);
    command.args(["--metrics-bind-address", &metrics]);
    command.args(["--health-probe-bind-address", "0"]);
    Running::start(&mut command).context("cannot run the operator")
}

/// A service whose pods are none.
async fn make(api: &mut Connection, name: &str) -> Result<()> {
    for (path, object) in objects(name, 0) {
        home::create(api, &path, &object).await?;
    }
    Ok(())
}

/// A Service, a Deployment with so many replicas and an ElastiService, each with the collection it
/// belongs to.
pub(super) fn objects(name: &str, replicas: u32) -> [(String, Value); 3] {
    let labels = json!({"app": name});
    let container = json!({"name": "main", "image": "pod"});
    let service = json!({
        "metadata": {"name": name},
        "spec": {"selector": labels, "ports": [{"name": "http", "port": 80}]},
    });
    let deployment = json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    });
    let elasti = json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
        "metadata": {"name": name},
        "spec": {
            "service": name, "minTargetReplicas": 1,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        },
    });
    let deployments = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments");
    [
        (format!("/api/v1/namespaces/{NAMESPACE}/services"), service),
        (deployments, deployment),
        (ELASTI.to_owned(), elasti),
    ]
}
