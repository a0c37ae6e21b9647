//! The client that is there besides the crowd, and how long it waits.

use std::{fmt, time::Duration};

use http::Method;
use neap_load::{
    client::{Client, Connection},
    objects::{Resource, create},
    stopwatch::Stopwatch,
};
use tokio::runtime::Builder;

use crate::shown;

const MAPS: Resource = Resource::ConfigMaps;
/// Of each kind, so that ten of them are slower than the 99th percentile.
const REQUESTS: usize = 1000;

/// What 99 of 100 requests stayed within.
#[derive(Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) reads: Duration,
    pub(crate) writes: Duration,
}

impl Figures {
    /// The better of both, of each kind.
    pub(crate) fn better(self, other: Self) -> Self {
        Self {
            reads: self.reads.min(other.reads),
            writes: self.writes.min(other.writes),
        }
    }

    /// Whether these may become those among a crowd.
    pub(crate) fn allows(self, among: Self) -> bool {
        among.reads <= self.reads * 3 && among.writes <= self.writes * 3
    }
}

impl fmt::Debug for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reads, writes) = (shown(self.reads), shown(self.writes));
        write!(f, "reads {reads}, writes {writes}")
    }
}

/// The best of some rounds, on a thread of its own.
pub(crate) fn best(client: &Client, name: &str, rounds: usize) -> Figures {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let rounds = (0..rounds).map(|round| {
        let family = format!("{}-{round}", name.replace(' ', "-"));
        let figures = runtime.block_on(one(client, &family));
        println!("  {name}: {figures:?}");
        figures
    });
    rounds.reduce(Figures::better).unwrap()
}

async fn one(client: &Client, family: &str) -> Figures {
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
    Figures {
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

/// Rounds leave nothing behind that the next would have to carry.
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
