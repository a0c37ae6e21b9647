//! Runs controllers under injected faults and checks the result.
//!
//! A [`Workload`] names the controllers that run and the requests that users send. A [`plan`] lists
//! the faults. A [`run`](run::run) plays both in one process under a paused clock: real
//! controllers, their production client, and `pocket` as the API server. The result is compared
//! with a run without faults ([`judge`]); a failing plan is reduced to the smallest one that still
//! fails ([`shrink`]).
//!
//! A controller that labels ConfigMaps, and every fault that can strike it:
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::ResourceExt;
//! use neap_kit::{
//!     apply::{Error, Writer},
//!     context::Context,
//!     controller::{ControllerOptions, Outcome},
//!     key::Key,
//!     manager::Component,
//!     watch::{Cache, WatchesStopped},
//! };
//! use neap_trial::{UserRequest, Workload, proof};
//! use serde_json::json;
//!
//! fn labels(context: &Context) -> Result<Vec<Component>, WatchesStopped> {
//!     let maps: Cache<ConfigMap> = context.cache()?;
//!     let controller = context.controller(ControllerOptions::new("labels"));
//!     let enqueuer = controller.enqueuer();
//!     maps.subscribe(move |change| enqueuer.enqueue(change.key()));
//!     let (writer, known) = (context.writer("labels"), maps.clone());
//!     let reconcile = move |key| reconcile(maps.clone(), writer.clone(), key);
//!     Ok(vec![Component::new("labels", move |stop| async move {
//!         let known = async move { known.synced().await };
//!         controller.run_when(known, reconcile, stop).await;
//!     })])
//! }
//!
//! async fn reconcile(maps: Cache<ConfigMap>, writer: Writer, key: Key) -> Result<Outcome, Error> {
//!     let Some(map) = maps.get(&key) else {
//!         return Ok(Outcome::Gone);
//!     };
//!     if !map.labels().contains_key("seen") {
//!         let mut map = ConfigMap::clone(&map);
//!         map.labels_mut().insert("seen".into(), "yes".into());
//!         writer.replace(&map).await?;
//!     }
//!     Ok(Outcome::Done)
//! }
//!
//! let tree = json!({
//!     "apiVersion": "v1", "kind": "ConfigMap",
//!     "metadata": {"name": "tree", "namespace": "default"}, "data": {"height": "1"},
//! });
//! let workload = Workload::new("labels")
//!     .actor("controller", labels)
//!     .step("create", [UserRequest::Create(tree)]);
//! let faults = proof::every_fault(&workload)?;
//! assert!(faults > 10, "{faults} faults");
//! # Ok::<(), proof::Failure>(())
//! ```
//!
//! The crate depends on `pocket` and `kit`; only tests depend on it.
//!
//! Invariants:
//! - the same plan and seed produce the same trace, byte for byte;
//! - a run in which a planned fault did not strike is void, never passed.

mod actor;
mod canary;
mod canonical;
pub mod child_process;
mod cluster;
mod cluster_template;
mod comparable_state;
pub mod difference;
pub mod external;
mod fault_injector;
pub mod generate;
pub mod judge;
mod node;
pub mod operation;
mod own_writes;
mod panics;
mod paused;
pub mod plan;
pub mod poisoned_objects;
pub mod proof;
mod quiescence;
pub mod run;
mod run_state;
pub mod shrink;
pub mod start_states;
mod trace;
pub mod walk;
mod workload;

pub use cluster_template::ClusterTemplate;
pub use fault_injector::Call;
#[cfg(feature = "seeded")]
pub use neap_pocket::seeded;
pub use node::{Node, PodBehavior};
pub use paused::paused;
pub use trace::{EntryKind, TraceEntry};
pub use workload::{Step, UserRequest, Workload};
