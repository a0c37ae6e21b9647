//! What resolvers say about connections, put together.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
};

use crate::api::wire::Taken;

/// What all resolvers said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Those of the proof that one of them knows by their sources.
    pub(super) taken: BTreeSet<SocketAddr>,
    /// How many times each resolver named a stranger: a source may come again.
    strangers: BTreeMap<(SocketAddr, SocketAddr), usize>,
}

impl Told {
    /// Adds what the resolver at `place` said.
    pub(super) fn add(&mut self, place: SocketAddr, answer: Taken) {
        self.taken.extend(answer.taken);
        for stranger in answer.strangers {
            *self.strangers.entry((place, stranger)).or_default() += 1;
        }
    }

    /// Adds what was said about the same a second time.
    pub(super) fn join(&mut self, again: Self) {
        self.taken.extend(again.taken);
        for (stranger, count) in again.strangers {
            let known = self.strangers.entry(stranger).or_default();
            *known = count.max(*known);
        }
    }

    /// Where those strangers came from, one by one, that were not there `before`.
    pub(super) fn strangers_since(&self, before: &Self) -> Vec<IpAddr> {
        let strangers = self.strangers.iter().flat_map(|(stranger, count)| {
            let old = before.strangers.get(stranger).copied().unwrap_or_default();
            std::iter::repeat_n(stranger.1.ip(), count.saturating_sub(old))
        });
        strangers.collect()
    }
}
