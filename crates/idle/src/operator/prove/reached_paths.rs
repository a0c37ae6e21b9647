//! The paths on which earlier attempts of a proof reached resolvers.
//!
//! Beside a hundred pods hardly any connection leads to a resolver, so no single attempt reaches one from
//! every resolver and at every port. That one was reached stays true while the endpoints of the Service do
//! not change, so the next attempt continues from there. Connections to pods are never carried over: those
//! are known only because no resolver reports them.

use std::{collections::HashMap, net::IpAddr, time::Duration};

use neap_kit::clock::Uptime;
use parking_lot::Mutex;

use super::evaluate::ConnectionCounts;
use crate::elasti_service::reachability::{Claim, ProofRequest};

/// The age up to which a reached path counts; as long as a proof is valid.
const REACHED_TTL: Duration = Duration::from_mins(2);

/// From a resolver to a port of a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ProbePath {
    /// The resolver that connects.
    pub(super) from: IpAddr,
    /// The address and port of the Service.
    pub(super) to: (IpAddr, u16),
    /// The port on which a resolver would accept it.
    pub(super) resolver_port: u16,
}

/// The paths on which resolvers were reached, for each Service by its addresses.
#[derive(Debug, Default)]
pub(super) struct ReachedPaths(Mutex<HashMap<Vec<IpAddr>, Paths>>);

#[derive(Debug)]
struct Paths {
    /// A path that was reached for one claim proves nothing for another.
    claim: Claim,
    counts: HashMap<ProbePath, (Uptime, ConnectionCounts)>,
}

impl ReachedPaths {
    /// The counts on a path where a resolver was reached recently.
    pub(super) fn at(
        &self,
        request: &ProofRequest,
        path: &ProbePath,
        now: Uptime,
    ) -> Option<ConnectionCounts> {
        let all = self.0.lock();
        let paths = all.get(&request.addresses)?;
        let (since, counts) = paths.counts.get(path)?;
        let holds = paths.claim == request.claim && is_fresh(*since, now);
        holds.then(|| counts.clone())
    }

    /// Records that a resolver was reached on a path.
    pub(super) fn record(
        &self,
        request: &ProofRequest,
        path: ProbePath,
        counts: ConnectionCounts,
        now: Uptime,
    ) {
        let mut all = self.0.lock();
        // Entries of deleted Services are removed by age.
        all.retain(|_, paths| {
            paths
                .counts
                .values()
                .any(|(since, _)| is_fresh(*since, now))
        });
        let new = || Paths {
            claim: request.claim.clone(),
            counts: HashMap::new(),
        };
        let paths = all.entry(request.addresses.clone()).or_insert_with(new);
        if paths.claim != request.claim {
            *paths = new();
        }
        paths.counts.insert(path, (now, counts));
    }

    /// Removes the paths of a claim that is proved: a later one is about another time.
    pub(super) fn remove(&self, request: &ProofRequest) {
        self.0.lock().remove(&request.addresses);
    }
}

fn is_fresh(since: Uptime, now: Uptime) -> bool {
    now.saturating_sub(since) < REACHED_TTL
}
