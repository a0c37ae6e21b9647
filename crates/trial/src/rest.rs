//! When nobody works any longer.

use std::{sync::Arc, time::Duration};

use neap_pocket::store::{Event, Store};

use crate::{
    judge::{Oracle, Violation, allowances::LEASES},
    scene::Scene,
};

/// So long it may take to get there after the last fault.
pub(crate) const LIMIT: Duration = Duration::from_mins(30);
/// So long nothing may be written in the end.
pub(crate) const REST: Duration = Duration::from_mins(10);

/// Waits until nothing was written for `quiet`, but for kinds that are no sign of work, and no fault
/// goes on; whether that came in time.
pub(crate) async fn comes(store: &Store, scene: &Scene, quiet: Duration, but: &[&str]) -> bool {
    let clock = scene.clock;
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
        } else if scene.open.is_over(now) {
            return true;
        } else {
            since = now;
        }
        if now.saturating_sub(begun) > LIMIT || scene.is_storm() {
            return false;
        }
    }
}

/// Lets ten minutes pass in which nothing may be written but Leases; what is wrong with them.
pub(crate) async fn lasts(store: &Store, scene: &Scene) -> Vec<Violation> {
    let revision = store.revision();
    scene.clock.sleep(REST).await;
    let mut violations = Vec::new();
    if scene.is_storm() {
        // Whoever asks and asks is no longer answered, which looks like rest.
        let busy = "somebody asks and asks when all is at rest".to_owned();
        violations.push(Violation::new(Oracle::Storm, "", busy));
    }
    match written(store, revision, &[LEASES]).as_deref() {
        Some([]) => {}
        Some(written @ [event, ..]) => {
            let restless = format!(
                "{} writes in {REST:?} of rest, the first to {} {}",
                written.len(),
                event.resource,
                event.path
            );
            violations.push(Violation::new(Oracle::Rest, &event.resource, restless));
        }
        None => {
            let restless = format!("more writes in {REST:?} of rest than the server remembers");
            violations.push(Violation::new(Oracle::Rest, "", restless));
        }
    }
    violations
}

/// None if there were more than the server remembers.
fn written(store: &Store, after: u64, but: &[&str]) -> Option<Vec<Arc<Event>>> {
    let changes = store.changes_after(after, usize::MAX).ok()?.into_iter();
    let written = changes.filter(|event| !but.contains(&&*event.resource));
    Some(written.collect())
}
