//! The command that measures the release tools.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use neap_load::{measure::Figure, release};

/// How often the example is applied.
const EXAMPLE_TIMES: usize = 3;

#[derive(Debug, Args)]
pub(crate) struct ReleaseCommand {
    /// The figure to measure
    #[arg(value_enum)]
    what: ReleaseFigure,
    /// Debian's docker-registry, in which the images are
    #[arg(long, value_name = "FILE")]
    registry: Option<PathBuf>,
    /// skopeo, to compare with
    #[arg(long, value_name = "FILE")]
    skopeo: Option<PathBuf>,
    /// Divides the number of objects beside the controllers, to try the measurement out
    #[arg(long, value_name = "N", default_value_t = 1)]
    divide: usize,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ReleaseFigure {
    /// Assembly of a payload of 200 components
    Assemble,
    /// Imports of 5,000 tags
    Imports,
    /// A cache of 100,000 ProwJobs
    ProwJobs,
    /// Both controllers beside 300 streams, 5,000 payloads and 100,000 ProwJobs
    Controllers,
    /// The example, from kubectl apply to an accepted payload
    Example,
}

impl ReleaseCommand {
    pub(crate) async fn measured(&self, neap: &Path) -> Result<Vec<Figure>> {
        let registry = || self.registry.as_deref().context("--registry is missing");
        match self.what {
            ReleaseFigure::Assemble => {
                release::assemble(neap, registry()?, self.skopeo.as_deref()).await
            }
            ReleaseFigure::Imports => release::imports(neap, registry()?).await,
            ReleaseFigure::ProwJobs => release::prow_jobs(neap).await,
            ReleaseFigure::Controllers => release::controllers(neap, self.divide).await,
            ReleaseFigure::Example => release::example(neap, EXAMPLE_TIMES).await,
        }
    }
}
