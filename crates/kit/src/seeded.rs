//! Mistakes that the trial is tried with.
//!
//! Product code holds them at [`planted!`](crate::planted). Without the feature `seeded` that is
//! `false`, and `planted!(Mistake => what it does)` is nothing at all. With it one mistake at a time
//! can be planted while the program runs, and the trial has to find it. What each of them is, and who
//! has to notice, is in `crates/faults/seeded.toml`.

#[cfg(feature = "seeded")]
mod bug;

#[cfg(feature = "seeded")]
pub use bug::{Bug, Unknown, is_planted, plant};

/// Whether this mistake is planted; or what it does, if so.
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

/// Nothing is.
#[cfg(not(feature = "seeded"))]
#[doc(hidden)]
#[macro_export]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
    ($bug:ident => $wrong:expr) => {{}};
}
