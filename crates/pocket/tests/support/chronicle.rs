//! The store's history in the words of the oracles.

use neap_oracle::{Chronicle, Commit, State};
use neap_pocket::{
    Pocket,
    store::{Event, Object, Store},
};

/// Everything that is in the history now. Complete only if nothing was compacted before.
pub(crate) fn chronicle(pocket: &Pocket) -> Chronicle {
    let store = pocket.store();
    let mut chronicle = Chronicle::after(store.oldest());
    chronicle.compacted(store.oldest());
    chronicle.alias("events.k8s.io/events", "/events");
    read_on(&mut chronicle, store);
    chronicle
}

/// Adds what happened since; must be called before each compaction.
pub(crate) fn read_on(chronicle: &mut Chronicle, store: &Store) {
    let events = store.changes_after(chronicle.last(), usize::MAX);
    for event in events.expect("the chronicle is read before history is compacted") {
        chronicle.push(commit(&event));
    }
}

fn commit(event: &Event) -> Commit {
    let state = |object: &Object| State::new(object.revision(), object.json().clone());
    Commit {
        revision: event.revision(),
        resource: event.resource.to_string(),
        path: event.path.to_string(),
        state: state(&event.object),
        gone: event.present().is_none(),
        previous: event.previous.as_deref().map(state),
    }
}
