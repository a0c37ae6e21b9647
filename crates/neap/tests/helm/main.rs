//! Helm 3, as its users type it, against `neap up`.
//!
//! One server per test; the chart is in `chart/`. Workloads run in [`world`]. Nothing runs them on
//! the other servers: where Helm waits for something to become ready there, the test plays the
//! controller that would make it so.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cluster;
mod custom;
mod failures;
mod hands;
mod hooks;
mod life;
mod size;
mod wait;
mod world;
