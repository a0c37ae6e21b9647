//! The state of a queue for `/debug/state.json` and metrics.

use std::{fmt, hash::Hash};

use super::Queue;
use crate::process::{KeyList, QueueState};

pub(super) fn queue_state<K: Clone + Eq + Hash + fmt::Debug>(
    controller: &'static str,
    paused: bool,
    queue: &Queue<K>,
) -> QueueState {
    let (running, waiting) = (queue.running_keys(), queue.waiting_keys());
    let failing = queue.failing().map(|(key, times)| match times {
        1 => format!("{key:?}: once"),
        times => format!("{key:?}: {times} times in a row"),
    });
    QueueState {
        controller,
        paused,
        running: KeyList::new(running.map(|key| format!("{key:?}"))),
        waiting: KeyList::new(waiting.map(|key| format!("{key:?}"))),
        failing: KeyList::new(failing),
    }
}
