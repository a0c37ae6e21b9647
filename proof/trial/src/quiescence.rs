//! Detects when all processes have come to rest.

use std::{sync::Arc, time::Duration};

use neap_pocket::store::{Event, Store};

use crate::{
    judge::{Oracle, Violation, allowances::LEASES},
    run_state::RunState,
};

/// Time to come to rest after the last fault.
pub(crate) const QUIET_TIMEOUT: Duration = Duration::from_mins(30);
/// Time at the end in which nothing may be written.
pub(crate) const QUIET_CHECK: Duration = Duration::from_mins(10);

/// Waits until nothing was written for `quiet`, except to the kinds in `but`, and no fault is
/// active. Returns whether that happened in time.
pub(crate) async fn wait_until_quiet(
    store: &Store,
    run_state: &RunState,
    quiet: Duration,
    but: &[&str],
) -> bool {
    let clock = run_state.clock;
    let begun = clock.uptime();
    let mut committed = store.committed();
    let mut last = store.revision();
    let mut since = begun;
    loop {
        let left = (since + quiet).saturating_sub(clock.uptime());
        let moved = clock.within(left.max(Duration::from_millis(1)), committed.changed());
        let moved = moved.await.is_some();
        let now = clock.uptime();
        if moved {
            let worked = written(store, last, but).is_none_or(|written| !written.is_empty());
            last = store.revision();
            if worked {
                since = now;
            }
        } else if run_state.active_faults.is_over(now) {
            return true;
        } else {
            since = now;
        }
        if now.saturating_sub(begun) > QUIET_TIMEOUT || run_state.is_request_loop() {
            return false;
        }
    }
}

/// Lets ten minutes pass in which only Leases may be written; returns the violations.
pub(crate) async fn check_stays_quiet(store: &Store, run_state: &RunState) -> Vec<Violation> {
    let revision = store.revision();
    run_state.clock.sleep(QUIET_CHECK).await;
    let mut violations = Vec::new();
    if run_state.is_request_loop() {
        // A process in a request loop gets no more answers, which looks like rest.
        let busy = "a process keeps sending requests when all is at rest".to_owned();
        violations.push(Violation::new(Oracle::Storm, "", busy));
    }
    match written(store, revision, &[LEASES]).as_deref() {
        Some([]) => {}
        Some(written @ [event, ..]) => {
            let restless = format!(
                "{} writes in {QUIET_CHECK:?} of rest, the first to {} {}",
                written.len(),
                event.resource,
                event.path
            );
            violations.push(Violation::new(Oracle::Rest, &event.resource, restless));
        }
        None => {
            let restless =
                format!("more writes in {QUIET_CHECK:?} of rest than the server remembers");
            violations.push(Violation::new(Oracle::Rest, "", restless));
        }
    }
    violations
}

/// None if there were more writes than the server retains.
fn written(store: &Store, after: u64, but: &[&str]) -> Option<Vec<Arc<Event>>> {
    let changes = store.changes_after(after, usize::MAX).ok()?.into_iter();
    let written = changes.filter(|event| !but.contains(&&*event.resource));
    Some(written.collect())
}
