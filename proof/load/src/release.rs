//! Figures of the release tools: assembly beside `skopeo copy`, imports, and a cache of many ProwJobs.
//!
//! Images are in a registry that is neither ours nor skopeo's, so that both work against the same one.

mod assemble;
mod background;
mod imports;
mod prow_jobs;
mod registry;

pub use self::{assemble::assemble, imports::imports, prow_jobs::prow_jobs};
