//! kubectl, as its users type it, against `neap up`.
//!
//! One server per test. Texts that differ between releases of kubectl are only matched where they
//! agree. Workloads run in [`workloads`] and what follows it; the other servers are bare, where what
//! needs pods (`rollout status`, `logs`, `exec`) is only asked to fail in words that a person
//! understands.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod absent;
mod access;
mod apply;
mod bad;
mod change;
mod cluster;
mod create;
mod custom;
mod delete;
mod describe;
mod forward;
mod identity;
mod inside;
mod manifests;
mod read;
mod unprivileged;
mod upkeep;
mod watch;
mod webhooks;
mod workloads;
