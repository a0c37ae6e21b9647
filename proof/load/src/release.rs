//! Figures of releases: assembly beside `skopeo copy`, imports, a cache of many ProwJobs, the controllers,
//! and the example in `neap up`.
//!
//! Images are in a registry that is neither ours nor skopeo's, so that both work against the same one.

mod assemble;
mod background;
mod controllers;
mod example;
mod imports;
mod prow_jobs;
mod registry;

pub use self::{
    assemble::assemble, controllers::controllers, example::example, imports::imports,
    prow_jobs::prow_jobs,
};
pub(crate) use self::{
    background::{BackgroundProcess, free_address},
    imports::install,
};
