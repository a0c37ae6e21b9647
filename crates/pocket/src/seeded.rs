//! A deliberate mistake that the trial is checked with. `proof/campaign/seeded.toml` describes it
//! and what must detect it.

use std::sync::atomic::{AtomicBool, Ordering};

/// Its name in that table.
pub const NAME: &str = "last-of-batch-lost";

static PLANTED: AtomicBool = AtomicBool::new(false);

/// Turns the mistake on or off.
pub fn plant(planted: bool) {
    PLANTED.store(planted, Ordering::Relaxed);
}

pub(crate) fn is_planted() -> bool {
    PLANTED.load(Ordering::Relaxed)
}
