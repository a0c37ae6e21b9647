//! The integration tests of `neap`, in one executable, because linking each takes seconds.
//!
//! Most of them start the binary as its users do. They set no variables, signal handlers or limits of
//! their own process, so they can run in parallel; tests that need that, or that need the machine for
//! themselves, belong to `endurance` or `crowd`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails if its setup fails"
)]

mod access;
mod cli;
mod command_output;
mod fleet;
mod helm;
mod idle;
mod inspect;
mod kube_client;
mod kubectl;
mod launch;
mod node;
mod process_faults;
mod release;
mod release_streams;
mod robustness;
mod skip;
mod up;
