//! Admission: who else is asked about a write, and what the server itself adds to it.
//!
//! Webhooks: which of them a write concerns ([`Hook::wants`]), what they are told ([`Review`]), how
//! their answers are read ([`answer`]), and how they are reached ([`courier`]). [`Hooks`] holds those
//! of every configuration, kept by following the store, so that a server without any asks nobody
//! and pays for one look at a counter. Built-in plugins are functions of values in [`plugins`].
//!
//! May use everything below `rest`. Nothing here reads the store, the clock or randomness; only
//! [`courier`] waits for anybody.

pub mod answer;
pub mod ask;
mod backend;
pub mod courier;
mod hook;
mod hooks;
pub mod plugins;
mod review;

pub use ask::{Ask, Operation, Place};
pub use backend::endpoint;
pub use courier::{Connection, Courier, Destination, Dial, Tcp};
pub use hook::{Backend, Hook, ReviewVersion};
pub use hooks::{Hooks, Phase};
pub use review::{KindName, Review, sent};
