//! The memory and the writes of an operator for many services while nothing happens.

use std::{net::IpAddr, net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use http::Method;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::sleep,
};

use super::{
    OURS, ProgramFigures,
    environment::{ELASTI, OPERATOR_HOST, OPERATOR_PORT, TestEnvironment, WAIT_TIMEOUT},
    woken::{objects, start_operator},
};
use crate::{
    bulk::{BulkRequest, send_all},
    measure::CONNECTIONS,
    process::resident_bytes,
    stopwatch::Stopwatch,
};

const SERVICES: usize = 2_000;
/// Time without writes after which the operator counts as idle.
const IDLE_PERIOD: Duration = Duration::from_secs(10);
/// Time for which writes are counted: it contains two polls of triggers.
const COUNT_PERIOD: Duration = Duration::from_mins(1);

/// The memory of an operator with many sleeping services, and its writes in a minute.
pub async fn watched(neap: &Path) -> Result<Vec<ProgramFigures>> {
    let environment = TestEnvironment::start(neap).await?;
    send_all(environment.client(), CONNECTIONS, SERVICES * 3, |number| {
        let mut all = objects(&format!("web-{}", number / 3), 0);
        let (path, object) = std::mem::take(&mut all[number % 3]);
        BulkRequest {
            method: Method::POST,
            path,
            content_type: "application/json",
            body: object.to_string(),
        }
    })
    .await?;
    // Nothing sleeps unless a resolver is ready.
    let operator = start_operator(&environment)?;
    wait_until_idle(&environment).await?;
    let (held, before) = (resident_bytes(operator.id())?, writes().await?);
    sleep(COUNT_PERIOD).await;
    let written = writes().await? - before;
    let figures = vec![("memory", held as f64), ("writes", written)];
    Ok(vec![(OURS, figures)])
}

/// Waits until all of them sleep and nothing more is written.
async fn wait_until_idle(environment: &TestEnvironment) -> Result<()> {
    let mut api = environment.connect().await?;
    let watch = Stopwatch::start();
    loop {
        let all = api.send(Method::GET, ELASTI, "").await?.success()?;
        let all = all["items"].as_array().cloned().unwrap_or_default();
        let asleep = |one: &&serde_json::Value| one["status"]["mode"] == "proxy";
        let asleep = all.iter().filter(asleep).count();
        if asleep == SERVICES {
            break;
        }
        ensure!(
            watch.elapsed() < WAIT_TIMEOUT,
            "only {asleep} of {SERVICES} sleep"
        );
        sleep(Duration::from_millis(500)).await;
    }
    let mut before = writes().await?;
    loop {
        sleep(IDLE_PERIOD).await;
        let now = writes().await?;
        if (now - before).abs() < 0.5 {
            return Ok(());
        }
        ensure!(watch.elapsed() < WAIT_TIMEOUT, "it does not cease to write");
        before = now;
    }
}

/// The API calls of the operator that write, by its own metrics.
async fn writes() -> Result<f64> {
    let address = SocketAddr::new(IpAddr::from(OPERATOR_HOST), OPERATOR_PORT + 1);
    let mut stream = TcpStream::connect(address).await?;
    let request = "GET /metrics HTTP/1.1\r\nHost: operator\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    counted(&text)
}

fn counted(text: &str) -> Result<f64> {
    let calls = text
        .lines()
        .filter(|line| line.starts_with("neaptide_api_calls_total{"));
    let reads = ["\"get\"", "\"list\"", "\"watch\""];
    let (mut all, mut writes) = (0, 0.0);
    for line in calls {
        let (labels, value) = line.rsplit_once(' ').context("a line without a value")?;
        all += 1;
        if !reads
            .iter()
            .any(|verb| labels.contains(&format!("verb={verb}")))
        {
            writes += value.parse::<f64>()?;
        }
    }
    ensure!(all > 0, "the operator counts no calls");
    Ok(writes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_write_are_told_from_those_that_read() {
        let text = "neaptide_api_calls_total{verb=\"list\",code=\"200\"} 7\n\
            neaptide_api_calls_total{verb=\"patch\",code=\"200\"} 3\n\
            neaptide_api_calls_total{verb=\"create\",code=\"201\"} 2\n";
        assert!((counted(text).unwrap() - 5.0).abs() < 1e-9);
        assert!(counted("nothing").is_err());
    }
}
