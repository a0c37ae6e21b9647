//! The cluster of tests.

pub(crate) use neap_stage::{ApiCall, Kubelet, PodBehavior, TestCluster, fields};
