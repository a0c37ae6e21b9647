//! Crowds of clients that are idle, slow or list everything: the memory they cost, and their effect on
//! the latency of another client.
//!
//! Each test states a memory bound. The other client's p99 may grow to three times its value without a
//! crowd. Both are measured several times in the same run, and the best values are compared: other load
//! on the machine only makes a value worse, so the best one is closest to the server's own, and noise
//! without a crowd cannot hide a regression. A crowd that is too expensive is so in every round.
//!
//! A p99 is meaningless on a busy machine, so these tests are run manually on an idle one:
//! `NEAP_BIN=target/release/neap cargo test -p neap --features crowds --test crowd`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails if its setup fails"
)]
#![expect(
    clippy::print_stdout,
    reason = "the measurements of a run are printed for the user"
)]

mod clients;
mod limits;
mod measured_client;

use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use neap_load::{
    bulk::send_all,
    client::Client,
    measure::{CONNECTIONS, create},
    objects::{self, Resource},
    server::Server,
    skip::{release_build, skipped},
};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// Measurements per gathering of a crowd.
const ROUNDS: usize = 3;
/// Gatherings of a crowd before the test fails.
const MAX_GATHERINGS: usize = 4;

/// Held by the test that measures, because tests must not run in parallel.
static EXCLUSIVE: Mutex<()> = Mutex::new(());

/// A server with a crowd around it.
struct LoadedServer {
    server: Server,
    client: Client,
    /// Runs the crowd, on threads with lower priority than the server and the measured client: real
    /// clients would not share a processor with them.
    crowd: Runtime,
    quiet: measured_client::Latencies,
    memory: u64,
    _data: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl LoadedServer {
    /// Starts a server with this number of objects and measures it without a crowd; `None` if there is no
    /// release build, or if the limit on open files is too low.
    fn start(test: &str, objects: usize, connections: u64) -> Option<Self> {
        let neap: PathBuf = release_build(test)?;
        if let Err(reason) = limits::raise_open_files(connections) {
            skipped(test, &reason);
            return None;
        }
        let turn = EXCLUSIVE.lock().unwrap_or_else(PoisonError::into_inner);
        let crowd = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .on_thread_start(limits::lower_priority)
            .build()
            .unwrap();
        let data = tempfile::tempdir().unwrap();
        let server = Server::start(&neap, Some(data.path())).unwrap();
        let client = server.client().unwrap();
        crowd.block_on(async {
            let mut connection = client.connect().await.unwrap();
            objects::prepare(&mut connection).await.unwrap();
            send_all(&client, CONNECTIONS, objects, create)
                .await
                .unwrap();
        });
        let quiet = measured_client::best(&client, "quiet", ROUNDS);
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

    /// Growth of the server's memory since the measurement without a crowd.
    fn grown(&self) -> u64 {
        let now = self.server.resident_bytes().unwrap();
        now.saturating_sub(self.memory)
    }

    /// Gathers the crowd and asserts that the latency of the measured client stays within bounds while the
    /// crowd is connected.
    fn assert_latency<C>(
        &self,
        name: &str,
        gather: impl AsyncFn() -> C,
        stays: impl Fn(&C) -> bool,
    ) -> C {
        let mut best: Option<measured_client::Latencies> = None;
        for gathering in 0..MAX_GATHERINGS {
            let crowd = self.crowd.block_on(gather());
            let label = format!("{name} {gathering}");
            let latencies = measured_client::best(&self.client, &label, ROUNDS);
            if !stays(&crowd) {
                println!("{label}: disconnected before the measurement");
                continue;
            }
            let latencies = best.map_or(latencies, |best| best.better(latencies));
            if self.quiet.allows(latencies) {
                println!("{name}: quiet {:?}, then {latencies:?}", self.quiet);
                return crowd;
            }
            best = Some(latencies);
        }
        panic!("{name}: quiet {:?}, then {best:?}", self.quiet);
    }

    fn assert_memory(&self, crowd: &str, bound: u64) {
        let grown = self.grown();
        println!("{crowd}: {grown} bytes of memory");
        assert!(grown <= bound, "{crowd}: {grown} bytes, more than {bound}");
    }
}

#[test]
fn ten_thousand_idle_connections_keep_memory_and_latency_bounded() {
    const CLIENTS: usize = 10_000;
    const EACH: u64 = 40_000;
    let test = "ten_thousand_idle_connections_keep_memory_and_latency_bounded";
    let Some(server) = LoadedServer::start(test, 0, CLIENTS as u64 + 100) else {
        return;
    };
    let gather = async || clients::idle(&server.client, CLIENTS).await.unwrap();
    let idle = server.assert_latency("idle", gather, |idle| clients::closed(idle) == 0);
    server.assert_memory("idle", CLIENTS as u64 * EACH);
    drop(idle);
}

#[test]
fn slow_headers_and_bodies_keep_memory_and_latency_bounded() {
    const CLIENTS: usize = 500;
    let test = "slow_headers_and_bodies_keep_memory_and_latency_bounded";
    let Some(server) = LoadedServer::start(test, 0, 2 * CLIENTS as u64 + 100) else {
        return;
    };
    let gather = async || clients::slow(&server.client, CLIENTS).await.unwrap();
    // Clients whose bodies exceed the memory budget are refused; those with slow headers stay.
    let slow = server.assert_latency("slow", gather, |slow| clients::closed(slow) <= CLIENTS);
    // A gigabyte was sent, most of which the server did not accept.
    server.assert_memory("slow", 400_000_000);
    drop(slow);
}

#[test]
fn stalled_watchers_keep_memory_and_latency_bounded() {
    const CLIENTS: usize = 1000;
    let test = "stalled_watchers_keep_memory_and_latency_bounded";
    let Some(server) = LoadedServer::start(test, 100, CLIENTS as u64 + 100) else {
        return;
    };
    let gather = async || {
        let stalled = clients::stalled_watchers(&server.client, CLIENTS);
        stalled.await.unwrap()
    };
    let stalled = server.assert_latency("stalled", gather, |_| true);
    // Each watcher holds two events of 200 KB, the current one and the next, out of sixty.
    server.assert_memory("stalled", 500_000_000);
    drop(stalled);
}

#[test]
fn a_thousand_concurrent_lists_keep_memory_and_latency_bounded() {
    const CLIENTS: usize = 1000;
    const OBJECTS: usize = 8000;
    let test = "a_thousand_concurrent_lists_keep_memory_and_latency_bounded";
    let Some(server) = LoadedServer::start(test, OBJECTS, CLIENTS as u64 + 100) else {
        return;
    };
    let path = Resource::ConfigMaps.collection();
    let gather = async || {
        let listing = clients::ListingClients::gather(&server.client, &path, CLIENTS);
        listing.await.unwrap()
    };
    let mut listing = server.assert_latency("listing", gather, |_| true);
    server.assert_memory("listing", 400_000_000);
    let shortest = server.crowd.block_on(listing.all_served());
    server.assert_memory("listing", 400_000_000);
    assert!(shortest.unwrap() > OBJECTS * 600, "a list was cut short");
}

/// Formats a duration in milliseconds.
fn millis(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1000.0)
}
