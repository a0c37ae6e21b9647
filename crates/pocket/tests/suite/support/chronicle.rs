//! The store's history in the form that the oracles take.

use neap_oracles::{Commit, CommitLog, ObjectState};
use neap_pocket::{
    Pocket,
    store::{Event, Object, Store},
};

/// The whole retained history. Complete only if nothing was compacted before.
pub(crate) fn chronicle(pocket: &Pocket) -> CommitLog {
    let store = pocket.store();
    let mut chronicle = CommitLog::after(store.oldest());
    chronicle.compacted(store.oldest());
    chronicle.alias("events.k8s.io/events", "/events");
    read_on(&mut chronicle, store);
    chronicle
}

/// Appends the changes since; must be called before each compaction.
pub(crate) fn read_on(chronicle: &mut CommitLog, store: &Store) {
    let events = store.changes_after(chronicle.last(), usize::MAX);
    for event in events.expect("the chronicle is read before history is compacted") {
        chronicle.push(commit(&event));
    }
}

fn commit(event: &Event) -> Commit {
    let state = |object: &Object| ObjectState::new(object.revision(), object.json().clone());
    Commit {
        revision: event.revision(),
        resource: event.resource.to_string(),
        path: event.path.to_string(),
        state: state(&event.object),
        gone: event.present().is_none(),
        previous: event.previous.as_deref().map(state),
    }
}
