//! A real PostgreSQL in a folder of its own.

use std::{
    net::SocketAddr,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::geteuid;
use sqlx::{AssertSqlSafe, PgPool, postgres::PgPoolOptions};
use tempfile::TempDir;
use tokio::time::sleep;

use super::WAIT_TIMEOUT;
use crate::{
    logged_process::{LoggedProcess, free},
    process,
    stopwatch::Stopwatch,
};

/// PostgreSQL refuses to run as root and then runs as this user.
const UNPRIVILEGED_UID: u32 = 65534;

/// Where the programs of PostgreSQL are.
#[derive(Debug, Clone)]
pub struct PostgresPrograms {
    pub initdb: PathBuf,
    pub postgres: PathBuf,
    /// Measured beside ours, if it is there.
    pub pgbench: Option<PathBuf>,
}

/// A server with an empty database; ended when dropped.
#[derive(Debug)]
pub(super) struct Postgres {
    server: LoggedProcess,
    address: SocketAddr,
    /// A few connections that look at what programs have written.
    pub(super) pool: PgPool,
    _folder: TempDir,
}

impl Postgres {
    /// Starts it with the configuration that it has by default.
    pub(super) async fn start(programs: &PostgresPrograms) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let user = Some(UNPRIVILEGED_UID);
        if geteuid().is_root() {
            chown(folder.path(), user, user)?;
        }
        let data = folder.path().join("data");
        let made = command(&programs.initdb, folder.path())
            .args(["--username=postgres", "--auth=trust", "--no-sync", "-D"])
            .arg(&data)
            .output()
            .context("cannot run initdb")?;
        let error = String::from_utf8_lossy(&made.stderr);
        ensure!(made.status.success(), "initdb failed: {error}");
        let address = free()?;
        let mut server = command(&programs.postgres, folder.path());
        server
            .args(["-p", &address.port().to_string(), "-h", "127.0.0.1"])
            .args(["-c", "unix_socket_directories=", "-D"])
            .arg(&data);
        let mut server = LoggedProcess::start(&mut server).context("cannot run postgres")?;
        let url = format!("postgres://postgres@{address}/postgres");
        let watch = Stopwatch::start();
        let options = PgPoolOptions::new().max_connections(2);
        let pool = loop {
            match options.clone().connect(&url).await {
                Ok(pool) => break pool,
                Err(error) if server.has_ended() || watch.elapsed() > WAIT_TIMEOUT => {
                    bail!("PostgreSQL: {error}\n{}", server.last_output()?)
                }
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        };
        Ok(Self {
            server,
            address,
            pool,
            _folder: folder,
        })
    }

    /// As programs are told it.
    pub(super) fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.address)
    }

    /// Creates a database. Returns its address, as programs are told it, and connections to it.
    pub(super) async fn database(&self, name: &str) -> Result<(String, PgPool)> {
        sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&self.pool)
            .await?;
        let url = format!("postgres://postgres@{}/{name}", self.address);
        let pool = PgPoolOptions::new()
            .max_connections(2)
            .connect(&url)
            .await?;
        Ok((url, pool))
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The CPU time of all its processes in seconds.
    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        process::cpu_seconds_of_tree(self.server.id())
    }
}

fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env("LC_ALL", "C");
    if geteuid().is_root() {
        command.uid(UNPRIVILEGED_UID).gid(UNPRIVILEGED_UID);
    }
    command
}
