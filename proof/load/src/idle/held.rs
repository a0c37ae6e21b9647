//! How soon held requests are released once a pod is ready.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use tokio::time::{sleep, timeout};

use super::{
    OURS, ProgramFigures,
    clients::{percentile, read_responses, send_requests},
    environment::{self, Port, TestEnvironment, WAIT_TIMEOUT},
    open_files,
    pod::Pod,
    wake_receiver::WakeReceiver,
};
use crate::{
    client::Connection,
    logged_process::LoggedProcess,
    measure::{Figure, median, milliseconds},
};

/// Time after which the resolver has observed that a pod is gone.
const PROPAGATION_TIME: Duration = Duration::from_millis(50);
const WEB: &str = "web";

/// A service that is put to sleep again and again; only the resolver has the address of its pod.
pub(super) struct HeldScenario {
    pub(super) pod: Pod,
    _home: TestEnvironment,
    pub(super) api: Connection,
    pub(super) resolver: LoggedProcess,
    pub(super) wakes: WakeReceiver,
    pub(super) at: std::net::SocketAddr,
}

impl HeldScenario {
    pub(super) async fn start(neap: &Path) -> Result<Self> {
        let (pod, wakes) = (Pod::start()?, WakeReceiver::start().await?);
        let environment = TestEnvironment::start(neap).await?;
        let mut api = environment.connect().await?;
        let at = environment::create_sleeping(&mut api, WEB, 0, &ports(&pod)).await?[0];
        let resolver = environment.resolver(wakes.address)?;
        let mut scenario = Self {
            pod,
            _home: environment,
            api,
            resolver,
            wakes,
            at,
        };
        // Once a request has been held and released, everything works.
        scenario.listening().await?;
        scenario.cycle(1).await?;
        Ok(scenario)
    }

    async fn listening(&self) -> Result<()> {
        let listening = async {
            while tokio::net::TcpStream::connect(self.at).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(WAIT_TIMEOUT, listening)
            .await
            .context("the resolver does not listen")
    }

    /// Holds `held` requests, then makes the pod ready. Returns the times from the start of that
    /// write to the arrival of each request at the pod, in ascending order.
    pub(super) async fn cycle(&mut self, held: usize) -> Result<Vec<Duration>> {
        environment::set_ready(&mut self.api, WEB, &ports(&self.pod), false).await?;
        sleep(PROPAGATION_TIME).await;
        self.wakes.forget();
        self.pod.heard.note_from_now();
        let clients = send_requests(self.at, held).await?;
        let asked = timeout(WAIT_TIMEOUT, self.wakes.asked()).await;
        asked.context("no wake was asked for")??;
        // Time for the last request to arrive at the resolver.
        sleep(PROPAGATION_TIME + Duration::from_micros(200) * held as u32).await;
        let from = self.pod.heard.now();
        environment::set_ready(&mut self.api, WEB, &ports(&self.pod), true).await?;
        let moments = timeout(WAIT_TIMEOUT, self.pod.heard.moments(held)).await;
        let moments = moments.context("not all were let go")?;
        read_responses(clients).await?;
        let mut took: Vec<_> = moments
            .into_iter()
            .map(|at| at.saturating_sub(from))
            .collect();
        took.sort_unstable();
        Ok(took)
    }
}

pub(super) fn ports(pod: &Pod) -> [Port<'static>; 1] {
    [("http", 80, pod.http)]
}

/// With 1, 100, 1,000 and 10,000 held requests.
pub async fn held(neap: &Path) -> Result<Vec<ProgramFigures>> {
    open_files(11_000)?;
    let mut scenario = HeldScenario::start(neap).await?;
    let mut figures: Vec<Figure> = Vec::new();
    for (names, held, times) in [
        (["p50 of 1", "p99 of 1"], 1, 200),
        (["p50 of 100", "p99 of 100"], 100, 30),
    ] {
        let mut all = Vec::new();
        for _ in 0..times {
            all.extend(scenario.cycle(held).await?);
        }
        all.sort_unstable();
        figures.push((names[0], milliseconds(percentile(&all, 50))));
        figures.push((names[1], milliseconds(percentile(&all, 99))));
    }
    for (name, held, times) in [("last of 1000", 1_000, 7), ("last of 10000", 10_000, 3)] {
        let mut lasts = Vec::new();
        for _ in 0..times {
            let took = scenario.cycle(held).await?;
            lasts.push(milliseconds(took.last().copied().unwrap_or_default()));
        }
        figures.push((name, median(lasts)?));
    }
    Ok(vec![(OURS, figures)])
}
