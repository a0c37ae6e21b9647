//! What the counts of accepted connections prove.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use crate::{api::Towards, elasti_service::reachability::Claim};

/// Who accepted the connections to one port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ConnectionCounts {
    /// The number that was accepted.
    pub(super) opened: usize,
    /// The number that resolvers know by their sources.
    pub(super) by_resolvers: usize,
    /// The number of those whose sources resolvers knew before: the report may be about earlier
    /// connections.
    pub(super) repeated: usize,
    /// The sources of other connections to resolvers meanwhile, which may be rewritten ones.
    pub(super) rewritten: Vec<IpAddr>,
    /// The number that was not accepted.
    pub(super) failed: usize,
}

impl ConnectionCounts {
    pub(super) fn add(&mut self, other: Self) {
        self.opened += other.opened;
        self.by_resolvers += other.by_resolvers;
        self.repeated += other.repeated;
        self.rewritten.extend(other.rewritten);
        self.failed += other.failed;
    }

    /// The number that pods accepted at least: each that may be a resolver's counts as one.
    fn by_pods(&self) -> usize {
        let resolvers = self.by_resolvers + self.rewritten.len();
        self.opened.saturating_sub(resolvers)
    }
}

/// The source NAT of each resolver; that of one proves nothing about another.
pub(super) type SourceNats = BTreeMap<IpAddr, SourceNat>;

/// How the data plane rewrites the sources of a resolver's connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SourceNat {
    /// Sources are not rewritten.
    None,
    /// Some sources are rewritten to these addresses.
    Known(BTreeSet<IpAddr>),
    /// It could not be found out.
    Unknown,
}

impl SourceNat {
    pub(super) fn may_be(&self, source: IpAddr) -> bool {
        match self {
            Self::None => false,
            Self::Known(addresses) => addresses.contains(&source),
            Self::Unknown => true,
        }
    }
}

/// The source NAT by connections to the resolvers' own Service. Every one must be accounted for: if no
/// resolver reports it under any address, or none could be opened, rewriting cannot be ruled out.
pub(super) fn source_nat(counts: Vec<ConnectionCounts>) -> SourceNat {
    let hidden = |one: &ConnectionCounts| one.opened.saturating_sub(one.by_resolvers);
    let unclear = |one: &ConnectionCounts| one.opened == 0 || hidden(one) > one.rewritten.len();
    if counts.is_empty() || counts.iter().any(unclear) {
        return SourceNat::Unknown;
    }
    let hiding = counts.into_iter().filter(|one| hidden(one) > 0);
    let addresses: BTreeSet<_> = hiding.flat_map(|one| one.rewritten).collect();
    if addresses.is_empty() {
        SourceNat::None
    } else {
        SourceNat::Known(addresses)
    }
}

/// Whether more connections would prove nothing more.
pub(super) fn is_final(claim: &Claim) -> bool {
    claim.towards == Towards::Pods && !claim.beside_resolvers
}

/// Whether more connections to this port would prove nothing more. Pods are searched at all ports together.
pub(super) fn is_sufficient(
    claim: &Claim,
    port: &ConnectionCounts,
    source_nat: &SourceNat,
) -> bool {
    claim.towards == Towards::Resolvers && reaches_a_resolver(port, source_nat)
}

fn reaches_a_resolver(port: &ConnectionCounts, source_nat: &SourceNat) -> bool {
    let known = matches!(source_nat, SourceNat::Known(_));
    port.by_resolvers > port.repeated || known && !port.rewritten.is_empty()
}

/// Whether the counts at all ports of one address prove the claim.
pub(super) fn holds(claim: &Claim, ports: &[ConnectionCounts], source_nat: &SourceNat) -> bool {
    let any_to_pods = ports.iter().any(|port| port.by_pods() > 0);
    let proved = |port: &ConnectionCounts| match (claim.towards, claim.beside_resolvers) {
        (Towards::Resolvers, _) => reaches_a_resolver(port, source_nat),
        // Pods may not listen on some ports. The data plane learns of all ports of a pod together, so one
        // that accepts is evidence for those.
        (Towards::Pods, true) => port.by_pods() > 0 || port.failed > 0,
        (Towards::Pods, false) => port.by_resolvers == 0 && port.rewritten.is_empty(),
    };
    let reached = claim.towards == Towards::Resolvers || any_to_pods;
    !ports.is_empty() && reached && ports.iter().all(proved)
}
