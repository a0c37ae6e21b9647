//! Prow, small: runs the pod spec of each ProwJob as a batch Job, and reports what becomes of it.
//!
//! [`facts`] → [`decide`], which is pure; the plan is carried out by kit. Like `prow-controller-manager`
//! it takes only ProwJobs with the agent `kubernetes`, moves them from `triggered` over `pending` to a
//! final state, and never starts a Job for one that has ended. It runs everything in one cluster, in
//! the namespace of the ProwJob, whatever `spec.cluster` and `spec.namespace` say, and uploads nothing.
//! It must not run next to a real Prow: both would report on the same ProwJobs.
//!
//! Invariants:
//! - the Job has a derived name and the ProwJob as owner: a crash between the Job and the status leads
//!   to no second Job;
//! - a Job whose pod ended with its node is followed by another one, at most five times; one of another owner never
//!   counts;
//! - a final state is never left, and has a completion time.

mod api;
mod controller;
mod decide;
mod facts;
mod run;
#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use neap_kit::{context::Context, manager::Component, watch::WatchesStopped};

pub use self::api::{ProwJob, ProwJobSpec, ProwJobState, ProwJobStatus};

/// What can be set.
#[derive(Debug, Clone, Default)]
pub struct ProwOptions {
    /// The address of the API server, under which users read the logs of pods; without it, no ProwJob
    /// gets an address.
    pub log_server: Option<String>,
    /// Names of jobs that are never started, as if Prow were away; a star stands for any text.
    pub hang: Vec<String>,
    /// Names of jobs that end in the state `error` instead of being started.
    pub fail: Vec<String>,
}

/// The definition of ProwJobs, with the subset of fields that is used here; others are kept.
pub fn definitions() -> Result<Vec<CustomResourceDefinition>, serde_json::Error> {
    Ok(vec![api::definition()?])
}

/// The components of Prow.
pub fn components(
    context: &Context,
    options: &ProwOptions,
) -> Result<Vec<Component>, WatchesStopped> {
    Ok(vec![controller::component(context, options.clone())?])
}
