//! How long it takes to read a large collection at once.

use anyhow::{Result, ensure};
use http::Method;

use super::{CONNECTIONS, Figure, create, median, milliseconds, prepare};
use crate::{
    objects::Resource,
    rush::rush,
    stopwatch::Stopwatch,
    subject::{Keeping, Subject},
};

/// Lists that count; one before them does not.
const LISTS: usize = 21;

/// From asking for a list of `count` objects to its last byte; the median of some.
pub async fn list(subject: &Subject, count: usize) -> Result<Vec<Figure>> {
    let server = subject.start(Keeping::Memory).await?;
    let client = server.client();
    let mut connection = client.connect().await?;
    prepare(&mut connection).await?;
    rush(client, CONNECTIONS, count, create).await?;
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
