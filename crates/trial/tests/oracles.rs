//! Oracles that no controller of the house should ever hear from: each of them speaks about a toy
//! that does what it forbids.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

#[path = "oracles/blast.rs"]
mod blast;
#[path = "oracles/own_writes.rs"]
mod own_writes;
#[path = "oracles/secrets.rs"]
mod secrets;
#[path = "oracles/toy.rs"]
mod toy;
