//! What exact replays need from the operating system.
//!
//! - [`entropy`]: random bytes come from a seeded stream. Hash maps of the standard library take
//!   their keys from it, so their order is the same in every process with the same seed.
//! - [`cpu_time`]: the CPU time of this process.
//! - [`in_fresh_thread`]: work whose result does not depend on what its process did before.
//! - [`fork_child`]: forks the process in the middle of whatever it is doing.
//!
//! Only tests use this crate. Linking it into a program that needs real entropy is a mistake.

mod cpu_time;
pub mod entropy;
mod fork;
mod fresh_thread;

pub use cpu_time::{children_cpu_time, cpu_time};
pub use fork::{Child, ResultWriter, Role, fork_child};
pub use fresh_thread::in_fresh_thread;
