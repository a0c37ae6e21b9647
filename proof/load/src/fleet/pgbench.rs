//! The benchmark of PostgreSQL.

use std::{fs, path::Path, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::{CONNECTIONS, percentile, postgres::Postgres};
use crate::process;

/// Rows of its tables, in units of 100 000.
const SCALE: &str = "5";

/// Transactions of `pgbench -S` per second of CPU time, its own and that of the database.
pub(super) async fn selects(program: &Path, postgres: &Postgres, time: Duration) -> Result<f64> {
    run(program, postgres, &["-i", "-q", "-s", SCALE]).await?;
    let clients = CONNECTIONS.to_string();
    let seconds = time.as_secs().to_string();
    let own = std::process::id();
    let cpu = || Ok::<_, anyhow::Error>(postgres.cpu_seconds()? + process::reaped_seconds(own)?);
    let select = ["-S", "-n", "-c", &clients, "-j", "2", "-T"];
    run(program, postgres, &[&select[..], &["1"]].concat()).await?;
    let before = cpu()?;
    let printed = run(program, postgres, &[&select[..], &[&seconds]].concat()).await?;
    let used = cpu()? - before;
    Ok(transactions(&printed).context("pgbench counted nothing")? / used)
}

/// The 99th percentile of `count` transactions of a script on each connection, in milliseconds.
pub(super) async fn script_p99(
    program: &Path,
    postgres: &Postgres,
    script: &str,
    count: usize,
) -> Result<f64> {
    let folder = TempDir::new()?;
    let file = folder.path().join("script.sql");
    fs::write(&file, script)?;
    let (prefix, file) = (folder.path().join("log"), file.display().to_string());
    let prefix = format!("--log-prefix={}", prefix.display());
    let (clients, count) = (CONNECTIONS.to_string(), count.to_string());
    let arguments = [
        "-n", "-c", &clients, "-j", "2", "-t", &count, "-l", &prefix, "-f", &file,
    ];
    run(program, postgres, &arguments).await?;
    let mut took = Vec::new();
    for entry in fs::read_dir(folder.path())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "sql") {
            continue;
        }
        let log = fs::read_to_string(path)?;
        took.extend(log.lines().filter_map(latency));
    }
    ensure!(!took.is_empty(), "pgbench logged nothing");
    took.sort_unstable();
    Ok(percentile(&took, 99))
}

async fn run(program: &Path, postgres: &Postgres, arguments: &[&str]) -> Result<String> {
    let address = postgres.address();
    let mut command = Command::new(program);
    command
        .args(["-h", &address.ip().to_string()])
        .args(["-p", &address.port().to_string(), "-U", "postgres"])
        .args(arguments)
        .arg("postgres");
    let output = tokio::task::spawn_blocking(move || command.output()).await?;
    let output = output.context("cannot run pgbench")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "pgbench failed: {error}");
    Ok(String::from_utf8(output.stdout)?)
}

/// The number of transactions in its report.
fn transactions(printed: &str) -> Option<f64> {
    let mut lines = printed.lines();
    let line = "number of transactions actually processed: ";
    let count = lines.find_map(|it| it.strip_prefix(line))?;
    // With a fixed number of transactions it adds of how many.
    count.split('/').next()?.parse().ok()
}

/// The duration in a line of its log.
fn latency(line: &str) -> Option<Duration> {
    let microseconds = line.split(' ').nth(2)?.parse().ok()?;
    Some(Duration::from_micros(microseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_and_logs_are_read() {
        let report = "scaling factor: 5\nnumber of transactions actually processed: 4096/4100\n";
        assert_eq!(transactions(report), Some(4096.0));
        assert_eq!(transactions("tps = 7"), None);
        let line = "3 41 2571 0 1700000000 123456";
        assert_eq!(latency(line), Some(Duration::from_micros(2571)));
        assert_eq!(latency("nothing"), None);
    }
}
