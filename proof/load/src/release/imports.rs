//! The process that imports the tags of ImageStreams.

use std::{path::Path, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    background::{BackgroundProcess, free_address},
    registry::{Layer, RegistryProcess},
};
use crate::{
    client::Connection,
    measure::Figure,
    process::{cpu_seconds, peak_bytes},
    server::Server,
    stopwatch::Stopwatch,
};

const STREAMS: usize = 25;
const TAGS: usize = 200;
const REPOSITORY: &str = "ocp/images";
const COLLECTION: &str = "/apis/image.openshift.io/v1/namespaces/default/imagestreams";
/// Time for all imports.
const WAIT_TIMEOUT: Duration = Duration::from_mins(10);

/// Imports of 5,000 tags by one process: what each costs, and what the process needs.
pub async fn imports(neap: &Path, registry: &Path) -> Result<Vec<Figure>> {
    let registry = RegistryProcess::start(registry).await?;
    let layer = Layer::of(&[("file".to_owned(), b"content".to_vec())])?;
    let layers = [layer];
    registry.push_layers(REPOSITORY, &layers).await?;
    let config = registry
        .push_config(REPOSITORY, &json!({}), &layers)
        .await?;
    for number in 0..STREAMS * TAGS {
        let tag = format!("t{number}");
        registry
            .push_manifest(REPOSITORY, &tag, &config, &layers, number)
            .await?;
    }
    let server = Server::start(neap, None)?;
    install(neap, "release", server.kubeconfig())?;
    let mut connection = server.client()?.connect().await?;
    for stream in 0..STREAMS {
        create(&mut connection, registry.host(), stream).await?;
    }
    let listen = free_address()?;
    let mut command = Command::new(neap);
    command.args(["release", "imports", "--leader-elect=false"]);
    // The budget of a registry would spread the imports over hours.
    command.args(["--requests-per-hour", "100000000"]);
    command.arg("--kubeconfig").arg(server.kubeconfig());
    command.arg("--listen").arg(listen.to_string());
    let mut process = BackgroundProcess::start(&mut command, listen)?;
    process.ready("/healthz", Duration::ZERO).await?;
    let watch = Stopwatch::start();
    let wanted = (STREAMS * TAGS) as f64;
    while process
        .metric("neaptide_release_image_imports_total")
        .await?
        < wanted
    {
        if watch.elapsed() > WAIT_TIMEOUT {
            let complaints = process.complaints()?;
            anyhow::bail!("the imports do not end: {complaints}");
        }
        sleep(Duration::from_millis(100)).await;
    }
    let took = watch.elapsed();
    // The server has closed connections that were idle for so long.
    let imported = imported(&mut server.client()?.connect().await?).await?;
    ensure!(imported == STREAMS * TAGS, "{imported} tags have an image");
    let requests = process.metric("neaptide_outbound_calls_total").await?;
    let work = cpu_seconds(process.id())?;
    Ok(vec![
        ("work per tag", work / wanted * 1e6),
        ("requests per tag", requests / wanted),
        ("peak", peak_bytes(process.id())? as f64),
        ("tags per second", wanted / took.as_secs_f64()),
    ])
}

/// Installs the definitions of an area.
pub(crate) fn install(neap: &Path, area: &str, kubeconfig: &Path) -> Result<()> {
    let mut command = Command::new(neap);
    command.args(["definitions", area, "--install", "--kubeconfig"]);
    let output = command.arg(kubeconfig).output()?;
    ensure!(
        output.status.success(),
        "the definitions were not installed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

async fn create(connection: &mut Connection, host: &str, stream: usize) -> Result<()> {
    let tags = (stream * TAGS..(stream + 1) * TAGS).map(|number| {
        let image = format!("{host}/{REPOSITORY}:t{number}");
        json!({"name": format!("t{number}"), "from": {"kind": "DockerImage", "name": image}})
    });
    let object = json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
        "metadata": {"name": format!("stream-{stream}")},
        "spec": {"tags": tags.collect::<Vec<_>>()},
    });
    let made = connection.send(Method::POST, COLLECTION, object.to_string());
    made.await?.success().map(drop)
}

/// The tags that have an image.
async fn imported(connection: &mut Connection) -> Result<usize> {
    let watch = Stopwatch::start();
    loop {
        let list = connection
            .send(Method::GET, COLLECTION, "")
            .await?
            .success()?;
        let streams = list["items"].as_array().context("no list")?;
        let tags = streams
            .iter()
            .filter_map(|stream| stream["status"]["tags"].as_array());
        let has_image = |tag: &&Value| tag["items"][0]["image"].is_string();
        let count = tags.flatten().filter(has_image).count();
        // The last results are written after they are counted.
        if count == STREAMS * TAGS || watch.elapsed().as_secs() > 10 {
            return Ok(count);
        }
        sleep(Duration::from_millis(100)).await;
    }
}
