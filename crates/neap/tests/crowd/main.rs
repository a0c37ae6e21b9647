//! Crowds of clients that are silent, slow or greedy: what they cost, and what another client
//! notices of them.
//!
//! Memory has a bound that is stated here. The other client's p99 may grow to three times what it is
//! when nobody else is there. Both are measured in the same run, several times, and the best of each
//! is compared: a machine that is busy with something else only ever makes a figure worse, so the
//! best is the one that says most about the server, and a noisy quiet time cannot excuse it. A crowd
//! that is too much is too much every time it gathers.
//!
//! A p99 says nothing on a machine that does other things, so these are run by hand on a quiet one:
//! `NEAP_BIN=target/release/neap cargo test -p neap --features crowds --test crowd`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what a test needs and lacks fails it"
)]
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

/// How often each figure is taken while a crowd is there.
const ROUNDS: usize = 3;
/// How often a crowd gathers at most.
const GATHERINGS: usize = 4;

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

    /// The other client notices no more of the crowd than it may, and the crowd stays.
    fn endures<C>(&self, name: &str, gather: impl AsyncFn() -> C, stays: impl Fn(&C) -> bool) -> C {
        let mut best: Option<other::Figures> = None;
        for gathering in 0..GATHERINGS {
            let crowd = self.crowd.block_on(gather());
            let label = format!("{name} {gathering}");
            let figures = other::best(&self.client, &label, ROUNDS);
            if !stays(&crowd) {
                println!("{label}: has left before it was measured");
                continue;
            }
            let figures = best.map_or(figures, |best| best.better(figures));
            if self.quiet.allows(figures) {
                println!("{name}: quiet {:?}, then {figures:?}", self.quiet);
                return crowd;
            }
            best = Some(figures);
        }
        panic!("{name}: quiet {:?}, then {best:?}", self.quiet);
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
    let gather = async || crowds::idle(&stage.client, CLIENTS).await.unwrap();
    let idle = stage.endures("idle", gather, |idle| crowds::left(idle) == 0);
    stage.is_bounded("idle", CLIENTS as u64 * EACH);
    drop(idle);
}

#[test]
fn slow_headers_and_slow_bodies_hold_little_and_are_not_noticed() {
    const CLIENTS: usize = 500;
    let test = "slow_headers_and_slow_bodies_hold_little_and_are_not_noticed";
    let Some(stage) = Stage::set(test, 0, 2 * CLIENTS as u64 + 100) else {
        return;
    };
    let gather = async || crowds::slow(&stage.client, CLIENTS).await.unwrap();
    // Those whose bodies find no room are refused; who is slow with headers stays.
    let slow = stage.endures("slow", gather, |slow| crowds::left(slow) <= CLIENTS);
    // A gigabyte was sent, and most of it not let in.
    stage.is_bounded("slow", 400_000_000);
    drop(slow);
}

#[test]
fn watchers_that_never_read_hold_little_and_are_not_noticed() {
    const CLIENTS: usize = 1000;
    let test = "watchers_that_never_read_hold_little_and_are_not_noticed";
    let Some(stage) = Stage::set(test, 100, CLIENTS as u64 + 100) else {
        return;
    };
    let gather = async || {
        let deaf = crowds::deaf_watchers(&stage.client, CLIENTS);
        deaf.await.unwrap()
    };
    let deaf = stage.endures("deaf", gather, |_| true);
    // Each holds two events of 200 KB, the one under way and the next, and little else; sixty were
    // made.
    stage.is_bounded("deaf", 500_000_000);
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
    let gather = async || {
        let greedy = crowds::Greedy::gather(&stage.client, &path, CLIENTS);
        greedy.await.unwrap()
    };
    let mut greedy = stage.endures("greedy", gather, |_| true);
    stage.is_bounded("greedy", 400_000_000);
    let shortest = stage.crowd.block_on(greedy.all_have_one());
    stage.is_bounded("greedy", 400_000_000);
    assert!(shortest.unwrap() > OBJECTS * 600, "a list was cut short");
}

/// Shown in the figures of a run.
fn shown(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1000.0)
}
