//! Renewals that fail or hang, and work that is given up beside other work.

use std::sync::atomic::{AtomicU64, Ordering};

use futures::{FutureExt, future::BoxFuture};
use neap_store::{CallObserver, Error, StoreCall};

use super::*;

/// Renewals fail or hang for this time after the first; everything else works.
struct FailingRenewals {
    clock: Clock,
    time: Duration,
    hang: bool,
    /// When the first renewal was tried, in milliseconds.
    first: AtomicU64,
    failed: AtomicU64,
}

impl CallObserver for FailingRenewals {
    fn before(&self, call: StoreCall) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            if call.name != "renew" {
                return Ok(());
            }
            let now = u64::try_from(self.clock.uptime().as_millis()).unwrap();
            let first = self
                .first
                .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
            let first = first.map_or_else(|first| first, |_| now);
            if now >= first + u64::try_from(self.time.as_millis()).unwrap() {
                return Ok(());
            }
            self.failed.fetch_add(1, Ordering::Relaxed);
            if self.hang {
                std::future::pending::<()>().await;
            }
            Err(Error::Unavailable("the database restarts".into()))
        }
        .boxed()
    }

    fn after(&self, _: StoreCall) -> BoxFuture<'_, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }
}

/// Who holds the work after half a minute with such renewals, and how many of them failed.
async fn holder_after(time: Duration, hang: bool) -> (Option<String>, u64) {
    let bench = Bench::new(running()).await;
    bench.create("blue").await;
    let clock = bench.provider.clock;
    let renewals = Arc::new(FailingRenewals {
        clock,
        time,
        hang,
        first: AtomicU64::new(0),
        failed: AtomicU64::new(0),
    });
    let store = bench.provider.store.clone().observed_by(renewals.clone());
    let first = bench.backend_on(store, "one");
    let second = bench.backend("two");
    let key = cluster_key(&id("blue"));
    let (stop, of_first) = (CancellationToken::new(), CancellationToken::new());
    let asking = async {
        while bench.installer.called("install") == 0 {
            clock.sleep(Duration::from_millis(50)).await;
        }
        // The second starts when the first has the work.
        let running = second.component("backend").run(stop.clone());
        let waiting = async {
            clock.sleep(Duration::from_secs(30)).await;
            let holder = bench.provider.store.work(&key).await.unwrap().owner;
            stop.cancel();
            holder
        };
        let ((), holder) = tokio::join!(running, waiting);
        of_first.cancel();
        holder
    };
    let ((), holder) = tokio::join!(first.component("backend").run(of_first.clone()), asking);
    assert_eq!(bench.installer.called("install"), 1);
    (holder, renewals.failed.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn a_failed_renewal_is_tried_again_until_two_thirds_of_the_lease_are_over() {
    // Renewals at 3 s and 6 s fail, that at 9 s would be too late.
    let (holder, failed) = holder_after(Duration::from_secs(2), false).await;
    assert_eq!((holder.as_deref(), failed), (Some("one"), 1));
    let (_, failed) = holder_after(Duration::from_hours(1), false).await;
    assert!(failed >= 2, "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_database_does_not_answer_gives_its_work_up() {
    // It would otherwise go on beside the worker that replaces it.
    let (holder, failed) = holder_after(Duration::from_secs(8), true).await;
    assert!(failed >= 1, "{failed}");
    assert!(holder.is_some(), "one of the two has the work again");
}

#[tokio::test(start_paused = true)]
async fn work_that_is_parked_delays_no_other_work() {
    let bench = Bench::new(failed()).await;
    let given_up = bench.create("blue").await;
    for _ in 0..5 {
        let store = &bench.provider.store;
        let claimed = store.claim(CLUSTERS, QUEUE, "crashes", 0).await;
        assert!(claimed.unwrap().is_some());
    }
    let other = bench.create("green").await;
    let begun = bench.provider.clock.uptime();
    let both = async {
        let other = bench.wait_for(&other, &["Failed"]).await;
        (bench.wait_for(&given_up, &["Failed"]).await, other)
    };
    let (given_up, other) = with(&bench.backend("one"), both).await;
    let took = bench.provider.clock.uptime().saturating_sub(begun);
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(text(&given_up, "/error/message").contains("without progress"));
    assert_eq!(other["error"]["message"], "no capacity");
}

/// Has no room for a time: every write fails, every read succeeds.
struct FullDisk {
    clock: Clock,
    /// From when to when, in milliseconds.
    full: std::ops::Range<u64>,
    refused: AtomicU64,
}

impl CallObserver for FullDisk {
    fn before(&self, call: StoreCall) -> BoxFuture<'_, Result<(), Error>> {
        let now = u64::try_from(self.clock.uptime().as_millis()).unwrap();
        let is_full = call.writes && self.full.contains(&now);
        self.refused
            .fetch_add(u64::from(is_full), Ordering::Relaxed);
        async move {
            if is_full {
                return Err(Error::Full("no space left on device".into()));
            }
            Ok(())
        }
        .boxed()
    }

    fn after(&self, _: StoreCall) -> BoxFuture<'_, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn work_stops_on_a_full_disk_and_goes_on_when_there_is_room() {
    let bench = Bench::new(running()).await;
    let operation = bench.create("blue").await;
    let clock = bench.provider.clock;
    let begun = u64::try_from(clock.uptime().as_millis()).unwrap();
    // Longer than a lease and its retries, many times: the work is not given up.
    let disk = Arc::new(FullDisk {
        clock,
        full: begun + 10_000..begun + 300_000,
        refused: AtomicU64::new(0),
    });
    let store = bench.provider.store.clone().observed_by(disk.clone());
    let backend = bench.backend_on(store, "one");
    let later = async {
        clock.sleep(Duration::from_mins(6)).await;
        let status = bench.get(&operation).await;
        assert_eq!(status["status"], "Creating", "{status}");
        let work = bench.provider.store.work(&cluster_key(&id("blue"))).await;
        assert_eq!(work.unwrap().owner.as_deref(), Some("one"));
        // Its renewals and its timeline are written again: a cancel reaches it.
        let cancel = format!(
            "/admin/operations/{SUBSCRIPTION}/{}/cancel",
            text(&status, "/name")
        );
        assert_eq!(bench.provider.send("POST", &cancel, None).await.0, 202);
        bench.wait_for(&operation, &["Canceled"]).await
    };
    with(&backend, later).await;
    assert!(disk.refused.load(Ordering::Relaxed) > 5);
    assert_eq!(bench.installer.called("install"), 1);
}
