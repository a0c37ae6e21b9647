//! How long the deletion of a full namespace takes.

use anyhow::{Context, Result};
use http::Method;

use super::{CONNECTIONS, Figure, JSON, PADDING, make_namespace, median, milliseconds};
use crate::{
    bulk::{BulkRequest, send_all},
    client::Client,
    objects::{self, Resource},
    stopwatch::Stopwatch,
    subject::{Storage, Subject},
};

/// From the deletion of a namespace with `count` objects until it is gone; the median of `times`.
pub async fn namespace(subject: &Subject, count: usize, times: usize) -> Result<Vec<Figure>> {
    let subject = subject.clone().ending_namespaces();
    let server = subject.start(Storage::Memory).await?;
    let client = server.client();
    // The controller that deletes namespaces may have started after the server was ready.
    one(client, "first", 1).await?;
    let mut took = Vec::new();
    for number in 0..times {
        took.push(one(client, &format!("ending-{number}"), count).await?);
    }
    server.stop().await?;
    Ok(vec![("namespace delete", median(took)?)])
}

async fn one(client: &Client, name: &str, count: usize) -> Result<f64> {
    let mut connection = client.connect().await?;
    make_namespace(&mut connection, name).await?;
    let collection = format!("/api/v1/namespaces/{name}/configmaps");
    send_all(client, CONNECTIONS, count, move |number| BulkRequest {
        method: Method::POST,
        path: collection.clone(),
        content_type: JSON,
        body: filled(number),
    })
    .await?;
    let path = format!("/api/v1/namespaces/{name}");
    let answer = connection.send(Method::GET, &path, "").await?;
    let from = objects::revision(&answer.success()?)?;
    let selected = format!("fieldSelector=metadata.name%3D{name}");
    let watched = format!("/api/v1/namespaces?watch=1&resourceVersion={from}&{selected}");
    let mut events = client.connect().await?.watch(&watched).await?;
    let watch = Stopwatch::start();
    let sent = connection.send(Method::DELETE, &path, "").await?;
    sent.success()?;
    loop {
        let event = events.next().await?.context("the watch ended too early")?;
        if event["type"] == "DELETED" {
            return Ok(milliseconds(watch.elapsed()));
        }
    }
}

/// An object without a namespace: it is created where it is sent.
fn filled(number: usize) -> String {
    let name = format!("object-{number}");
    let mut object = Resource::ConfigMaps.object(&name, number as u64, PADDING);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("namespace");
    }
    object.to_string()
}
