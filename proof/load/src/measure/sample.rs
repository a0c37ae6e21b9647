//! How soon a newcomer sees the sample answer.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, bail};
use http::Method;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{Figure, median, milliseconds};
use crate::{client::Connection, server::Server, stopwatch::Stopwatch};

const SAMPLE: &str = include_str!("../../../../examples/web/web.yaml");
const APPLY: &str = "application/apply-patch+yaml";
/// Time for the sample to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval between two requests.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// From the command `neap up` to the first answer on the address of the sample's service.
pub async fn sample(neap: &Path, times: usize) -> Result<Vec<Figure>> {
    let (mut ready, mut applied, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..times {
        let watch = Stopwatch::start();
        let neap = neap.to_owned();
        let server =
            tokio::task::spawn_blocking(move || Server::start_whole(&neap, None)).await??;
        ready.push(milliseconds(watch.elapsed()));
        let mut connection = server.client()?.connect().await?;
        let address = apply(&mut connection).await?;
        applied.push(milliseconds(watch.elapsed()));
        timeout(ANSWER_TIMEOUT, first_answer(&address))
            .await
            .with_context(|| format!("{address} does not answer"))?;
        answers.push(milliseconds(watch.elapsed()));
        let (status, complaints) = tokio::task::spawn_blocking(|| server.stop()).await??;
        anyhow::ensure!(status.success(), "it ended with {status}: {complaints}");
    }
    let worst = answers.iter().copied().fold(0.0, f64::max);
    Ok(vec![
        ("ready", median(ready)?),
        ("applied", median(applied)?),
        ("answer", median(answers)?),
        ("answer worst", worst),
    ])
}

/// Applies the sample like `kubectl apply --server-side`; returns the address of its service.
async fn apply(connection: &mut Connection) -> Result<String> {
    let mut address = None;
    for document in SAMPLE.split("\n---\n") {
        let (kind, name) = (value(document, "kind: ")?, value(document, "  name: ")?);
        let path = match kind {
            "Deployment" => format!("/apis/apps/v1/namespaces/default/deployments/{name}"),
            "Service" => format!("/api/v1/namespaces/default/services/{name}"),
            other => bail!("the sample has a {other}"),
        };
        let path = format!("{path}?fieldManager=bench&force=true");
        let body = document.to_owned();
        let answer = connection
            .send_as(Method::PATCH, &path, APPLY, body)
            .await?;
        let object = answer.success()?;
        if let Some(ip) = object["spec"]["clusterIP"].as_str() {
            address = Some(format!("{ip}:{}", object["spec"]["ports"][0]["port"]));
        }
    }
    address.context("the sample has no service")
}

fn value<'a>(document: &'a str, key: &str) -> Result<&'a str> {
    let found = document.lines().find_map(|line| line.strip_prefix(key));
    found.with_context(|| format!("the sample has no {key:?}"))
}

async fn first_answer(address: &str) {
    loop {
        if let Ok(answer) = ask(address).await
            && answer.contains("hello from web-")
        {
            return;
        }
        sleep(POLL_INTERVAL).await;
    }
}

async fn ask(address: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
