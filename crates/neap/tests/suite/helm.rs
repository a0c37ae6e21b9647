//! Helm 3 commands against `neap up`.
//!
//! One server per test; the chart is in `helm/chart`. The servers of [`workloads`] run pods. The others
//! are bare: where helm waits for readiness, the test writes the status that a controller would write.

mod custom_resources;
mod failures;
mod fake_controllers;
mod helm_cluster;
mod hooks;
mod lifecycle;
mod size;
mod wait;
mod workloads;
