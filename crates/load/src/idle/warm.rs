//! What it costs to be in the path of a service that is awake.

use std::{path::Path, time::Duration};

use anyhow::Result;
use tempfile::TempDir;

use super::{
    OURS, Peers, Theirs, activator,
    clients::{ask_now_and_then, come_and_go, keep_asking, percentile, take},
    haproxy,
    home::{self, Home},
    interceptor, nginx, open_files,
    pod::Pod,
    proxy::{Proxy, Tcp},
};
use crate::measure::{Figure, median};

/// The name of the figures of clients that go to the pod themselves.
const DIRECT: &str = "direct";
/// Everything is measured so many times, in turn, and the middle one counts.
const ROUNDS: usize = 5;
/// So many connections ask over HTTP.
const ASKING: usize = 32;
const ASKED_FOR: Duration = Duration::from_secs(2);
/// So many connections ask now and then, so that nobody waits for another: 1,600 requests a second.
const CALM: usize = 8;
const PAUSE: Duration = Duration::from_millis(5);
const TURNS: usize = 400;
/// So many connections carry bytes, so many each.
const CARRYING: usize = 8;
const CARRIED: usize = 128 << 20;
/// So many connections are made, so many at a time.
const COMING: usize = 4_000;
const AT_ONCE: usize = 32;

/// The figures of the pod itself, of ours and of each peer.
pub async fn warm(neap: &Path, peers: &Peers) -> Result<Vec<Theirs>> {
    open_files(4_000)?;
    let pod = Pod::start()?;
    let home = Home::start(neap).await?;
    let folder = tempfile::tempdir()?;
    let all = proxies(&home, peers, &folder, &pod).await?;
    let mut rounds: Vec<(&'static str, Round)> = vec![(DIRECT, Round::default())];
    rounds.extend(all.iter().map(|proxy| (proxy.name, Round::default())));
    for _ in 0..ROUNDS {
        rounds[0].1.calm(pod.http).await?;
        for (proxy, (_, round)) in all.iter().zip(&mut rounds[1..]) {
            round.calm(proxy.http).await?;
            round.measure(proxy).await?;
        }
    }
    let each = rounds.into_iter();
    each.map(|(name, round)| Ok((name, round.figures()?)))
        .collect()
}

async fn proxies(home: &Home, peers: &Peers, folder: &TempDir, pod: &Pod) -> Result<Vec<Proxy>> {
    let folder = folder.path();
    let mut all = vec![ours(home, pod).await?];
    if let Some(program) = &peers.nginx {
        all.push(nginx::start(program, folder, pod).await?);
    }
    if let Some(program) = &peers.haproxy {
        all.push(haproxy::start(program, folder, pod).await?);
    }
    if let Some(program) = &peers.interceptor {
        all.push(interceptor::start(program, home, pod).await?);
    }
    if let Some(program) = &peers.activator {
        all.push(activator::start(program, home, pod).await?);
    }
    Ok(all)
}

/// A service whose pod is ready, through the resolver.
async fn ours(home: &Home, pod: &Pod) -> Result<Proxy> {
    let mut api = home.connect().await?;
    let ports = [
        ("http", 80, pod.http),
        ("tcp-echo", 81, pod.echo),
        ("tcp-source", 82, pod.source),
    ];
    let at = home::asleep(&mut api, "web", 0, &ports).await?;
    home::ready(&mut api, "web", &ports, true).await?;
    let nobody = super::proxy::free()?;
    let (echo, source) = (at[1], at[2]);
    let tcp = Some(Tcp { echo, source });
    Proxy::of(OURS, home.resolver(nobody)?, at[0], tcp).await
}

/// What was measured of one of them, once for each round.
#[derive(Debug, Default)]
struct Round {
    requests: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
    megabytes: Vec<f64>,
    connections: Vec<f64>,
}

impl Round {
    /// How long answers take when nobody waits for another.
    async fn calm(&mut self, address: std::net::SocketAddr) -> Result<()> {
        let took = ask_now_and_then(address, CALM, PAUSE, TURNS).await?;
        let microseconds = |percent| percentile(&took, percent).as_secs_f64() * 1e6;
        self.p50.push(microseconds(50));
        self.p99.push(microseconds(99));
        Ok(())
    }

    /// How much is done for a second of its work.
    async fn measure(&mut self, proxy: &Proxy) -> Result<()> {
        let before = proxy.worked()?;
        let answers = keep_asking(proxy.http, ASKING, ASKED_FOR).await?;
        self.requests
            .push(answers as f64 / (proxy.worked()? - before));
        let Some(Tcp { echo, source }) = proxy.tcp else {
            return Ok(());
        };
        let before = proxy.worked()?;
        take(source, CARRYING, CARRIED).await?;
        let megabytes = (CARRYING * CARRIED) as f64 / 1e6;
        self.megabytes.push(megabytes / (proxy.worked()? - before));
        let before = proxy.worked()?;
        come_and_go(echo, AT_ONCE, COMING).await?;
        self.connections
            .push(COMING as f64 / (proxy.worked()? - before));
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
