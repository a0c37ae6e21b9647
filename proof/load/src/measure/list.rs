//! How long it takes to list a large collection.

use anyhow::{Result, ensure};
use http::Method;

use super::{CONNECTIONS, Figure, create, median, milliseconds, prepare};
use crate::{
    bulk::send_all,
    objects::Resource,
    stopwatch::Stopwatch,
    subject::{Storage, Subject},
};

/// Lists that count; one before them does not.
const LISTS: usize = 21;

/// From the request for a list of `count` objects to its last byte; the median of several.
pub async fn list(subject: &Subject, count: usize) -> Result<Vec<Figure>> {
    let server = subject.start(Storage::Memory).await?;
    let client = server.client();
    let mut connection = client.connect().await?;
    prepare(&mut connection).await?;
    send_all(client, CONNECTIONS, count, create).await?;
    let path = Resource::ConfigMaps.collection();
    let mut took = Vec::new();
    for number in 0..=LISTS {
        let watch = Stopwatch::start();
        let answer = connection.send(Method::GET, &path, "").await?;
        let elapsed = watch.elapsed();
        ensure!(
            answer.status == 200 && answer.body.len() > count * super::PADDING,
            "the list is not whole: {} bytes",
            answer.body.len()
        );
        if number > 0 {
            took.push(milliseconds(elapsed));
        }
    }
    drop(connection);
    server.stop().await?;
    Ok(vec![("list", median(took)?)])
}
