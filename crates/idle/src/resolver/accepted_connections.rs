//! The connections that this resolver accepted recently, so that it can answer a probe.
//!
//! A resolver that probes where the data plane routes opens connections to the address of a Service
//! without sending a byte, and the operator then asks all resolvers which of them they accepted. A probe
//! must not wake the service. On ports that wake at accept, only its source distinguishes it from a
//! client of a server-first protocol: [`AcceptedConnections::may_be_probe`].

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use neap_kit::clock::{Clock, Uptime};
use parking_lot::{Mutex, RwLock};

/// How long an accepted connection is remembered.
pub const ACCEPTED_RETENTION: Duration = Duration::from_mins(1);
/// Upper limit on remembered connections; the oldest are dropped first.
const MAX_RECORDED_CONNECTIONS: usize = 65_536;
/// Upper limit on the unexpected sources in one answer.
const MAX_UNEXPECTED_SOURCES: usize = 1024;
/// Probe connections are closed within this time. A connection that may be a probe and is open for
/// longer is a client.
pub const PROBE_LIFETIME: Duration = Duration::from_secs(1);

/// Recently accepted connections. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AcceptedConnections {
    clock: Clock,
    shared: Arc<AcceptedState>,
}

#[derive(Debug, Default)]
struct AcceptedState {
    sources: Mutex<RecordedSources>,
    /// Addresses of all resolvers, including this one.
    resolvers: RwLock<BTreeSet<IpAddr>>,
    /// Probes of this resolver that are in progress.
    active_probes: AtomicUsize,
}

#[derive(Debug, Default)]
struct RecordedSources {
    /// How often each source occurs in `order`.
    counted: HashMap<SocketAddr, usize>,
    /// Connections by age, with the port that accepted them.
    order: VecDeque<(Uptime, SocketAddr, u16)>,
}

/// Marks a probe of this resolver as in progress until dropped.
#[derive(Debug)]
pub struct ProbeGuard(Arc<AcceptedState>);

impl AcceptedConnections {
    /// No connections.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            shared: Arc::default(),
        }
    }

    /// Records a connection from `source` that was accepted on `port`.
    pub fn record(&self, source: SocketAddr, port: u16) {
        let source = canonical(source);
        let now = self.clock.uptime();
        let mut sources = self.shared.sources.lock();
        sources.expire(now);
        sources.order.push_back((now, source, port));
        *sources.counted.entry(source).or_default() += 1;
    }

    /// Those of `addresses` that were accepted here within [`ACCEPTED_RETENTION`].
    pub fn accepted_among<'a>(
        &self,
        addresses: impl IntoIterator<Item = &'a SocketAddr>,
    ) -> Vec<SocketAddr> {
        let mut sources = self.shared.sources.lock();
        sources.expire(self.clock.uptime());
        let addresses = addresses.into_iter().copied();
        addresses
            .filter(|source| sources.counted.contains_key(&canonical(*source)))
            .collect()
    }

    /// Sources that connected to one of `ports` within this time and are not in `expected`, at most
    /// [`MAX_UNEXPECTED_SOURCES`].
    pub fn unexpected_sources(
        &self,
        expected: &[SocketAddr],
        ports: &[u16],
        within: Duration,
    ) -> Vec<SocketAddr> {
        let expected: BTreeSet<_> = expected.iter().copied().map(canonical).collect();
        let now = self.clock.uptime();
        let sources = self.shared.sources.lock();
        let lately = sources.order.iter().rev();
        let lately = lately.take_while(|(since, ..)| now.saturating_sub(*since) <= within);
        lately
            .filter(|(_, source, port)| ports.contains(port) && !expected.contains(source))
            .map(|(_, source, _)| *source)
            .take(MAX_UNEXPECTED_SOURCES)
            .collect()
    }

    /// Replaces the addresses of the resolvers, which probes come from.
    pub fn set_resolver_addresses(&self, addresses: BTreeSet<IpAddr>) {
        let addresses = addresses.into_iter().map(|address| address.to_canonical());
        *self.shared.resolvers.write() = addresses.collect();
    }

    /// Marks a probe as in progress; held while this resolver opens its connections. A probe that is
    /// routed back to this resolver may have the node's address as its source (hairpin), so the source
    /// alone does not identify it.
    pub fn start_probe(&self) -> ProbeGuard {
        self.shared.active_probes.fetch_add(1, Ordering::SeqCst);
        ProbeGuard(self.shared.clone())
    }

    /// Whether a connection from `source` may be a probe, which must not wake a service before it has
    /// sent a byte or lasted for [`PROBE_LIFETIME`].
    pub fn may_be_probe(&self, source: SocketAddr) -> bool {
        let resolver = || {
            let resolvers = self.shared.resolvers.read();
            resolvers.contains(&source.ip().to_canonical())
        };
        self.shared.active_probes.load(Ordering::SeqCst) > 0 || resolver()
    }
}

impl RecordedSources {
    fn expire(&mut self, now: Uptime) {
        while let Some((since, source, _)) = self.order.front().copied() {
            if now.saturating_sub(since) < ACCEPTED_RETENTION
                && self.order.len() < MAX_RECORDED_CONNECTIONS
            {
                return;
            }
            self.order.pop_front();
            if let Some(count) = self.counted.get_mut(&source) {
                *count -= 1;
                if *count == 0 {
                    self.counted.remove(&source);
                }
            }
        }
    }
}

impl Drop for ProbeGuard {
    fn drop(&mut self) {
        self.0.active_probes.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A dual-stack listener reports IPv4 addresses in their IPv6 form.
fn canonical(source: SocketAddr) -> SocketAddr {
    SocketAddr::new(source.ip().to_canonical(), source.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_remembered_for_a_minute() {
        let clock = Clock::system();
        let accepted = AcceptedConnections::new(clock);
        let (mine, other) = (address("10.0.0.1:4000"), address("10.0.0.1:4001"));
        accepted.record(address("[::ffff:10.0.0.1]:4000"), 20_000);
        assert_eq!(accepted.accepted_among(&[mine, other]), [mine]);
        clock.sleep(Duration::from_secs(59)).await;
        accepted.record(other, 20_001);
        assert_eq!(
            accepted.unexpected_sources(&[mine], &[20_000, 20_001], ACCEPTED_RETENTION),
            [other]
        );
        assert_eq!(
            accepted.unexpected_sources(&[other], &[20_000, 20_001], Duration::ZERO),
            []
        );
        assert_eq!(
            accepted.unexpected_sources(&[other], &[20_001], ACCEPTED_RETENTION),
            []
        );
        assert_eq!(accepted.accepted_among(&[mine, other]), [mine, other]);
        clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(accepted.accepted_among(&[mine, other]), [other]);
    }

    #[tokio::test(start_paused = true)]
    async fn probes_come_from_resolvers_or_while_one_is_in_progress_here() {
        let accepted = AcceptedConnections::new(Clock::system());
        let (client, resolver) = (address("10.0.0.1:4000"), address("10.0.0.9:4000"));
        accepted.set_resolver_addresses([resolver.ip()].into());
        assert!(accepted.may_be_probe(resolver));
        assert!(!accepted.may_be_probe(client));
        let start_probe = accepted.start_probe();
        assert!(accepted.may_be_probe(client));
        drop(start_probe);
        assert!(!accepted.may_be_probe(client));
    }
}
