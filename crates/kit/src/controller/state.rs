//! A queue, as others see it.

use std::{fmt, hash::Hash};

use super::Queue;
use crate::process::{Keys, QueueState};

pub(super) fn state<K: Clone + Eq + Hash + fmt::Debug>(
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
        running: Keys::of(running.map(|key| format!("{key:?}"))),
        waiting: Keys::of(waiting.map(|key| format!("{key:?}"))),
        failing: Keys::of(failing),
    }
}
