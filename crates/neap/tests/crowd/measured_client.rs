//! The client whose latency is measured.

use std::{fmt, time::Duration};

use http::Method;
use neap_load::{
    client::{Client, Connection},
    objects::{Resource, create},
    stopwatch::Stopwatch,
};
use tokio::runtime::Builder;

use crate::millis;

const MAPS: Resource = Resource::ConfigMaps;
/// Reads and writes per measurement; ten of each are above the 99th percentile.
const REQUESTS: usize = 1000;

/// The 99th percentiles.
#[derive(Clone, Copy)]
pub(crate) struct Latencies {
    pub(crate) reads: Duration,
    pub(crate) writes: Duration,
}

impl Latencies {
    /// The lower value of each kind.
    pub(crate) fn better(self, other: Self) -> Self {
        Self {
            reads: self.reads.min(other.reads),
            writes: self.writes.min(other.writes),
        }
    }

    /// Whether the latencies within a crowd are acceptable, compared with these.
    pub(crate) fn allows(self, crowded: Self) -> bool {
        crowded.reads <= self.reads * 3 && crowded.writes <= self.writes * 3
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reads, writes) = (millis(self.reads), millis(self.writes));
        write!(f, "reads {reads}, writes {writes}")
    }
}

/// The best of several rounds, on a single-threaded runtime.
pub(crate) fn best(client: &Client, name: &str, rounds: usize) -> Latencies {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let rounds = (0..rounds).map(|round| {
        let family = format!("{}-{round}", name.replace(' ', "-"));
        let latencies = runtime.block_on(one(client, &family));
        println!("  {name}: {latencies:?}");
        latencies
    });
    rounds.reduce(Latencies::better).unwrap()
}

async fn one(client: &Client, family: &str) -> Latencies {
    let mut connection = client.connect().await.unwrap();
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for number in 0..REQUESTS {
        let name = format!("{family}-{number}");
        let object = MAPS.object(&name, 1, 300);
        let watch = Stopwatch::start();
        let created = create(&mut connection, MAPS, &object).await.unwrap();
        writes.push(watch.elapsed());
        assert_eq!(created.status, 201);
        reads.push(read(&mut connection, &name).await);
    }
    remove(&mut connection, family).await;
    Latencies {
        reads: p99(reads),
        writes: p99(writes),
    }
}

async fn read(connection: &mut Connection, name: &str) -> Duration {
    let watch = Stopwatch::start();
    let read = connection.send(Method::GET, &MAPS.path(name), "").await;
    let elapsed = watch.elapsed();
    assert_eq!(read.unwrap().status, 200);
    elapsed
}

/// Deletes the objects of a round, so that they do not affect the next.
async fn remove(connection: &mut Connection, family: &str) {
    for number in 0..REQUESTS {
        let path = MAPS.path(&format!("{family}-{number}"));
        let removed = connection.send(Method::DELETE, &path, "").await;
        assert_eq!(removed.unwrap().status, 200);
    }
}

fn p99(mut latencies: Vec<Duration>) -> Duration {
    latencies.sort_unstable();
    latencies[latencies.len() * 99 / 100]
}
