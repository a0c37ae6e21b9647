//! How soon those who are held are let go once a pod is ready.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use tokio::time::{sleep, timeout};

use super::{
    OURS, Theirs,
    clients::{ask_all, hear_all, percentile},
    home::{self, Home, PATIENCE, Port},
    open_files,
    pod::Pod,
    proxy::Running,
    wakes::Wakes,
};
use crate::{
    client::Connection,
    measure::{Figure, median, milliseconds},
};

/// A pod that is gone is known to be gone after this time.
const GONE: Duration = Duration::from_millis(50);
const WEB: &str = "web";

/// A service that is put to sleep again and again, with the pod's address known to nobody else.
pub(super) struct Scene {
    pub(super) pod: Pod,
    _home: Home,
    pub(super) api: Connection,
    pub(super) resolver: Running,
    pub(super) wakes: Wakes,
    pub(super) at: std::net::SocketAddr,
}

impl Scene {
    pub(super) async fn start(neap: &Path) -> Result<Self> {
        let (pod, wakes) = (Pod::start()?, Wakes::start().await?);
        let home = Home::start(neap).await?;
        let mut api = home.connect().await?;
        let at = home::asleep(&mut api, WEB, 0, &ports(&pod)).await?[0];
        let resolver = home.resolver(wakes.address)?;
        let mut scene = Self {
            pod,
            _home: home,
            api,
            resolver,
            wakes,
            at,
        };
        // Once one was held and let go, all of it works.
        scene.listening().await?;
        scene.cycle(1).await?;
        Ok(scene)
    }

    async fn listening(&self) -> Result<()> {
        let listening = async {
            while tokio::net::TcpStream::connect(self.at).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, listening)
            .await
            .context("the resolver does not listen")
    }

    /// So many are held; then the pod is ready. How long after the moment in which that is written
    /// the pod hears of each of them, ascending. The write itself counts.
    pub(super) async fn cycle(&mut self, held: usize) -> Result<Vec<Duration>> {
        home::ready(&mut self.api, WEB, &ports(&self.pod), false).await?;
        sleep(GONE).await;
        self.wakes.forget();
        self.pod.heard.note_from_now();
        let clients = ask_all(self.at, held).await?;
        let asked = timeout(PATIENCE, self.wakes.asked()).await;
        asked.context("no wake was asked for")??;
        // The last of them has come in by then.
        sleep(GONE + Duration::from_micros(200) * held as u32).await;
        let from = self.pod.heard.now();
        home::ready(&mut self.api, WEB, &ports(&self.pod), true).await?;
        let moments = timeout(PATIENCE, self.pod.heard.moments(held)).await;
        let moments = moments.context("not all were let go")?;
        hear_all(clients).await?;
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

/// With one, with a hundred, with a thousand and with ten thousand held.
pub async fn held(neap: &Path) -> Result<Vec<Theirs>> {
    open_files(11_000)?;
    let mut scene = Scene::start(neap).await?;
    let mut figures: Vec<Figure> = Vec::new();
    for (names, held, times) in [
        (["p50 of 1", "p99 of 1"], 1, 200),
        (["p50 of 100", "p99 of 100"], 100, 30),
    ] {
        let mut all = Vec::new();
        for _ in 0..times {
            all.extend(scene.cycle(held).await?);
        }
        all.sort_unstable();
        figures.push((names[0], milliseconds(percentile(&all, 50))));
        figures.push((names[1], milliseconds(percentile(&all, 99))));
    }
    for (name, held, times) in [("last of 1000", 1_000, 7), ("last of 10000", 10_000, 3)] {
        let mut lasts = Vec::new();
        for _ in 0..times {
            let took = scene.cycle(held).await?;
            lasts.push(milliseconds(took.last().copied().unwrap_or_default()));
        }
        figures.push((name, median(lasts)?));
    }
    Ok(vec![(OURS, figures)])
}
