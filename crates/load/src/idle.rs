//! Figures of services that sleep: what it costs to be in their path, and how soon they wake.
//!
//! The same clients do the same to the same pods, directly and through each of the proxies that are
//! compared. Clients and pods share this process, whose work is not counted.

mod activator;
mod clients;
mod haproxy;
mod held;
mod home;
mod interceptor;
mod kinds;
mod memory;
mod nginx;
mod pod;
mod proxy;
mod wakes;
mod warm;
mod watched;
mod woken;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::measure::Figure;

pub use held::held;
pub use memory::memory;
pub use warm::warm;
pub use watched::watched;
pub use woken::woken;

/// Whose figures they are, and what they are.
pub type Theirs = (&'static str, Vec<Figure>);

/// The name of our own figures.
pub const OURS: &str = "ours";

/// The programs that ours is compared with; those that are absent are left out.
#[derive(Debug, Clone, Default)]
pub struct Peers {
    /// nginx.
    pub nginx: Option<PathBuf>,
    /// HAProxy.
    pub haproxy: Option<PathBuf>,
    /// The interceptor of KEDA's HTTP add-on.
    pub interceptor: Option<PathBuf>,
    /// The activator of Knative Serving.
    pub activator: Option<PathBuf>,
}

/// Takes as many open files as the system grants; an error if that is less than `needed`.
fn open_files(needed: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let granted = limit.maximum.unwrap_or(u64::MAX);
    ensure!(
        granted >= needed,
        "{needed} open files are needed and {granted} are granted: raise the hard limit, ulimit -Hn"
    );
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).context("the limit of open files stays as it is")
}
