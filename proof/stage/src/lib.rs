//! A cluster in the test's own process: an API server, the components of an area, a clock, and a simulated
//! node. Hours pass in milliseconds.
//!
//! A test starts a [`TestCluster`] with its components, acts as a user with the methods of the cluster, lets
//! time pass, and looks at the objects and at the requests that the components made. Everything runs on the
//! paused clock of `#[tokio::test(start_paused = true)]`; nothing may wait for anything outside.

#![expect(
    clippy::unwrap_used,
    reason = "a failure here is a failure of the test that uses it"
)]

mod calls;

mod kubelet;

mod cluster;

pub use self::{
    calls::ApiCall,
    cluster::{START, TestCluster, fields},
    kubelet::{Kubelet, PodBehavior},
};
