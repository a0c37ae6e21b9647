//! The reports of all resolvers about connections, combined.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
};

use crate::api::wire::AcceptedReport;

/// The combined reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AcceptedReports {
    /// The sources of the probe that a resolver accepted.
    pub(super) accepted: BTreeSet<SocketAddr>,
    /// How many times each resolver reports an unexpected source: a source may be used again.
    unexpected: BTreeMap<(SocketAddr, SocketAddr), usize>,
}

impl AcceptedReports {
    /// Adds the report of a resolver.
    pub(super) fn add(&mut self, resolver: SocketAddr, report: AcceptedReport) {
        self.accepted.extend(report.taken);
        for source in report.strangers {
            *self.unexpected.entry((resolver, source)).or_default() += 1;
        }
    }

    /// Adds later reports about the same connections.
    pub(super) fn join(&mut self, later: Self) {
        self.accepted.extend(later.accepted);
        for (source, count) in later.unexpected {
            let known = self.unexpected.entry(source).or_default();
            *known = count.max(*known);
        }
    }

    /// The addresses of unexpected sources that are not in `before`, one for each connection.
    pub(super) fn unexpected_since(&self, before: &Self) -> Vec<IpAddr> {
        let new = self.unexpected.iter().flat_map(|(source, count)| {
            let old = before.unexpected.get(source).copied().unwrap_or_default();
            std::iter::repeat_n(source.1.ip(), count.saturating_sub(old))
        });
        new.collect()
    }
}
