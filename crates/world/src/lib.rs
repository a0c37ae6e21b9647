//! What a cluster adds to its API, small enough for a laptop.
//!
//! The controllers here do what those of Kubernetes do, and leave behind the same objects, so that
//! `kubectl` and Helm believe them. Each is a folder with the same plan: `decide` makes a decision
//! of facts, as values; the controller around it reads from caches and writes through `kit`.
//!
//! This is the only crate that pretends. It knows `kit` and the Kubernetes API and nothing else of
//! ours; no area may ask whether it is there.
//!
//! Invariants:
//! - an object is made under a name that follows from what it is for, so that a controller which
//!   was stopped anywhere makes it once;
//! - what is deleted is named by its uid.

pub mod claim;
pub mod cron_job;
pub mod daemon_set;
pub mod deployment;
pub mod disruption_budget;
pub mod endpoint_slice;
pub mod endpoints;
mod folder;
pub mod job;
pub mod node;
pub mod node_taints;
pub mod proxy;
pub mod replica_set;
pub mod scheduler;
mod service_pods;
pub mod stateful_set;
mod workload;

#[cfg(test)]
mod quiet;
#[cfg(test)]
mod stage;

use std::path::Path;

use neap_kit::{manager::Service, site::Site, watch::Ended};

/// Everything that a cluster's controllers do. What claims are given is kept in `volumes`, a folder
/// of this machine.
pub fn services(site: &Site, volumes: &Path) -> Result<Vec<Service>, Ended> {
    Ok(vec![
        claim::service(site, volumes)?,
        claim::volumes(site, volumes)?,
        cron_job::service(site)?,
        daemon_set::service(site)?,
        deployment::service(site)?,
        disruption_budget::service(site)?,
        endpoint_slice::service(site)?,
        endpoints::service(site)?,
        job::service(site)?,
        node_taints::service(site)?,
        replica_set::service(site)?,
        scheduler::service(site)?,
        stateful_set::service(site)?,
    ])
}
