//! Whether a service is in use.
//!
//! A trigger queries a source that knows: a Prometheus, or the resolvers. All triggers of a service
//! together give a [`Verdict`]. Missing knowledge never counts as idle: a service sleeps only on evidence.

pub mod evaluate;
pub mod jitter;
mod metadata;
pub mod monitor;
pub mod origin;
pub mod poller;
pub mod problem;
pub mod prometheus;
pub mod query;
pub mod response;
pub mod verdict;
pub mod window;

pub use self::{
    evaluate::{Measurement, RecentRequests, evaluate},
    monitor::{RequestCounts, TriggerMonitor},
    origin::{Origin, Origins},
    poller::{PolledService, Poller},
    problem::Problem,
    prometheus::{KnownNames, Prometheus, PrometheusApi},
    query::{PrometheusDefaults, Query},
    verdict::{Verdict, Verdicts},
    window::{Window, window},
};
