//! What an operator holds and writes for many services while nothing happens.

use std::{net::IpAddr, net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use http::Method;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::sleep,
};

use super::{
    OURS, Theirs,
    home::{ELASTI, Home, OPERATOR_HOST, OPERATOR_PORT, PATIENCE},
    woken::{objects, start_operator},
};
use crate::{
    measure::CONNECTIONS,
    process::resident_bytes,
    rush::{Shot, rush},
    stopwatch::Stopwatch,
};

const SERVICES: usize = 2_000;
/// Who has written nothing for this long has no more to write for now.
const QUIET: Duration = Duration::from_secs(10);
/// Writes are counted for this long: two polls of triggers are in it.
const REST: Duration = Duration::from_mins(1);

/// Memory of an operator with so many services that sleep, and its writes in a minute.
pub async fn watched(neap: &Path) -> Result<Vec<Theirs>> {
    let home = Home::start(neap).await?;
    rush(home.client(), CONNECTIONS, SERVICES * 3, |number| {
        let mut all = objects(&format!("web-{}", number / 3), 0);
        let (path, object) = std::mem::take(&mut all[number % 3]);
        Shot {
            method: Method::POST,
            path,
            content_type: "application/json",
            body: object.to_string(),
        }
    })
    .await?;
    // Somebody has to be ready to answer, or nothing sleeps.
    let operator = start_operator(&home)?;
    settle(&home).await?;
    let (held, before) = (resident_bytes(operator.id())?, writes().await?);
    sleep(REST).await;
    let written = writes().await? - before;
    let figures = vec![("memory", held as f64), ("writes", written)];
    Ok(vec![(OURS, figures)])
}

/// Returns once all of them sleep and nothing more is written.
async fn settle(home: &Home) -> Result<()> {
    let mut api = home.connect().await?;
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
            watch.elapsed() < PATIENCE,
            "only {asleep} of {SERVICES} sleep"
        );
        sleep(Duration::from_millis(500)).await;
    }
    let mut before = writes().await?;
    loop {
        sleep(QUIET).await;
        let now = writes().await?;
        if (now - before).abs() < 0.5 {
            return Ok(());
        }
        ensure!(watch.elapsed() < PATIENCE, "it does not cease to write");
        before = now;
    }
}

/// The calls of the operator that write something, by its own count.
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
