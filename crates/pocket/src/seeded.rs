//! A mistake that the trial is tried with. What it is, and who has to notice, is in
//! `crates/faults/seeded.toml`.

use std::sync::atomic::{AtomicBool, Ordering};

/// How the table calls it.
pub const NAME: &str = "last-of-batch-lost";

static PLANTED: AtomicBool = AtomicBool::new(false);

/// Has the server make the mistake from now on, or no longer.
pub fn plant(planted: bool) {
    PLANTED.store(planted, Ordering::Relaxed);
}

pub(crate) fn is_planted() -> bool {
    PLANTED.load(Ordering::Relaxed)
}
