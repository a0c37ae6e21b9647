//! The cost of stored objects: memory, and time of a restart.

use anyhow::Result;
use http::Method;

use super::{CONNECTIONS, Figure, create, median, milliseconds, prepare};
use crate::{
    bulk::send_all,
    objects::Resource,
    subject::{Storage, Subject},
};

/// Starts of a server with stored objects.
const STARTS: usize = 5;

/// Memory per object of `count` objects, and the start of a server that has stored them.
pub async fn stored(subject: &Subject, count: usize) -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let server = subject.start(Storage::Folder(folder.path())).await?;
    let client = server.client().clone();
    let mut connection = client.connect().await?;
    prepare(&mut connection).await?;
    let before = server.resident_bytes()?;
    send_all(&client, CONNECTIONS, count, create).await?;
    let grown = server.resident_bytes()?.saturating_sub(before);
    let path = Resource::ConfigMaps.path("object-7");
    let size = connection.send(Method::GET, &path, "").await?.body.len();
    drop(connection);
    server.stop().await?;
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let server = subject.start(Storage::Folder(folder.path())).await?;
        starts.push(milliseconds(server.ready_after()));
        server.stop().await?;
    }
    Ok(vec![
        ("memory per object", grown as f64 / count as f64),
        ("bytes of an object", size as f64),
        ("start with objects", median(starts)?),
    ])
}
