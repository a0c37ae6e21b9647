//! Which connections this resolver took, so that it can confirm or deny a proof.
//!
//! Whoever proves where the data plane leads opens connections to the address of a Service without
//! sending a byte, and asks the resolvers afterwards which of them were theirs. Such a connection must
//! not wake the service. On ports that wake at accept it cannot be told from a client of a
//! server-first protocol by what it sends, only by where it comes from: [`Taken::may_be_proof`].

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

/// So long a connection is remembered.
pub const REMEMBERED: Duration = Duration::from_mins(1);
/// So many at most; the oldest are forgotten first.
const AT_MOST: usize = 65_536;
/// So many strangers are told of.
const STRANGERS: usize = 1024;
/// Whoever proves something closes its connections within this time. One that may be a proof and
/// is still there after it is a client.
pub const PROOF_LASTS: Duration = Duration::from_secs(1);

/// What was taken lately. Cheap to copy.
#[derive(Debug, Clone)]
pub struct Taken {
    clock: Clock,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    sources: Mutex<Sources>,
    /// Addresses of resolvers, this one among them.
    resolvers: RwLock<BTreeSet<IpAddr>>,
    /// Proofs that this resolver itself has under way.
    proving: AtomicUsize,
}

#[derive(Debug, Default)]
struct Sources {
    /// How many times each is in the order below.
    counted: HashMap<SocketAddr, usize>,
    /// With the port at which it was taken.
    order: VecDeque<(Uptime, SocketAddr, u16)>,
}

/// While it lives, this resolver has a proof under way.
#[derive(Debug)]
pub struct Proving(Arc<Shared>);

impl Taken {
    /// Nothing was taken yet.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            shared: Arc::default(),
        }
    }

    /// A connection from `source` was accepted at one of our ports.
    pub fn note(&self, source: SocketAddr, port: u16) {
        let source = canonical(source);
        let now = self.clock.uptime();
        let mut sources = self.shared.sources.lock();
        sources.forget(now);
        sources.order.push_back((now, source, port));
        *sources.counted.entry(source).or_default() += 1;
    }

    /// Those of `asked` that were taken here within the last minute.
    pub fn of<'a>(&self, asked: impl IntoIterator<Item = &'a SocketAddr>) -> Vec<SocketAddr> {
        let mut sources = self.shared.sources.lock();
        sources.forget(self.clock.uptime());
        let asked = asked.into_iter().copied();
        asked
            .filter(|source| sources.counted.contains_key(&canonical(*source)))
            .collect()
    }

    /// Those that came to one of `ports` within the time, and that nobody asked about. At most so many
    /// as a proof has use for.
    pub fn strangers(
        &self,
        asked: &[SocketAddr],
        ports: &[u16],
        within: Duration,
    ) -> Vec<SocketAddr> {
        let asked: BTreeSet<_> = asked.iter().copied().map(canonical).collect();
        let now = self.clock.uptime();
        let sources = self.shared.sources.lock();
        let lately = sources.order.iter().rev();
        let lately = lately.take_while(|(since, ..)| now.saturating_sub(*since) <= within);
        lately
            .filter(|(_, source, port)| ports.contains(port) && !asked.contains(source))
            .map(|(_, source, _)| *source)
            .take(STRANGERS)
            .collect()
    }

    /// Where resolvers have their addresses, from whom proofs come.
    pub fn resolvers_are(&self, addresses: BTreeSet<IpAddr>) {
        let addresses = addresses.into_iter().map(|address| address.to_canonical());
        *self.shared.resolvers.write() = addresses.collect();
    }

    /// To be held while this resolver opens connections for a proof. One that comes back to itself
    /// may be given the address of the node on the way, so its source alone does not show it.
    pub fn proving(&self) -> Proving {
        self.shared.proving.fetch_add(1, Ordering::SeqCst);
        Proving(self.shared.clone())
    }

    /// Whether a connection from there may be a proof, so that it must not wake anybody before it
    /// has sent a byte or lasted for [`PROOF_LASTS`].
    pub fn may_be_proof(&self, source: SocketAddr) -> bool {
        let resolver = || {
            let resolvers = self.shared.resolvers.read();
            resolvers.contains(&source.ip().to_canonical())
        };
        self.shared.proving.load(Ordering::SeqCst) > 0 || resolver()
    }
}

impl Sources {
    fn forget(&mut self, now: Uptime) {
        while let Some((since, source, _)) = self.order.front().copied() {
            if now.saturating_sub(since) < REMEMBERED && self.order.len() < AT_MOST {
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

impl Drop for Proving {
    fn drop(&mut self) {
        self.0.proving.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A listener for both families shows IPv4 addresses in an IPv6 form.
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
        let taken = Taken::new(clock);
        let (mine, other) = (address("10.0.0.1:4000"), address("10.0.0.1:4001"));
        taken.note(address("[::ffff:10.0.0.1]:4000"), 20_000);
        assert_eq!(taken.of(&[mine, other]), [mine]);
        clock.sleep(Duration::from_secs(59)).await;
        taken.note(other, 20_001);
        assert_eq!(
            taken.strangers(&[mine], &[20_000, 20_001], REMEMBERED),
            [other]
        );
        assert_eq!(
            taken.strangers(&[other], &[20_000, 20_001], Duration::ZERO),
            []
        );
        assert_eq!(taken.strangers(&[other], &[20_001], REMEMBERED), []);
        assert_eq!(taken.of(&[mine, other]), [mine, other]);
        clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(taken.of(&[mine, other]), [other]);
    }

    #[tokio::test(start_paused = true)]
    async fn proofs_come_from_resolvers_or_while_one_is_under_way_here() {
        let taken = Taken::new(Clock::system());
        let (client, resolver) = (address("10.0.0.1:4000"), address("10.0.0.9:4000"));
        taken.resolvers_are([resolver.ip()].into());
        assert!(taken.may_be_proof(resolver));
        assert!(!taken.may_be_proof(client));
        let proving = taken.proving();
        assert!(taken.may_be_proof(client));
        drop(proving);
        assert!(!taken.may_be_proof(client));
    }
}
