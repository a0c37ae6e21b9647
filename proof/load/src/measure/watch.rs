//! How soon watchers receive an event.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use http::Method;
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{Duration, timeout},
};

use super::{CONNECTIONS, Figure, create_as, median, milliseconds, prepare};
use crate::{
    client::{Client, Connection, Http2Connection},
    objects::{self, Resource},
    stopwatch::Stopwatch,
    subject::{Storage, Subject},
    watcher::EventCounter,
};

/// Writes before those that count.
const WARM_UP: usize = 10;
/// Time for all watchers to receive an event.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// From sending a POST to the event at a watcher; the median of `count`.
pub async fn event_latency(subject: &Subject, count: usize) -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let took = measure(
        subject,
        Storage::Folder(folder.path()),
        (1, WatcherConnections::Own),
        count,
    )
    .await?;
    Ok(vec![("told", took)])
}

/// From sending a POST until the last of `watchers` has the event; the median of `count`. First
/// they share the connections that all figures are taken with, as the watches of one process do,
/// then each has its own.
pub async fn fan_out(subject: &Subject, watchers: usize, count: usize) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (name, connections_kind) in [
        ("last told", WatcherConnections::Shared(CONNECTIONS)),
        ("last told, alone", WatcherConnections::Own),
    ] {
        let took = measure(
            subject,
            Storage::Memory,
            (watchers, connections_kind),
            count,
        )
        .await?;
        figures.push((name, took));
    }
    Ok(figures)
}

/// How watchers are connected.
#[derive(Debug, Clone, Copy)]
enum WatcherConnections {
    /// On this many HTTP/2 connections.
    Shared(usize),
    /// On a connection each.
    Own,
}

async fn measure(
    subject: &Subject,
    storage: Storage<'_>,
    (watchers, connections_kind): (usize, WatcherConnections),
    count: usize,
) -> Result<f64> {
    let server = subject.start(storage).await?;
    let client = server.client();
    let mut connection = client.connect().await?;
    prepare(&mut connection).await?;
    let mut group =
        WatcherGroup::gather(client, &mut connection, watchers, connections_kind).await?;
    let mut took = Vec::new();
    for number in 0..WARM_UP + count {
        let elapsed = group.write(&mut connection, number).await?;
        if number >= WARM_UP {
            took.push(elapsed);
        }
    }
    drop((group, connection));
    server.stop().await?;
    median(took)
}

/// Watchers of one collection, and the number of events they have received, all together.
struct WatcherGroup {
    size: usize,
    received: Arc<EventCount>,
    tasks: JoinSet<Result<()>>,
    _connections: Vec<Http2Connection>,
}

#[derive(Default)]
struct EventCount {
    count: Mutex<CountState>,
    all_received: Notify,
}

#[derive(Default)]
struct CountState {
    events: usize,
    /// The watcher whose event reaches this count stops the stopwatch: waking the writer first
    /// would be measured too.
    wanted: usize,
    watch: Option<Stopwatch>,
    took: Option<Duration>,
}

impl EventCount {
    fn count<T>(&self, change: impl FnOnce(&mut CountState) -> T) -> T {
        change(&mut self.count.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, events: usize) {
        let done = self.count(|count| {
            count.events += events;
            let done = count.events >= count.wanted;
            if done && let Some(watch) = count.watch.take() {
                count.took = Some(watch.elapsed());
            }
            done
        });
        if done {
            self.all_received.notify_one();
        }
    }

    /// Starts the stopwatch for the events up to `wanted`.
    fn start(&self, wanted: usize) {
        self.count(|count| {
            count.wanted = wanted;
            count.watch = Some(Stopwatch::start());
        });
    }

    async fn took(&self) -> Duration {
        loop {
            if let Some(took) = self.count(|count| count.took.take()) {
                return took;
            }
            self.all_received.notified().await;
        }
    }
}

impl WatcherGroup {
    async fn gather(
        client: &Client,
        connection: &mut Connection,
        size: usize,
        connections_kind: WatcherConnections,
    ) -> Result<Self> {
        let path = Resource::ConfigMaps.collection();
        let listed = connection.send(Method::GET, &path, "").await?;
        let from = objects::revision(&listed.success()?)?;
        let path = format!("{path}?watch=1&resourceVersion={from}");
        let mut connections = Vec::new();
        if let WatcherConnections::Shared(count) = connections_kind {
            for _ in 0..count {
                connections.push(client.multiplex().await?);
            }
        }
        let received = Arc::new(EventCount::default());
        let mut tasks = JoinSet::new();
        for number in 0..size {
            let mut watcher = match connections_kind {
                WatcherConnections::Own => EventCounter::on_own_connection(client, &path).await?,
                WatcherConnections::Shared(count) => {
                    EventCounter::on_shared_connection(&connections[number % count], &path).await?
                }
            };
            let received = received.clone();
            tasks.spawn(async move {
                loop {
                    received.add(watcher.events().await?);
                }
            });
        }
        Ok(Self {
            size,
            received,
            tasks,
            _connections: connections,
        })
    }

    /// Writes once, and returns the milliseconds until every watcher has the event.
    async fn write(&mut self, connection: &mut Connection, number: usize) -> Result<f64> {
        let shot = create_as("told", number);
        self.received.start(self.size * (number + 1));
        let all_received = async { Ok(self.received.took().await) };
        let written = connection.send(shot.method, &shot.path, shot.body);
        let both = async { tokio::try_join!(all_received, written) };
        let (elapsed, answer) = timeout(DELIVERY_TIMEOUT, both)
            .await
            .context("not every watcher received the event")??;
        ensure!(answer.status == 201, "the write was refused");
        ensure!(self.tasks.try_join_next().is_none(), "a watch has ended");
        Ok(milliseconds(elapsed))
    }
}
