//! Bugs that are planted on purpose, to test that the trial finds them.
//!
//! Product code contains them at [`planted!`](crate::planted). Without the feature `seeded` that is
//! `false`, and `planted!(Bug => expression)` expands to nothing. With it, one bug at a time can be
//! activated at run time, and the trial has to find it. `proof/campaign/seeded.toml` describes each
//! bug and names the oracle that has to notice it.

#[cfg(feature = "seeded")]
mod bug;

#[cfg(feature = "seeded")]
pub use bug::{Bug, UnknownBug, is_planted, plant};

/// Whether this bug is active; with an expression, evaluates it if so.
#[cfg(feature = "seeded")]
#[doc(hidden)]
#[macro_export]
macro_rules! planted {
    ($bug:ident) => {
        $crate::seeded::is_planted($crate::seeded::Bug::$bug)
    };
    ($bug:ident => $wrong:expr) => {
        if $crate::planted!($bug) {
            $wrong;
        }
    };
}

/// No bug is active.
#[cfg(not(feature = "seeded"))]
#[doc(hidden)]
#[macro_export]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
    ($bug:ident => $wrong:expr) => {{}};
}
