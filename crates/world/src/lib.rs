//! What a cluster adds to its API, small enough for a laptop.
//!
//! The controllers here do what those of Kubernetes do, and leave the same objects behind, so that
//! `kubectl` and Helm work with them. Each is a folder with the same layout: `decide` turns facts
//! into a decision, both plain values; `controller` reads the facts from caches and writes through
//! `kit`.
//!
//! This is the only crate that imitates a cluster. It depends on `kit` and the Kubernetes API and
//! on no other crate of ours; no area may check whether it is present.
//!
//! A controller runs wherever there is a Kubernetes API; here, without a socket and under a paused clock:
//!
//! ```
//! use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
//! use neap_stage::TestCluster;
//! use neap_world::replica_set;
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let cluster = TestCluster::start(|context| Ok(vec![replica_set::component(context)?])).await;
//! let labels = json!({"app": "web"});
//! let template = json!({
//!     "metadata": {"labels": labels},
//!     "spec": {"containers": [{"name": "web", "image": "web:1"}]},
//! });
//! cluster
//!     .create::<ReplicaSet>(json!({
//!         "metadata": {"name": "web"},
//!         "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": template},
//!     }))
//!     .await;
//! cluster
//!     .eventually("there are three pods", async || cluster.list::<Pod>().await.len() == 3)
//!     .await;
//! # }
//! ```
//!
//! [`components`] returns all of them. They are run by a [`Manager`](neap_kit::manager::Manager).
//!
//! Invariants:
//! - an object is created under a name that follows from its purpose, so that a controller which
//!   was stopped at any point creates it once;
//! - a delete names its object by uid.

// In the order of dependencies: a module uses only those above it. `cargo xtask check` enforces it.

pub mod folder;

mod workload;

mod service_pods;

pub mod job;

pub mod cron_job;

pub mod deployment;

pub mod replica_set;

pub mod stateful_set;

pub mod daemon_set;

pub mod disruption_budget;

pub mod endpoint_slice;

pub mod endpoints;

pub mod scheduler;

pub mod node;

pub mod node_taints;

pub mod persistent_volume;

pub mod proxy;

#[cfg(test)]
mod stage;
#[cfg(test)]
mod steady_state;

use std::path::Path;

use neap_kit::{context::Context, manager::Component, watch::WatchesStopped};

/// All controllers of a cluster. The contents of provisioned volumes are in `volumes`, a folder of
/// this machine.
pub fn components(context: &Context, volumes: &Path) -> Result<Vec<Component>, WatchesStopped> {
    Ok(vec![
        persistent_volume::component(context, volumes)?,
        persistent_volume::volume_component(context, volumes)?,
        cron_job::component(context)?,
        daemon_set::component(context)?,
        deployment::component(context)?,
        disruption_budget::component(context)?,
        endpoint_slice::component(context)?,
        endpoints::component(context)?,
        job::component(context)?,
        node_taints::component(context)?,
        replica_set::component(context)?,
        scheduler::component(context)?,
        stateful_set::component(context)?,
    ])
}
