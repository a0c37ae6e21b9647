//! ImageStreams on any cluster: the kind, and the controller that imports its tags.
//!
//! On OpenShift the API server imports; there only [`api`] is used. Elsewhere the definition is installed and
//! the [`controller`] imports: [`facts`] → [`decide`], which says which tags are due, → [`import`], which asks
//! registries → [`record`], which writes down what was found.
//!
//! Invariants:
//! - the spec belongs to users and is never written;
//! - the status names only digests whose manifest was read and has that digest;
//! - results are recorded tag by tag in the newest state of the stream, and written only if it did not change
//!   meanwhile;
//! - each registry is asked a bounded number of times per hour, and waited for when it fails.

// In the order of dependencies.
pub mod api;

pub mod listing;

pub mod registries;

pub mod facts;

pub mod decide;

pub mod record;

pub mod import;

pub mod pull_secrets;

mod metrics;

pub mod controller;
