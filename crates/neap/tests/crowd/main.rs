//! Crowds of clients that are silent, slow or greedy: what they cost, and what another client
//! notices of them.
//!
//! Memory has a bound that is stated here. The other client's p99 may grow to three times what it is
//! when nobody else is there. Both are measured in the same run, several times, and the best of each
//! is compared: a machine that is busy with something else only ever makes a figure worse, so the
//! best is the one that says most about the server, and a noisy quiet time cannot excuse it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]
#![expect(clippy::print_stdout, reason = "the figures of a run are for readers")]

mod crowds;
mod limits;
mod other;

use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use neap_load::{
    client::Client,
    measure::{CONNECTIONS, create},
    objects::{self, Resource},
    rush::rush,
    server::Server,
    skip::{release_build, skipped},
};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// How often each figure is taken.
const ROUNDS: usize = 3;

/// One crowd at a time: they are measured.
static TURN: Mutex<()> = Mutex::new(());

/// A server with a crowd around it.
struct Stage {
    server: Server,
    client: Client,
    /// The crowd runs here, on threads that stand back behind the server and the other client: it
    /// would not share a processor with them if it were not for the test.
    crowd: Runtime,
    quiet: other::Figures,
    memory: u64,
    _data: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Stage {
    /// A server with so many objects, measured while it is quiet; nothing if there is no release
    /// build or not room for as many open files.
    fn set(test: &str, objects: usize, connections: u64) -> Option<Self> {
        let neap: PathBuf = release_build(test)?;
        if let Err(reason) = limits::raise_open_files(connections) {
            skipped(test, &reason);
            return None;
        }
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let crowd = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .on_thread_start(limits::stand_back)
            .build()
            .unwrap();
        let data = tempfile::tempdir().unwrap();
        let server = Server::start(&neap, Some(data.path())).unwrap();
        let client = server.client().unwrap();
        crowd.block_on(async {
            let mut connection = client.connect().await.unwrap();
            objects::prepare(&mut connection).await.unwrap();
            rush(&client, CONNECTIONS, objects, create).await.unwrap();
        });
        let quiet = other::best(&client, "quiet", ROUNDS);
        let memory = server.resident_bytes().unwrap();
        Some(Self {
            server,
            client,
            crowd,
            quiet,
            memory,
            _data: data,
            _turn: turn,
        })
    }

    /// What the server has grown by since it was quiet.
    fn grown(&self) -> u64 {
        let now = self.server.resident_bytes().unwrap();
        now.saturating_sub(self.memory)
    }

    /// The other client notices no more of the crowd than it may.
    fn is_bearable(&self, crowd: &str) {
        let loaded = other::best(&self.client, crowd, ROUNDS);
        println!("{crowd}: quiet {:?}, then {loaded:?}", self.quiet);
        for (what, quiet, loaded) in [
            ("reads", self.quiet.reads, loaded.reads),
            ("writes", self.quiet.writes, loaded.writes),
        ] {
            assert!(
                loaded <= quiet * 3,
                "{crowd}: 99 of 100 {what} took up to {loaded:?}, and {quiet:?} when it was quiet"
            );
        }
    }

    fn is_bounded(&self, crowd: &str, bound: u64) {
        let grown = self.grown();
        println!("{crowd}: {grown} bytes of memory");
        assert!(grown <= bound, "{crowd}: {grown} bytes, more than {bound}");
    }
}

#[test]
fn ten_thousand_idle_connections_cost_little_each_and_are_not_noticed() {
    const CLIENTS: usize = 10_000;
    const EACH: u64 = 40_000;
    let test = "ten_thousand_idle_connections_cost_little_each_and_are_not_noticed";
    let Some(stage) = Stage::set(test, 0, CLIENTS as u64 + 100) else {
        return;
    };
    let idle = stage
        .crowd
        .block_on(crowds::idle(&stage.client, CLIENTS))
        .unwrap();
    stage.is_bounded("idle connections", CLIENTS as u64 * EACH);
    stage.is_bearable("idle connections");
    assert_eq!(crowds::left(&idle), 0, "hung up on before the end");
}

#[test]
fn slow_headers_and_slow_bodies_hold_little_and_are_not_noticed() {
    const CLIENTS: usize = 500;
    let test = "slow_headers_and_slow_bodies_hold_little_and_are_not_noticed";
    let Some(stage) = Stage::set(test, 0, 2 * CLIENTS as u64 + 100) else {
        return;
    };
    let slow = crowds::slow(&stage.client, CLIENTS);
    let slow = stage.crowd.block_on(slow).unwrap();
    stage.is_bearable("slow headers and bodies");
    // A gigabyte was sent, and most of it not let in.
    stage.is_bounded("slow headers and bodies", 400_000_000);
    drop(slow);
}

#[test]
fn watchers_that_never_read_hold_little_and_are_not_noticed() {
    const CLIENTS: usize = 1000;
    let test = "watchers_that_never_read_hold_little_and_are_not_noticed";
    let Some(stage) = Stage::set(test, 100, CLIENTS as u64 + 100) else {
        return;
    };
    let deaf = crowds::deaf_watchers(&stage.client, CLIENTS);
    let deaf = stage.crowd.block_on(deaf).unwrap();
    stage.is_bearable("watchers that never read");
    // Each holds one event of 200 KB, and little else.
    stage.is_bounded("watchers that never read", 400_000_000);
    drop(deaf);
}

#[test]
fn a_thousand_lists_at_once_hold_little_and_are_not_noticed() {
    const CLIENTS: usize = 1000;
    const OBJECTS: usize = 8000;
    let test = "a_thousand_lists_at_once_hold_little_and_are_not_noticed";
    let Some(stage) = Stage::set(test, OBJECTS, CLIENTS as u64 + 100) else {
        return;
    };
    let path = Resource::ConfigMaps.collection();
    let mut greedy = stage
        .crowd
        .block_on(crowds::Greedy::gather(&stage.client, &path, CLIENTS))
        .unwrap();
    stage.is_bearable("lists");
    stage.is_bounded("lists", 400_000_000);
    let shortest = stage.crowd.block_on(greedy.all_have_one());
    stage.is_bounded("lists", 400_000_000);
    assert!(shortest.unwrap() > OBJECTS * 600, "a list was cut short");
}

/// Shown in the figures of a run.
fn shown(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1000.0)
}
