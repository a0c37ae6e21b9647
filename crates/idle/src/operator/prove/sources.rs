//! Which sources were taken by resolvers lately.
//!
//! A resolver says that it took a connection by its source alone, and remembers it for a while. A
//! machine may give the same source to a connection to somewhere else meanwhile: what is said of that
//! one may be meant of the one before.

use std::{
    collections::{BTreeSet, HashMap},
    net::SocketAddr,
    time::Duration,
};

use neap_kit::clock::Uptime;
use parking_lot::Mutex;

use crate::resolver::taken::REMEMBERED;

/// What is told may be on the way for so long.
const SPARE: Duration = Duration::from_secs(10);

/// Sources that resolvers took, and when that was told last.
#[derive(Debug, Default)]
pub(super) struct Sources(Mutex<HashMap<SocketAddr, Uptime>>);

impl Sources {
    /// Notes that these were taken, and says how many of them had been taken before.
    pub(super) fn again(&self, taken: &BTreeSet<SocketAddr>, now: Uptime) -> usize {
        let mut sources = self.0.lock();
        sources.retain(|_, told| now.saturating_sub(*told) < REMEMBERED + SPARE);
        let known = taken.iter().filter(|source| {
            let before = sources.insert(**source, now);
            before.is_some()
        });
        known.count()
    }
}
