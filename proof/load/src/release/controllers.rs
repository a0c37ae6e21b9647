//! Both release controllers in one process, beside many streams, payloads and ProwJobs.

mod objects;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use self::objects::{JOBS, Numbers, PAYLOADS, PROW_JOBS, STREAMS};
use super::{
    background::{BackgroundProcess, free_address},
    imports::install,
    prow_jobs::definition,
};
use crate::{
    bulk::{BulkRequest, BulkResult, send_all},
    client::{Client, Connection, Watch},
    measure::{CONNECTIONS, Figure},
    objects::served,
    process::{peak_bytes, resident_bytes},
    server::Server,
    stopwatch::Stopwatch,
};

/// Time for the process to read everything, and to write what it has to.
const SETTLE_TIMEOUT: Duration = Duration::from_mins(20);
/// A process that reconciles nothing for this long has nothing to do.
const SETTLED: Duration = Duration::from_secs(5);
/// Time for one answer of the controllers.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);
/// Streams that are changed, one after the other.
const SAMPLES: usize = 100;

/// Memory, cold start and latencies beside 300 streams, 5,000 payloads and 100,000 ProwJobs, or beside one
/// `divide`th of them.
pub async fn controllers(neap: &Path, divide: usize) -> Result<Vec<Figure>> {
    let numbers = Numbers::divided(divide);
    let server = Server::start(neap, None)?;
    install(neap, "release", server.kubeconfig())?;
    let client = server.client()?;
    let mut connection = client.connect().await?;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = connection.send(Method::POST, definitions, definition().to_string());
    made.await?.success()?;
    for collection in [STREAMS, PAYLOADS, PROW_JOBS] {
        served(&mut connection, collection).await?;
    }
    fill(&client, numbers).await?;
    let role = Role::new(neap, server.kubeconfig())?;
    // The first process gives the payloads their verdicts; the second finds them.
    let mut first = role.start()?;
    first.ready("/readyz", SETTLE_TIMEOUT).await?;
    settled(&first).await?;
    drop(first);
    let started = Stopwatch::start();
    let mut process = role.start()?;
    process.ready("/readyz", SETTLE_TIMEOUT).await?;
    while process.metric(DECISIONS).await? < 1.0 {
        sleep(Duration::from_millis(10)).await;
    }
    let cold_start = started.elapsed();
    settled(&process).await?;
    let (resident, peak) = (resident_bytes(process.id())?, peak_bytes(process.id())?);
    let samples = SAMPLES.min(numbers.streams);
    let (payloads, names) = cut(&client, samples).await?;
    let verdicts = judged(&client, &names).await?;
    Ok(vec![
        ("resident", resident as f64),
        ("peak", peak as f64),
        ("cold start", cold_start.as_secs_f64()),
        ("payload p99", millis(&payloads)),
        ("verdict p99", millis(&verdicts)),
        ("streams", numbers.streams as f64),
        ("payloads", numbers.payloads() as f64),
        ("prow jobs", numbers.runs() as f64),
    ])
}

fn millis(result: &BulkResult) -> f64 {
    result.percentile(99).as_secs_f64() * 1e3
}

/// The reconciles of streams.
const DECISIONS: &str = "neaptide_reconciles_total{controller=\"release-controller\"";
const RECONCILES: &str = "neaptide_reconciles_total";

/// Waits until nothing is reconciled any more.
async fn settled(process: &BackgroundProcess) -> Result<()> {
    let watch = Stopwatch::start();
    let mut before = process.metric(RECONCILES).await?;
    loop {
        sleep(SETTLED).await;
        let now = process.metric(RECONCILES).await?;
        if now <= before && now > 0.0 {
            return Ok(());
        }
        before = now;
        if watch.elapsed() > SETTLE_TIMEOUT {
            bail!("the controllers do not come to rest: {now} reconciles");
        }
    }
}

/// The command of the process, and the job configuration that it reads.
struct Role {
    neap: PathBuf,
    kubeconfig: PathBuf,
    folder: TempDir,
}

impl Role {
    fn new(neap: &Path, kubeconfig: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::write(
            folder.path().join("jobs.yaml"),
            objects::job_config().to_string(),
        )?;
        Ok(Self {
            neap: neap.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            folder,
        })
    }

    fn start(&self) -> Result<BackgroundProcess> {
        let listen = free_address()?;
        let mut command = Command::new(&self.neap);
        command.args([
            "release",
            "controller",
            "--leader-elect=false",
            "--with-payloads",
        ]);
        command.args(["--release-namespace=default", "--job-namespace=default"]);
        command.args(["--registry=registry.example.com", "--job-config"]);
        command.arg(self.folder.path()).arg("--kubeconfig");
        command.arg(&self.kubeconfig);
        command.arg("--listen").arg(listen.to_string());
        BackgroundProcess::start(&mut command, listen)
    }
}

async fn fill(client: &Client, numbers: Numbers) -> Result<()> {
    let post = |path: &'static str, object: Value| BulkRequest {
        method: Method::POST,
        path: path.to_owned(),
        content_type: "application/json",
        body: object.to_string(),
    };
    let status = |path: String, object: Value| BulkRequest {
        method: Method::PATCH,
        path,
        content_type: "application/merge-patch+json",
        body: object.to_string(),
    };
    let (streams, payloads) = (numbers.streams, numbers.payloads());
    let targets = move |number| post(STREAMS, objects::target(numbers, number));
    send_all(client, CONNECTIONS, streams, targets).await?;
    let sources = move |number| post(STREAMS, objects::source(number));
    send_all(client, CONNECTIONS, streams, sources).await?;
    let imports = move |number| status(objects::source_status(number), objects::imported(0));
    send_all(client, CONNECTIONS, streams, imports).await?;
    let make = move |number| post(PAYLOADS, objects::payload(numbers, number));
    send_all(client, CONNECTIONS, payloads, make).await?;
    let created = move |number| {
        let path = format!("{PAYLOADS}/{}/status", numbers.tag(number));
        status(path, objects::image_created(numbers, number))
    };
    send_all(client, CONNECTIONS, payloads, created).await?;
    let runs = move |number| post(PROW_JOBS, objects::run(numbers, number));
    send_all(client, CONNECTIONS, numbers.runs(), runs).await?;
    let mut connection = client.connect().await?;
    let path = format!("{PROW_JOBS}/{}", numbers.run_name(0));
    let size = connection.send(Method::GET, &path, "").await?.body.len();
    ensure!(size >= objects::SIZE, "a ProwJob has {size} bytes");
    Ok(())
}

/// A watch of payloads from now on.
async fn watched(client: &Client) -> Result<Watch> {
    let mut connection = client.connect().await?;
    let path = format!("{PAYLOADS}?limit=1");
    let list = connection.send(Method::GET, &path, "").await?.success()?;
    let version = list["metadata"]["resourceVersion"]
        .as_str()
        .context("no version")?;
    let path = format!("{PAYLOADS}?watch=true&resourceVersion={version}");
    let watch = client.connect().await?.watch(&path).await?;
    ensure!(
        watch.status == 200,
        "the watch was answered {}",
        watch.status
    );
    Ok(watch)
}

/// The next event about a payload that fits.
async fn until(watch: &mut Watch, fits: impl Fn(&Value) -> bool) -> Result<Value> {
    let found = async {
        while let Some(event) = watch.next().await? {
            if fits(&event["object"]) {
                return Ok(event);
            }
        }
        bail!("the watch has ended")
    };
    timeout(ANSWER_TIMEOUT, found)
        .await
        .context("no payload in time")?
}

async fn patch(connection: &mut Connection, path: &str, body: &Value) -> Result<()> {
    let kind = "application/merge-patch+json";
    let sent = connection.send_as(Method::PATCH, path, kind, body.to_string());
    sent.await?.success().map(drop)
}

/// Changes an image of each stream. Returns the times until the payload is there, and its names.
async fn cut(client: &Client, samples: usize) -> Result<(BulkResult, Vec<String>)> {
    let (mut connection, mut watch) = (client.connect().await?, watched(client).await?);
    let whole = Stopwatch::start();
    let (mut latencies, mut names) = (Vec::new(), Vec::new());
    for number in 0..samples {
        let begun = Stopwatch::start();
        let path = objects::source_status(number);
        patch(&mut connection, &path, &objects::imported(1)).await?;
        let stream = objects::stream_name(number);
        let event = until(&mut watch, |payload| {
            payload["spec"]["payloadCoordinates"]["streamName"] == *stream
        });
        let event = event.await.with_context(|| format!("stream {stream}"))?;
        latencies.push(begun.elapsed());
        let name = event["object"]["metadata"]["name"].as_str();
        names.push(name.context("a payload without a name")?.to_owned());
    }
    Ok((BulkResult::of(whole.elapsed(), latencies), names))
}

/// Waits for an object.
async fn exists(connection: &mut Connection, path: &str) -> Result<()> {
    let watch = Stopwatch::start();
    while connection.send(Method::GET, path, "").await?.status != 200 {
        ensure!(watch.elapsed() < ANSWER_TIMEOUT, "there is no {path}");
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Creates the images of payloads, and lets the only job of each pass. Returns the times until the verdict.
async fn judged(client: &Client, names: &[String]) -> Result<BulkResult> {
    let mut connection = client.connect().await?;
    for name in names {
        let job = format!("{JOBS}/{name}");
        exists(&mut connection, &job).await?;
        patch(
            &mut connection,
            &format!("{job}/status"),
            &objects::completed(),
        )
        .await?;
    }
    let mut watch = watched(client).await?;
    let whole = Stopwatch::start();
    let mut latencies = Vec::new();
    for name in names {
        let run = format!("{PROW_JOBS}/{name}-{}", objects::KEY);
        exists(&mut connection, &run).await?;
        let begun = Stopwatch::start();
        patch(&mut connection, &run, &json!({"status": objects::passed()})).await?;
        let accepted = until(&mut watch, |payload| {
            payload["metadata"]["name"] == **name && objects::is_accepted(payload)
        });
        accepted.await.with_context(|| format!("payload {name}"))?;
        latencies.push(begun.elapsed());
    }
    Ok(BulkResult::of(whole.elapsed(), latencies))
}
