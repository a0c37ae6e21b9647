//! Figures of a running server, as a client sees them.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use http::Method;

use crate::{
    objects::{self, Resource},
    rush::{Pace, Shot, rush},
    server::Server,
    stopwatch::Stopwatch,
};

/// So many clients at once.
pub const CONNECTIONS: usize = 16;
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";
/// With its metadata, such an object takes 0.7 KB as JSON.
const PADDING: usize = 300;

/// A named figure.
pub type Figure = (&'static str, f64);

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The create of a ConfigMap of the size that figures are stated for.
pub fn create(number: usize) -> Shot {
    let resource = Resource::ConfigMaps;
    let object = resource.object(&format!("object-{number}"), number as u64, PADDING);
    Shot {
        method: Method::POST,
        path: resource.collection(),
        content_type: JSON,
        body: object.to_string(),
    }
}

/// A small change of one of `objects` ConfigMaps; every one of them is a change.
pub fn update(number: usize, objects: usize) -> Shot {
    let resource = Resource::ConfigMaps;
    Shot {
        method: Method::PATCH,
        path: resource.path(&format!("object-{}", number % objects)),
        content_type: MERGE,
        body: resource.patch((objects + number) as u64).to_string(),
    }
}

fn read(number: usize) -> Shot {
    Shot {
        method: Method::GET,
        path: Resource::ConfigMaps.path(&format!("object-{number}")),
        content_type: JSON,
        body: String::new(),
    }
}

fn pace(names: [&'static str; 3], pace: &Pace) -> [Figure; 3] {
    [
        (names[0], pace.rate()),
        (names[1], milliseconds(pace.percentile(50))),
        (names[2], milliseconds(pace.percentile(99))),
    ]
}

/// Bytes of memory that an object costs, in a server that keeps everything in memory.
pub async fn memory(neap: &Path, count: usize) -> Result<Vec<Figure>> {
    let server = Server::start(neap, None)?;
    let client = server.client()?;
    objects::prepare(&mut client.connect().await?).await?;
    let before = server.resident_bytes()?;
    rush(&client, CONNECTIONS, count, create).await?;
    let grown = server.resident_bytes()?.saturating_sub(before);
    let size = client
        .connect()
        .await?
        .send(Method::GET, &Resource::ConfigMaps.path("object-7"), "")
        .await?
        .body
        .len();
    server.stop()?;
    Ok(vec![
        ("memory per object", grown as f64 / count as f64),
        ("bytes of an object", size as f64),
    ])
}

/// Creates and reads, durable, of `count` objects.
pub async fn throughput(neap: &Path, count: usize) -> Result<Vec<Figure>> {
    let data = tempfile::tempdir()?;
    let server = Server::start(neap, Some(data.path()))?;
    let client = server.client()?;
    objects::prepare(&mut client.connect().await?).await?;
    let creates = rush(&client, CONNECTIONS, count, create).await?;
    let gets = rush(&client, CONNECTIONS, count, read).await?;
    server.stop()?;
    let creates = pace(["creates", "create p50", "create p99"], &creates);
    let gets = pace(["gets", "get p50", "get p99"], &gets);
    Ok([creates, gets].concat())
}

/// The start of a server that has `count` objects after `writes` writes, and the slowest write.
pub async fn restart(neap: &Path, count: usize, writes: usize) -> Result<Vec<Figure>> {
    let data = tempfile::tempdir()?;
    let server = Server::start(neap, Some(data.path()))?;
    let client = server.client()?;
    objects::prepare(&mut client.connect().await?).await?;
    rush(&client, CONNECTIONS, count, create).await?;
    let updates = rush(
        &client,
        CONNECTIONS,
        writes.saturating_sub(count),
        move |number| update(number, count),
    )
    .await?;
    server.stop()?;
    let server = Server::start(neap, Some(data.path()))?;
    let start = server.ready_after();
    server.stop()?;
    Ok(vec![
        ("start", milliseconds(start)),
        ("updates", updates.rate()),
        ("update p99", milliseconds(updates.percentile(99))),
        ("update worst", milliseconds(updates.percentile(100))),
    ])
}

/// From sending a definition until its resource is served and described; the median of `count`.
pub async fn definition(neap: &Path, count: usize) -> Result<Vec<Figure>> {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let server = Server::start(neap, None)?;
    let client = server.client()?;
    let mut connection = client.connect().await?;
    objects::prepare(&mut connection).await?;
    let mut took = Vec::new();
    for number in 0..count {
        let (plural, kind) = (format!("things{number}"), format!("Thing{number}"));
        let body = objects::definition(&plural, &kind).to_string();
        let watch = Stopwatch::start();
        let sent = connection.send(Method::POST, DEFINITIONS, body);
        sent.await?.success()?;
        let collection = format!("/apis/load.neaptide.dev/v1/{plural}");
        objects::served(&mut connection, &collection).await?;
        described(&mut connection, &kind, watch).await?;
        took.push(milliseconds(watch.elapsed()));
    }
    took.sort_by(f64::total_cmp);
    server.stop()?;
    let median = took.get(count / 2).copied();
    Ok(vec![(
        "definition",
        median.context("nothing was measured")?,
    )])
}

async fn described(
    connection: &mut crate::client::Connection,
    kind: &str,
    watch: Stopwatch,
) -> Result<()> {
    let needle = format!("\"kind\":\"{kind}\"");
    loop {
        let path = "/openapi/v3/apis/load.neaptide.dev/v1";
        let answer = connection.send(Method::GET, path, "").await?;
        let text = String::from_utf8_lossy(&answer.body);
        if answer.status == 200 && text.contains(&needle) {
            return Ok(());
        }
        anyhow::ensure!(
            watch.elapsed().as_secs() < 10,
            "{kind} is not in the OpenAPI document"
        );
    }
}
