//! Figures of a provider of clusters: what requests, steps, take-overs and clusters cost.
//!
//! The provider runs as the processes that a region has, over a real database. Clients and peers are
//! processes beside it, and only the CPU time of the measured programs and of the database counts.

mod arm;
mod bare;
mod certificates;
mod crowd;
mod installed;
mod many;
mod pgbench;
mod postgres;
mod reads;
mod region;
mod steps;
mod takeover;
mod writes;

use std::{path::PathBuf, time::Duration};

use crate::measure::Figure;

pub use bare::{BareHandler, serve as serve_bare};
pub use crowd::{CrowdOptions, CrowdTally, crowd};
pub use installed::installed;
pub use many::many;
pub use postgres::PostgresPrograms;
pub use reads::{on_postgresql, on_sqlite};
pub use steps::steps;
pub use takeover::takeover;
pub use writes::writes;

/// The name of a program and its figures.
pub type ProgramFigures = (&'static str, Vec<Figure>);

/// The name of our own figures.
pub const OURS: &str = "ours";
/// A handler of axum with the same SELECT and TLS.
pub const BARE: &str = "bare";
/// The benchmark of PostgreSQL.
pub const PGBENCH: &str = "pgbench";

/// Time to wait for anything that must happen.
const WAIT_TIMEOUT: Duration = Duration::from_mins(3);
/// Connections of the clients.
const CONNECTIONS: usize = 16;

/// The programs that are measured and used.
#[derive(Debug, Clone)]
pub struct FleetPrograms {
    /// The product.
    pub neap: PathBuf,
    /// This program, which is also the peer with the bare handler.
    pub load: PathBuf,
    /// PostgreSQL, where it is needed.
    pub postgres: Option<PostgresPrograms>,
    /// The client that users have, where it is needed.
    pub kubectl: Option<PathBuf>,
    /// Whether peers are measured too.
    pub with_peers: bool,
}

/// The part of sorted durations that `percent` do not exceed, in milliseconds.
fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let found = sorted.get((sorted.len() * percent / 100).min(last));
    crate::measure::milliseconds(found.copied().unwrap_or_default())
}
