//! What a reconcile wrote, which the next one for its key must not overlook.
//!
//! A cache is behind the server. A key that is looked at again before the cache shows what the last
//! look wrote is decided upon as if nothing had been written: made twice, counted twice, or refused
//! because it has changed. So a key is not done with before the watches of this process show every
//! write that its reconcile made and that was answered.
//!
//! Waited for is what is written by [`Hand`](crate::apply::Hand) within the reconcile's own task, of
//! a kind that is watched whole. Writes of other keys, of other controllers and of other processes
//! are news like any other.

use std::{future::Future, sync::Arc, time::Duration};

use parking_lot::Mutex;

use super::{Echo, Echoes, Sign};
use crate::{clock::Clock, key::Key, planted};

/// More than that are looked through for what is shown by now: a reconcile may go on for long.
const MANY: usize = 64;

tokio::task_local! {
    static AT_WORK: Arc<Own>;
}

/// The writes of one reconcile.
#[derive(Default)]
pub(crate) struct Own {
    watches: Option<Arc<dyn Echoes>>,
    number: Option<u64>,
    owed: Mutex<Vec<(Arc<dyn Echo>, Sign)>>,
}

/// The number that an observer gave to the reconcile of this task, if it is one and somebody
/// observes.
pub fn at_work() -> Option<u64> {
    AT_WORK.try_with(|own| own.number).ok().flatten()
}

/// The reconcile of this task, if it is one, has written `version` at one of these addresses.
pub(crate) fn wrote(addresses: &[String], version: Option<&str>) {
    let Some(version) = version.and_then(|version| version.parse().ok()) else {
        // Nobody can say what comes after a version that is no number.
        return;
    };
    owe(addresses, |echo| Sign::Version {
        version,
        listings: echo.stand().begun,
    });
}

/// It has asked this object to go.
pub(crate) fn removed(addresses: &[String], key: &Key, uid: &str) {
    planted!(RemovalUnnoted => return);
    owe(addresses, |_| Sign::Gone {
        key: key.clone(),
        uid: uid.to_owned(),
    });
}

fn owe(addresses: &[String], sign: impl Fn(&dyn Echo) -> Sign) {
    // Whoever writes outside of a reconcile looks after itself.
    let _ = AT_WORK.try_with(|own| {
        let Some(watches) = &own.watches else { return };
        for (_, echo) in addresses.iter().flat_map(|at| watches.at(at)) {
            let sign = sign(&*echo);
            own.owe(echo, sign);
        }
    });
}

impl Own {
    pub(crate) fn new(watches: Option<Arc<dyn Echoes>>, number: Option<u64>) -> Arc<Self> {
        Arc::new(Self {
            watches,
            number,
            owed: Mutex::default(),
        })
    }

    fn owe(&self, echo: Arc<dyn Echo>, sign: Sign) {
        let mut owed = self.owed.lock();
        if owed.len() > MANY {
            owed.retain(|(echo, sign)| !sign.is_in(&**echo));
        }
        let is_version = |sign: &Sign| matches!(sign, Sign::Version { .. });
        // Whoever shows the newer version shows the older one too.
        let former = owed
            .iter_mut()
            .find(|(other, former)| Arc::ptr_eq(other, &echo) && is_version(former));
        match former {
            Some((_, former)) if is_version(&sign) => *former = sign,
            _ => owed.push((echo, sign)),
        }
    }

    /// Notes here what `reconcile` writes.
    pub(crate) fn of<F: Future>(self: Arc<Self>, reconcile: F) -> impl Future<Output = F::Output> {
        AT_WORK.scope(self, reconcile)
    }

    /// Whether all of it is shown.
    pub(crate) fn is_shown(&self) -> bool {
        let mut owed = self.owed.lock();
        owed.retain(|(echo, sign)| !sign.is_in(&**echo));
        owed.is_empty()
    }

    /// Resolves once all of it is shown; whether that was before `limit` had passed.
    pub(crate) async fn shown(&self, clock: Clock, limit: Duration) -> bool {
        let owed = std::mem::take(&mut *self.owed.lock());
        // One after the other: all of them have to come, and nobody is woken for each.
        let all = async {
            for (echo, sign) in owed {
                loop {
                    let moved = echo.moved();
                    if sign.is_in(&*echo) {
                        break;
                    }
                    moved.await;
                }
            }
        };
        clock.within(limit, all).await.is_some()
    }
}
