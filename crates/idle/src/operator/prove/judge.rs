//! What follows from where connections ended.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use crate::{api::Towards, service::prove::Question};

/// What became of connections to one port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Somebody took so many.
    pub(super) opened: usize,
    /// Resolvers know so many of them by their sources.
    pub(super) by_resolvers: usize,
    /// So many of those have sources that resolvers knew before, so it may be said of earlier ones.
    pub(super) again: usize,
    /// Others that came to resolvers meanwhile, from addresses that may be disguises.
    pub(super) disguised: Vec<IpAddr>,
    /// Nobody took so many.
    pub(super) failed: usize,
}

impl Seen {
    pub(super) fn add(&mut self, other: Self) {
        self.opened += other.opened;
        self.by_resolvers += other.by_resolvers;
        self.again += other.again;
        self.disguised.extend(other.disguised);
        self.failed += other.failed;
    }

    /// So many at least were taken by pods: whatever may be a resolver's counts as one.
    fn by_pods(&self) -> usize {
        let resolvers = self.by_resolvers + self.disguised.len();
        self.opened.saturating_sub(resolvers)
    }
}

/// How it is with each resolver: one that is disguised says nothing about another.
pub(super) type Disguises = BTreeMap<IpAddr, Disguise>;

/// As whom connections of a resolver may come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Disguise {
    /// Always as themselves.
    None,
    /// From these addresses as well.
    Known(BTreeSet<IpAddr>),
    /// Nobody can say.
    Unknown,
}

impl Disguise {
    pub(super) fn may_be(&self, stranger: IpAddr) -> bool {
        match self {
            Self::None => false,
            Self::Known(disguises) => disguises.contains(&stranger),
            Self::Unknown => true,
        }
    }
}

/// What a look into mirrors shows. Every connection must be accounted for: where nobody says as whom
/// it came, or none could be opened, disguises cannot be ruled out.
pub(super) fn disguise(mirrors: Vec<Seen>) -> Disguise {
    let hidden = |seen: &Seen| seen.opened.saturating_sub(seen.by_resolvers);
    let unclear = |seen: &Seen| seen.opened == 0 || hidden(seen) > seen.disguised.len();
    if mirrors.is_empty() || mirrors.iter().any(unclear) {
        return Disguise::Unknown;
    }
    let showing = mirrors.into_iter().filter(|seen| hidden(seen) > 0);
    let disguises: BTreeSet<_> = showing.flat_map(|seen| seen.disguised).collect();
    if disguises.is_empty() {
        Disguise::None
    } else {
        Disguise::Known(disguises)
    }
}

/// Whether more connections could show nothing new.
pub(super) fn is_final(question: &Question) -> bool {
    question.towards == Towards::Pods && !question.beside
}

/// Whether one look more at a port could show nothing new. Pods are looked for everywhere at once.
pub(super) fn is_enough(question: &Question, port: &Seen, disguise: &Disguise) -> bool {
    question.towards == Towards::Resolvers && reaches_a_resolver(port, disguise)
}

fn reaches_a_resolver(port: &Seen, disguise: &Disguise) -> bool {
    let known = matches!(disguise, Disguise::Known(_));
    port.by_resolvers > port.again || known && !port.disguised.is_empty()
}

/// Whether it is proved by what was seen at all ports of one address.
pub(super) fn holds(question: &Question, ports: &[Seen], disguise: &Disguise) -> bool {
    let any_to_pods = ports.iter().any(|port| port.by_pods() > 0);
    let proved = |port: &Seen| match (question.towards, question.beside) {
        (Towards::Resolvers, _) => reaches_a_resolver(port, disguise),
        // No pod listens on some ports. The data plane learns of all ports of a pod together, so one
        // that answers speaks for those.
        (Towards::Pods, true) => port.by_pods() > 0 || port.failed > 0,
        (Towards::Pods, false) => port.by_resolvers == 0 && port.disguised.is_empty(),
    };
    let reached = question.towards == Towards::Resolvers || any_to_pods;
    !ports.is_empty() && reached && ports.iter().all(proved)
}
