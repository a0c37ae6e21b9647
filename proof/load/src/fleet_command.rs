//! The command that measures a provider of clusters.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Result;
use clap::{Args, ValueEnum};
use neap_load::fleet::{
    self, BareHandler, CrowdOptions, CrowdTally, FleetPrograms, PostgresPrograms,
};
use serde_json::{Map, Value, json};

#[derive(Debug, Args)]
pub(crate) struct FleetCommand {
    /// The figure to measure
    #[arg(value_enum)]
    what: FleetFigure,
    /// PostgreSQL, for figures that need it
    #[arg(long, value_name = "FILE", requires = "initdb")]
    postgres: Option<PathBuf>,
    /// Its program that makes a database
    #[arg(long, value_name = "FILE")]
    initdb: Option<PathBuf>,
    /// Its benchmark, to compare with
    #[arg(long, value_name = "FILE")]
    pgbench: Option<PathBuf>,
    /// kubectl, for figures of clusters that are used
    #[arg(long, value_name = "FILE")]
    kubectl: Option<PathBuf>,
    /// Measure no peer
    #[arg(long)]
    no_peer: bool,
    /// Number of clusters that are created, or of kills [default: that of the figure]
    #[arg(long)]
    count: Option<usize>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FleetFigure {
    /// GETs on SQLite
    Sqlite,
    /// GETs on PostgreSQL
    Postgresql,
    /// PUTs on PostgreSQL
    Writes,
    /// How soon the work of a killed backend continues
    Takeover,
    /// What a step writes
    Steps,
    /// A list of many clusters
    Many,
    /// Installed clusters
    Installed,
}

/// Clusters that are few, beside the others of the figure of installed clusters.
const FEW: usize = 10;

impl FleetCommand {
    /// The figures, by the program they belong to.
    pub(crate) async fn measured(&self, neap: &Path) -> Result<Value> {
        let programs = self.programs(neap)?;
        let count = |usual: usize| self.count.unwrap_or(usual);
        let all = match self.what {
            FleetFigure::Sqlite => fleet::on_sqlite(&programs).await?,
            FleetFigure::Postgresql => fleet::on_postgresql(&programs).await?,
            FleetFigure::Writes => fleet::writes(&programs).await?,
            FleetFigure::Takeover => fleet::takeover(&programs, count(20)).await?,
            FleetFigure::Steps => fleet::steps(&programs).await?,
            FleetFigure::Many => fleet::many(&programs, count(10_000)).await?,
            FleetFigure::Installed => {
                let all = count(50).max(FEW + 1);
                fleet::installed(&programs, FEW, all).await?
            }
        };
        let all: Map<String, Value> = all
            .into_iter()
            .map(|(whose, figures)| {
                let figures = figures.into_iter();
                let figures: Map<String, Value> = figures
                    .map(|(name, value)| (name.to_owned(), json!(value)))
                    .collect();
                (whose.to_owned(), Value::Object(figures))
            })
            .collect();
        Ok(Value::Object(all))
    }

    fn programs(&self, neap: &Path) -> Result<FleetPrograms> {
        let postgres = self.postgres.clone().zip(self.initdb.clone());
        Ok(FleetPrograms {
            neap: neap.to_owned(),
            load: std::env::current_exe()?,
            postgres: postgres.map(|(postgres, initdb)| PostgresPrograms {
                initdb,
                postgres,
                pgbench: self.pgbench.clone(),
            }),
            kubectl: self.kubectl.clone(),
            with_peers: !self.no_peer,
        })
    }
}

/// The peer of a GET; started by the figure of that name.
#[derive(Debug, Args)]
pub(crate) struct BareCommand {
    /// The port at the loopback address
    #[arg(long)]
    port: u16,
    /// The folder with the database and the certificates
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,
}

impl BareCommand {
    pub(crate) async fn serve(&self) -> Result<()> {
        let handler = BareHandler {
            port: self.port,
            folder: self.folder.clone(),
        };
        fleet::serve_bare(&handler).await
    }
}

/// Many clusters at once, and backends that are killed.
#[derive(Debug, Args)]
pub(crate) struct CrowdCommand {
    /// Number of clusters
    #[arg(long, default_value_t = 100)]
    clusters: usize,
    /// Seconds between two kills
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    kill_every: u64,
    /// Seconds in which a cluster settles
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    settle: u64,
    /// Seed of the choices
    #[arg(long)]
    seed: u64,
    /// PostgreSQL
    #[arg(long, value_name = "FILE")]
    postgres: PathBuf,
    /// Its program that makes a database
    #[arg(long, value_name = "FILE")]
    initdb: PathBuf,
}

impl CrowdCommand {
    pub(crate) async fn run(&self, neap: &Path) -> Result<CrowdTally> {
        let postgres = PostgresPrograms {
            initdb: self.initdb.clone(),
            postgres: self.postgres.clone(),
            pgbench: None,
        };
        let options = CrowdOptions {
            programs: FleetPrograms {
                neap: neap.to_owned(),
                load: std::env::current_exe()?,
                postgres: Some(postgres),
                kubectl: None,
                with_peers: false,
            },
            clusters: self.clusters,
            kill_interval: Duration::from_secs(self.kill_every),
            max_kills: usize::MAX,
            settle: Duration::from_secs(self.settle),
            seed: self.seed,
        };
        fleet::crowd(&options).await
    }
}
