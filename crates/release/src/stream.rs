//! The release controller: streams of releases.
//!
//! An Integration stream cuts a release when the images of its source have changed; users add the releases of
//! a Stable stream. Both are assembled by Jobs, verified by ProwJobs and published once they are accepted.
//!
//! Invariants:
//! - the images of a release are pinned to digests when it is cut: jobs, verdict and publication are about
//!   the same ones;
//! - what is written for one release does not wait for another, and a stream never waits for another;
//! - every object has a name that follows from its release, so that writing it twice is writing it once.

pub mod config_files;
pub mod controller;
pub mod decide;
pub mod dry_run;
pub mod facts;
pub mod garbage;
pub mod options;
pub mod prow_config;
pub mod registry_reader;
pub mod release_reader;
mod state;
pub mod upgrade_graph;

pub use state::{ControllerSettings, StreamState};
