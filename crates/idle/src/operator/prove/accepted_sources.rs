//! The sources whose connections resolvers accepted recently.
//!
//! A resolver identifies an accepted connection by its source, and reports it for a while. A machine may use
//! the same source for a connection to another address meanwhile: a report about it may be about the earlier
//! one.

use std::{
    collections::{BTreeSet, HashMap},
    net::SocketAddr,
    time::Duration,
};

use neap_kit::clock::Uptime;
use parking_lot::Mutex;

use crate::resolver::accepted_connections::ACCEPTED_RETENTION;

/// The longest that a report may be in transit.
const REPORT_TRANSIT: Duration = Duration::from_secs(10);

/// Sources that resolvers accepted, and when that was last reported.
#[derive(Debug, Default)]
pub(super) struct AcceptedSources(Mutex<HashMap<SocketAddr, Uptime>>);

impl AcceptedSources {
    /// Records that these were accepted, and returns how many of them had been accepted before.
    pub(super) fn record(&self, accepted: &BTreeSet<SocketAddr>, now: Uptime) -> usize {
        let mut sources = self.0.lock();
        sources.retain(|_, reported| {
            now.saturating_sub(*reported) < ACCEPTED_RETENTION + REPORT_TRANSIT
        });
        let known = accepted.iter().filter(|source| {
            let before = sources.insert(**source, now);
            before.is_some()
        });
        known.count()
    }
}
