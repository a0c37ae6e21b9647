//! The operator process: it decides when services sleep and wake, and carries that out.
//! [`components`] assembles it.

pub(crate) mod certificate;
mod cluster_names;
mod components;
pub mod dry_run;
mod options;
pub mod prove;
mod request_counts;
pub mod routes;

pub use self::{
    components::components,
    options::{ListenAddress, OperatorOptions},
};
