//! What exact replays need of the operating system.
//!
//! - [`entropy`]: whoever asks the system for random bytes gets the next of a stream that a seed
//!   begins. Hash maps of the standard library take their keys there, so their order is the same
//!   in every process that was given the same seed.
//! - [`cost`]: how much of a core this process has used.
//! - [`afresh`]: work that does not depend on what its process did before.
//! - [`split`]: a process goes on as two, from the middle of whatever it is doing.
//!
//! Only tests use this crate, and linking it into a program that needs real entropy is a mistake.

mod afresh;
mod cost;
pub mod entropy;
mod split;

pub use afresh::afresh;
pub use cost::{cost, cost_of_others};
pub use split::{Child, Pen, Role, split};
