//! The writes of one reconcile that the watches have not shown yet.
//!
//! A cache is behind the server. A reconcile that starts before the cache shows what the previous
//! reconcile of its key wrote decides as if nothing had been written: it creates twice, counts
//! twice, or is refused with a conflict. So a key is not released before the watches of this process
//! show every write that its reconcile made and that the server answered.
//!
//! Awaited are the writes that a [`Writer`](crate::apply::Writer) makes inside the reconcile's own
//! task. A watch of a selection shows a write if the object is selected, or was until now. Writes of
//! other keys, of other controllers and of other processes arrive as ordinary changes.

use std::{future::Future, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;

use super::{Expectation, IsSelected, ObservedWatch, ObservedWatches, WatchAt};
use crate::{clock::Clock, key::Key, planted};

/// Number of pending expectations above which met ones are removed on every write: a reconcile may
/// run for long.
const PRUNE_THRESHOLD: usize = 64;

tokio::task_local! {
    static CURRENT_RECONCILE: Arc<PendingWrites>;
}

/// The writes of one reconcile.
#[derive(Default)]
pub(crate) struct PendingWrites {
    watches: Option<Arc<dyn ObservedWatches>>,
    number: Option<u64>,
    expected: Mutex<Vec<(Arc<dyn ObservedWatch>, Expectation)>>,
}

/// The number that the observer gave to the reconcile of this task; none outside of a reconcile or
/// without an observer.
pub fn current_reconcile() -> Option<u64> {
    CURRENT_RECONCILE
        .try_with(|pending| pending.number)
        .ok()
        .flatten()
}

/// Where an object was written or deleted.
pub(crate) struct Written<'a> {
    /// The name of the cluster.
    pub(crate) cluster: &'a str,
    /// The paths whose watches may show it.
    pub(crate) addresses: &'a [String],
    pub(crate) key: &'a Key,
    pub(crate) uid: &'a str,
}

impl<'a> Written<'a> {
    pub(crate) fn new(
        cluster: &'a str,
        addresses: &'a [String],
        key: &'a Key,
        uid: &'a str,
    ) -> Self {
        Self {
            cluster,
            addresses,
            key,
            uid,
        }
    }
}

/// Records that the reconcile of this task, if any, has written `version` of an object. `object` returns
/// it, and is called if a watch of a selection may show it.
pub(crate) fn record_write(
    written: &Written<'_>,
    version: Option<&str>,
    object: &dyn Fn() -> Value,
) {
    let Some(version) = version.and_then(|version| version.parse().ok()) else {
        // A version that is not a number has no order, so nothing can be awaited.
        return;
    };
    let mut read = None;
    expect(written, |at| {
        let listings_begun = at.watch.position().listings_begun;
        let selects = |selector: &IsSelected| selector(read.get_or_insert_with(object));
        if at.selector.as_ref().is_none_or(selects) {
            return Some(Expectation::Version {
                version,
                listings_begun,
            });
        }
        let (key, uid) = (written.key, written.uid);
        at.watch.contains(key, uid).then(|| Expectation::Left {
            key: key.clone(),
            uid: uid.to_owned(),
            version,
            listings_begun,
        })
    });
}

/// Records that the reconcile of this task, if any, has deleted this object.
pub(crate) fn record_delete(deleted: &Written<'_>) {
    planted!(RemovalUnnoted => return);
    expect(deleted, |_| {
        Some(Expectation::Gone {
            key: deleted.key.clone(),
            uid: deleted.uid.to_owned(),
        })
    });
}

fn expect(written: &Written<'_>, mut expectation: impl FnMut(&WatchAt) -> Option<Expectation>) {
    // Outside of a reconcile there is nothing to hold back.
    let _ = CURRENT_RECONCILE.try_with(|pending| {
        let Some(watches) = &pending.watches else {
            return;
        };
        let addresses = written.addresses.iter();
        for at in addresses.flat_map(|address| watches.at_cluster(written.cluster, address)) {
            if let Some(expectation) = expectation(&at) {
                pending.expect(at.watch, expectation);
            }
        }
    });
}

impl PendingWrites {
    pub(crate) fn new(watches: Option<Arc<dyn ObservedWatches>>, number: Option<u64>) -> Arc<Self> {
        Arc::new(Self {
            watches,
            number,
            expected: Mutex::default(),
        })
    }

    fn expect(&self, watch: Arc<dyn ObservedWatch>, expectation: Expectation) {
        let mut expected = self.expected.lock();
        if expected.len() > PRUNE_THRESHOLD {
            expected.retain(|(watch, expectation)| !expectation.is_met_by(&**watch));
        }
        let is_version =
            |expectation: &Expectation| matches!(expectation, Expectation::Version { .. });
        // A watch that shows the newer version has also shown the older one.
        let previous = expected
            .iter_mut()
            .find(|(other, previous)| Arc::ptr_eq(other, &watch) && is_version(previous));
        match previous {
            Some((_, previous)) if is_version(&expectation) => *previous = expectation,
            _ => expected.push((watch, expectation)),
        }
    }

    /// Runs `reconcile` so that its writes are recorded here.
    pub(crate) fn scope<F: Future>(
        self: Arc<Self>,
        reconcile: F,
    ) -> impl Future<Output = F::Output> {
        CURRENT_RECONCILE.scope(self, reconcile)
    }

    /// Whether the watches show every write.
    pub(crate) fn is_observed(&self) -> bool {
        let mut expected = self.expected.lock();
        expected.retain(|(watch, expectation)| !expectation.is_met_by(&**watch));
        expected.is_empty()
    }

    /// Waits until the watches show every write, at most for `limit`. Whether they did.
    pub(crate) async fn wait_observed(&self, clock: Clock, limit: Duration) -> bool {
        let expected = std::mem::take(&mut *self.expected.lock());
        // In sequence: all of them are needed, and this wakes the task less often.
        let all = async {
            for (watch, expectation) in expected {
                loop {
                    let change = watch.next_change();
                    if expectation.is_met_by(&*watch) {
                        break;
                    }
                    change.await;
                }
            }
        };
        clock.within(limit, all).await.is_some()
    }
}
