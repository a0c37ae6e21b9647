//! How soon a custom resource is served after its definition.

use std::path::Path;

use anyhow::Result;
use http::Method;

use super::{Figure, median, milliseconds};
use crate::{client::Connection, objects, server::Server, stopwatch::Stopwatch};

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
    server.stop()?;
    Ok(vec![("definition", median(took)?)])
}

async fn described(connection: &mut Connection, kind: &str, watch: Stopwatch) -> Result<()> {
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
