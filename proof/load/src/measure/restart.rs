//! The effect of many writes on the next start.

use std::path::Path;

use anyhow::Result;

use super::{CONNECTIONS, Figure, create, milliseconds, update};
use crate::{bulk::send_all, objects, server::Server};

/// The start of a server that has `count` objects after `writes` writes, and the slowest write.
pub async fn restart(neap: &Path, count: usize, writes: usize) -> Result<Vec<Figure>> {
    let data = tempfile::tempdir()?;
    let server = Server::start(neap, Some(data.path()))?;
    let client = server.client()?;
    objects::prepare(&mut client.connect().await?).await?;
    send_all(&client, CONNECTIONS, count, create).await?;
    let updates = send_all(
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
