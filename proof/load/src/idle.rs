//! Figures of services that sleep: the cost of being in their path, and how soon they wake.
//!
//! The same clients send the same requests to the same pods, directly and through each compared
//! proxy. Clients and pods share this process, whose CPU time is not counted.

mod activator;
mod clients;
mod environment;
mod haproxy;
mod held;
mod interceptor;
mod kinds;
mod memory;
mod nginx;
mod pod;
mod proxy;
mod wake_receiver;
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

/// The name of a program and its figures.
pub type ProgramFigures = (&'static str, Vec<Figure>);

/// The name of our own figures.
pub const OURS: &str = "ours";

/// The programs that ours is compared with; absent ones are skipped.
#[derive(Debug, Clone, Default)]
pub struct Peers {
    pub nginx: Option<PathBuf>,
    pub haproxy: Option<PathBuf>,
    /// The interceptor of KEDA's HTTP add-on.
    pub interceptor: Option<PathBuf>,
    /// The activator of Knative Serving.
    pub activator: Option<PathBuf>,
}

/// Raises the limit of open files to the hard limit; an error if that is less than `needed`.
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
