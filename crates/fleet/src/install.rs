//! Installing, changing and deleting a cluster: the lists of steps, and what each step does.
//!
//! The lists are built for each document and are pure. Steps that need a cloud, or the operator inside
//! the cluster, are in the lists and end as Skipped with the reason.

mod credentials;
mod diagnosis;
mod guest;
mod handler;
mod hive;
mod hive_objects;
mod installer;
pub mod kinds;
mod lists;
#[cfg(test)]
mod tests;

pub use self::{
    handler::{ClusterSteps, HAND_OVER, StepContext},
    hive::Hive,
    hive_objects::SyncSets,
    installer::{ClusterGraph, InstallError, InstallRequest, Installation, Installer},
    lists::steps_of,
};
