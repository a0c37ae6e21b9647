//! How fast objects are created and read.

use anyhow::Result;

use super::{CONNECTIONS, Figure, create, milliseconds, prepare, read};
use crate::{
    bulk::{BulkResult, send_all},
    subject::{Storage, Subject},
};

/// Requests before those that count, to warm up connections, caches and code.
const WARM_UP: usize = 500;

fn pace(names: [&'static str; 3], pace: &BulkResult) -> [Figure; 3] {
    [
        (names[0], pace.rate()),
        (names[1], milliseconds(pace.percentile(50))),
        (names[2], milliseconds(pace.percentile(99))),
    ]
}

/// Creates and reads of `count` objects over many connections.
pub async fn throughput(
    subject: &Subject,
    storage: Storage<'_>,
    count: usize,
) -> Result<Vec<Figure>> {
    let server = subject.start(storage).await?;
    let client = server.client();
    prepare(&mut client.connect().await?).await?;
    send_all(client, CONNECTIONS, WARM_UP, create).await?;
    let creates = send_all(client, CONNECTIONS, count, |n| create(n + WARM_UP)).await?;
    let gets = send_all(client, CONNECTIONS, count, read).await?;
    server.stop().await?;
    let creates = pace(["creates", "create p50", "create p99"], &creates);
    let gets = pace(["gets", "get p50", "get p99"], &gets);
    Ok([creates, gets].concat())
}

/// Creates of `count` objects, one after the other.
pub async fn single(subject: &Subject, storage: Storage<'_>, count: usize) -> Result<Vec<Figure>> {
    let server = subject.start(storage).await?;
    let client = server.client();
    prepare(&mut client.connect().await?).await?;
    send_all(client, 1, WARM_UP, create).await?;
    let creates = send_all(client, 1, count, |n| create(n + WARM_UP)).await?;
    server.stop().await?;
    Ok(vec![(
        "single create p50",
        milliseconds(creates.percentile(50)),
    )])
}
