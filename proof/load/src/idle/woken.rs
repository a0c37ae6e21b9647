//! How soon a service is woken by its first byte, with operator, resolver and API server as
//! processes.

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
    OURS, ProgramFigures,
    clients::{HttpClient, read_responses, send_requests},
    environment::{
        self, ELASTI, NAMESPACE, OPERATOR, OPERATOR_HOST, OPERATOR_PORT, RESOLVER_HOST, SLICES,
        TestEnvironment, WAIT_TIMEOUT,
    },
    open_files,
    pod::Pod,
};
use crate::{
    client::{Connection, Watch},
    logged_process::LoggedProcess,
    measure::{median, milliseconds},
    stopwatch::Stopwatch,
};

/// A service with waiting requests whose pod never becomes ready.
const STUCK_SERVICE: &str = "stuck";
const WAITING: usize = 1_000;
/// The wakes take turns: `WAKES_PER_TURN` without a stuck service, `WAKES_PER_TURN` with one, and again.
const WAKES_PER_TURN: usize = 15;
const TURNS: usize = 6;
/// Time for the last request to arrive.
const ARRIVAL_TIME: Duration = Duration::from_secs(1);

/// An operator and a resolver, and services that sleep.
struct WakeScenario {
    pod: Pod,
    _home: TestEnvironment,
    api: Connection,
    scales: Watch,
    _processes: [LoggedProcess; 2],
}

/// The durations of a wake.
struct WakeDurations {
    /// From the first byte to the scale write.
    scaled: f64,
    /// From the first byte to its arrival at the pod, which is ready as soon as it is scaled.
    heard: f64,
}

/// From the first byte to the scale write, and the effect of another, stuck service.
pub async fn woken(neap: &Path) -> Result<Vec<ProgramFigures>> {
    open_files(4_000)?;
    let mut scenario = WakeScenario::start(neap).await?;
    let (mut calm, mut beside) = (Vec::new(), Vec::new());
    let stuck = scenario.address(STUCK_SERVICE).await?;
    // The first wake has to open connections.
    scenario.wake("first").await?;
    for turn in 0..TURNS {
        let crowded = turn % 2 == 1;
        let clients = if crowded {
            send_requests(stuck, WAITING).await?
        } else {
            Vec::new()
        };
        sleep(ARRIVAL_TIME).await;
        for number in 0..WAKES_PER_TURN {
            let took = scenario.wake(&name(turn, number)).await?;
            if crowded { &mut beside } else { &mut calm }.push(took);
        }
        drop(clients);
        sleep(ARRIVAL_TIME).await;
    }
    let scaled = calm.iter().map(|took| took.scaled).collect();
    let of = |all: &[WakeDurations]| median(all.iter().map(|took| took.heard).collect());
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

impl WakeScenario {
    async fn start(neap: &Path) -> Result<Self> {
        let pod = Pod::start()?;
        let environment = TestEnvironment::start(neap).await?;
        let mut api = environment.connect().await?;
        let all =
            (0..TURNS).flat_map(|turn| (0..WAKES_PER_TURN).map(move |number| name(turn, number)));
        let fixed = [STUCK_SERVICE, "first"].map(str::to_owned);
        for name in all.chain(fixed) {
            create_service(&mut api, &name).await?;
        }
        let operator = SocketAddr::new(IpAddr::from(OPERATOR_HOST), OPERATOR_PORT);
        let resolver = environment.resolver(operator)?;
        let operator = start_operator(&environment)?;
        let deployments = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments?watch=1");
        let scales = environment.connect().await?.watch(&deployments).await?;
        let mut scenario = Self {
            pod,
            _home: environment,
            api,
            scales,
            _processes: [resolver, operator],
        };
        scenario.asleep().await?;
        Ok(scenario)
    }

    /// Waits until all services sleep.
    async fn asleep(&mut self) -> Result<()> {
        let watch = Stopwatch::start();
        loop {
            let all = self.api.send(Method::GET, ELASTI, "").await?.success()?;
            let all = all["items"].as_array().cloned().unwrap_or_default();
            let rest = all.iter().find(|one| one["status"]["mode"] != "proxy");
            let Some(rest) = rest else {
                return Ok(());
            };
            ensure!(watch.elapsed() < WAIT_TIMEOUT, "it does not sleep: {rest}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// The address at which the resolver serves a service.
    async fn address(&mut self, name: &str) -> Result<SocketAddr> {
        let path = format!("{ELASTI}/{name}");
        let found = self.api.send(Method::GET, &path, "").await?.success()?;
        let port = found["status"]["ports"][0]["resolverPort"].as_u64();
        let port = u16::try_from(port.context("it has no port")?)?;
        Ok(SocketAddr::new(IpAddr::from(RESOLVER_HOST), port))
    }

    async fn wake(&mut self, name: &str) -> Result<WakeDurations> {
        let address = self.address(name).await?;
        let mut client = HttpClient::connect(address).await?;
        self.pod.heard.note_from_now();
        let from = self.pod.heard.now();
        client.send().await?;
        let scaled = timeout(WAIT_TIMEOUT, self.scaled(name)).await;
        scaled.with_context(|| format!("{name} is not woken"))??;
        let scaled = self.pod.heard.now().saturating_sub(from);
        let slice = environment::slice(name, &[("http", 80, self.pod.http)], true);
        environment::create(&mut self.api, SLICES, &slice).await?;
        let heard = timeout(WAIT_TIMEOUT, self.pod.heard.moments(1)).await;
        let heard = heard.with_context(|| format!("{name} is not let go"))?;
        read_responses(vec![client]).await?;
        let heard = heard.first().copied().unwrap_or_default();
        Ok(WakeDurations {
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

/// Starts an operator; its metrics are at `OPERATOR_HOST` and the port after its own.
pub(super) fn start_operator(environment: &TestEnvironment) -> Result<LoggedProcess> {
    let mut command = environment.role("operator", OPERATOR, OPERATOR_HOST);
    let metrics = format!("{OPERATOR_HOST}:{}", OPERATOR_PORT + 1);
    command.args(["--metrics-bind-address", &metrics]);
    command.args(["--health-probe-bind-address", "0"]);
    LoggedProcess::start(&mut command).context("cannot run the operator")
}

/// Creates a service without pods.
async fn create_service(api: &mut Connection, name: &str) -> Result<()> {
    for (path, object) in objects(name, 0) {
        environment::create(api, &path, &object).await?;
    }
    Ok(())
}

/// A Service, a Deployment with `replicas` replicas and an ElastiService, each with its collection.
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
