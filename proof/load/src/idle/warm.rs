//! The cost of being in the path of an awake service.

use std::{path::Path, time::Duration};

use anyhow::Result;
use tempfile::TempDir;

use super::{
    OURS, Peers, ProgramFigures, activator,
    clients::{open_and_close, percentile, read_bytes, request_continuously, request_paced},
    environment::{self, TestEnvironment},
    haproxy, interceptor, nginx, open_files,
    pod::Pod,
    proxy::{Proxy, Tcp},
};
use crate::measure::{Figure, median};

/// The name of the figures of clients that connect to the pod directly.
const DIRECT: &str = "direct";
/// Rounds in which everything is measured, in turn; the median counts.
const ROUNDS: usize = 5;
/// Connections that send requests over HTTP, and for how long.
const HTTP_CONNECTIONS: usize = 32;
const HTTP_TIME: Duration = Duration::from_secs(2);
/// Connections that send requests at intervals, so that none waits for another: 1,600 requests a
/// second.
const PACED_CONNECTIONS: usize = 8;
const PACED_INTERVAL: Duration = Duration::from_millis(5);
const PACED_REQUESTS: usize = 400;
/// Connections that transfer bytes, and the bytes of each.
const TRANSFER_CONNECTIONS: usize = 8;
const TRANSFER_BYTES: usize = 128 << 20;
/// Connections that are opened, and how many at a time.
const SHORT_CONNECTIONS: usize = 4_000;
const CONCURRENT_CONNECTIONS: usize = 32;

/// The figures of the pod itself, of ours and of each peer.
pub async fn warm(neap: &Path, peers: &Peers) -> Result<Vec<ProgramFigures>> {
    open_files(4_000)?;
    let pod = Pod::start()?;
    let environment = TestEnvironment::start(neap).await?;
    let folder = tempfile::tempdir()?;
    let all = proxies(&environment, peers, &folder, &pod).await?;
    let mut rounds: Vec<(&'static str, Measurements)> = vec![(DIRECT, Measurements::default())];
    rounds.extend(
        all.iter()
            .map(|proxy| (proxy.name, Measurements::default())),
    );
    for _ in 0..ROUNDS {
        rounds[0].1.measure_latency(pod.http).await?;
        for (proxy, (_, round)) in all.iter().zip(&mut rounds[1..]) {
            round.measure_latency(proxy.http).await?;
            round.measure(proxy).await?;
        }
    }
    let each = rounds.into_iter();
    each.map(|(name, round)| Ok((name, round.figures()?)))
        .collect()
}

async fn proxies(
    environment: &TestEnvironment,
    peers: &Peers,
    folder: &TempDir,
    pod: &Pod,
) -> Result<Vec<Proxy>> {
    let folder = folder.path();
    let mut all = vec![ours(environment, pod).await?];
    if let Some(program) = &peers.nginx {
        all.push(nginx::start(program, folder, pod).await?);
    }
    if let Some(program) = &peers.haproxy {
        all.push(haproxy::start(program, folder, pod).await?);
    }
    if let Some(program) = &peers.interceptor {
        all.push(interceptor::start(program, environment, pod).await?);
    }
    if let Some(program) = &peers.activator {
        all.push(activator::start(program, environment, pod).await?);
    }
    Ok(all)
}

/// A service whose pod is ready, through the resolver.
async fn ours(environment: &TestEnvironment, pod: &Pod) -> Result<Proxy> {
    let mut api = environment.connect().await?;
    let ports = [
        ("http", 80, pod.http),
        ("tcp-echo", 81, pod.echo),
        ("tcp-source", 82, pod.source),
    ];
    let at = environment::create_sleeping(&mut api, "web", 0, &ports).await?;
    environment::set_ready(&mut api, "web", &ports, true).await?;
    let unused_address = crate::logged_process::free()?;
    let (echo, source) = (at[1], at[2]);
    let tcp = Some(Tcp { echo, source });
    Proxy::of(OURS, environment.resolver(unused_address)?, at[0], tcp).await
}

/// The measurements of one proxy, one for each round.
#[derive(Debug, Default)]
struct Measurements {
    requests: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
    megabytes: Vec<f64>,
    connections: Vec<f64>,
}

impl Measurements {
    /// Response times while no request waits for another.
    async fn measure_latency(&mut self, address: std::net::SocketAddr) -> Result<()> {
        let took =
            request_paced(address, PACED_CONNECTIONS, PACED_INTERVAL, PACED_REQUESTS).await?;
        let microseconds = |percent| percentile(&took, percent).as_secs_f64() * 1e6;
        self.p50.push(microseconds(50));
        self.p99.push(microseconds(99));
        Ok(())
    }

    /// Work done per second of CPU time.
    async fn measure(&mut self, proxy: &Proxy) -> Result<()> {
        let before = proxy.cpu_seconds()?;
        let answers = request_continuously(proxy.http, HTTP_CONNECTIONS, HTTP_TIME).await?;
        self.requests
            .push(answers as f64 / (proxy.cpu_seconds()? - before));
        let Some(Tcp { echo, source }) = proxy.tcp else {
            return Ok(());
        };
        let before = proxy.cpu_seconds()?;
        read_bytes(source, TRANSFER_CONNECTIONS, TRANSFER_BYTES).await?;
        let megabytes = (TRANSFER_CONNECTIONS * TRANSFER_BYTES) as f64 / 1e6;
        self.megabytes
            .push(megabytes / (proxy.cpu_seconds()? - before));
        let before = proxy.cpu_seconds()?;
        open_and_close(echo, CONCURRENT_CONNECTIONS, SHORT_CONNECTIONS).await?;
        self.connections
            .push(SHORT_CONNECTIONS as f64 / (proxy.cpu_seconds()? - before));
        Ok(())
    }

    fn figures(self) -> Result<Vec<Figure>> {
        let all = [
            ("requests", self.requests),
            ("p50", self.p50),
            ("p99", self.p99),
            ("megabytes", self.megabytes),
            ("connections", self.connections),
        ];
        let measured = all.into_iter().filter(|(_, each)| !each.is_empty());
        measured
            .map(|(name, each)| Ok((name, median(each)?)))
            .collect()
    }
}
