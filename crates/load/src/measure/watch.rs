//! How soon those who watch are told.

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
    client::{Client, Connection, Multiplexed},
    objects::{self, Resource},
    stopwatch::Stopwatch,
    subject::{Keeping, Subject},
    watcher::Watcher,
};

/// Writes before those that count.
const WARM_UP: usize = 10;
/// Watchers that have not been told after this long never will be.
const PATIENCE: Duration = Duration::from_secs(30);

/// From sending a POST to the event in the hands of a watcher; the median of `count`.
pub async fn told(subject: &Subject, count: usize) -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let took = measure(
        subject,
        Keeping::Folder(folder.path()),
        (1, Seats::Own),
        count,
    )
    .await?;
    Ok(vec![("told", took)])
}

/// From sending a POST until the last of `watchers` has the event; the median of `count`. They share
/// the connections that all figures are taken with, as the watches of one process do, and then each
/// has its own.
pub async fn fan_out(subject: &Subject, watchers: usize, count: usize) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (name, seats) in [
        ("last told", Seats::Shared(CONNECTIONS)),
        ("last told, alone", Seats::Own),
    ] {
        let took = measure(subject, Keeping::Memory, (watchers, seats), count).await?;
        figures.push((name, took));
    }
    Ok(figures)
}

/// How watchers are connected.
#[derive(Debug, Clone, Copy)]
enum Seats {
    /// On so many HTTP/2 connections.
    Shared(usize),
    /// On a connection each.
    Own,
}

async fn measure(
    subject: &Subject,
    keeping: Keeping<'_>,
    (watchers, seats): (usize, Seats),
    count: usize,
) -> Result<f64> {
    let server = subject.start(keeping).await?;
    let client = server.client();
    let mut connection = client.connect().await?;
    prepare(&mut connection).await?;
    let mut crowd = Crowd::gather(client, &mut connection, watchers, seats).await?;
    let mut took = Vec::new();
    for number in 0..WARM_UP + count {
        let elapsed = crowd.write(&mut connection, number).await?;
        if number >= WARM_UP {
            took.push(elapsed);
        }
    }
    drop((crowd, connection));
    server.stop().await?;
    median(took)
}

/// Watchers of one collection, and how many events they have been told of, all together.
struct Crowd {
    size: usize,
    told: Arc<Told>,
    tasks: JoinSet<Result<()>>,
    _connections: Vec<Multiplexed>,
}

#[derive(Default)]
struct Told {
    count: Mutex<Count>,
    everybody: Notify,
}

#[derive(Default)]
struct Count {
    events: usize,
    /// Whoever counts up to this stops the watch: waking the writer first would be measured too.
    wanted: usize,
    watch: Option<Stopwatch>,
    took: Option<Duration>,
}

impl Told {
    fn count<T>(&self, change: impl FnOnce(&mut Count) -> T) -> T {
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
            self.everybody.notify_one();
        }
    }

    /// Starts the watch for the events up to `wanted`.
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
            self.everybody.notified().await;
        }
    }
}

impl Crowd {
    async fn gather(
        client: &Client,
        connection: &mut Connection,
        size: usize,
        seats: Seats,
    ) -> Result<Self> {
        let path = Resource::ConfigMaps.collection();
        let listed = connection.send(Method::GET, &path, "").await?;
        let from = objects::revision(&listed.success()?)?;
        let path = format!("{path}?watch=1&resourceVersion={from}");
        let mut connections = Vec::new();
        if let Seats::Shared(count) = seats {
            for _ in 0..count {
                connections.push(client.multiplex().await?);
            }
        }
        let told = Arc::new(Told::default());
        let mut tasks = JoinSet::new();
        for number in 0..size {
            let mut watcher = match seats {
                Seats::Own => Watcher::alone(client, &path).await?,
                Seats::Shared(count) => Watcher::among(&connections[number % count], &path).await?,
            };
            let told = told.clone();
            tasks.spawn(async move {
                loop {
                    told.add(watcher.events().await?);
                }
            });
        }
        Ok(Self {
            size,
            told,
            tasks,
            _connections: connections,
        })
    }

    /// Writes once, and returns how long it took until everybody knew, in milliseconds.
    async fn write(&mut self, connection: &mut Connection, number: usize) -> Result<f64> {
        let shot = create_as("told", number);
        self.told.start(self.size * (number + 1));
        let everybody = async { Ok(self.told.took().await) };
        let written = connection.send(shot.method, &shot.path, shot.body);
        let both = async { tokio::try_join!(everybody, written) };
        let (elapsed, answer) = timeout(PATIENCE, both)
            .await
            .context("not every watcher was told")??;
        ensure!(answer.status == 201, "the write was refused");
        ensure!(self.tasks.try_join_next().is_none(), "a watch has ended");
        Ok(milliseconds(elapsed))
    }
}
