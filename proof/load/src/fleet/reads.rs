//! GETs of a cluster by clients with certificates, per CPU-second.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use http::Method;
use tokio::task::JoinSet;

use super::{
    BARE, CONNECTIONS, FleetPrograms, OURS, PGBENCH, ProgramFigures, arm, bare, pgbench,
    postgres::Postgres, region::Region,
};
use crate::{client::Client, process, stopwatch::Stopwatch};

/// Clusters that are read in turn.
const CLUSTERS: usize = 100;
/// How long each program is measured.
const TIME: Duration = Duration::from_secs(5);
/// How long it is used before.
const WARM_UP: Duration = Duration::from_secs(1);
/// The key of the figure.
const RATE: &str = "gets per CPU second";

/// On SQLite, beside the bare handler on the same file.
pub async fn on_sqlite(programs: &FleetPrograms) -> Result<Vec<ProgramFigures>> {
    let region = Region::start(&programs.neap, None).await?;
    let paths = clusters(&region).await?;
    let gets = measured(&region.client()?, &paths, || region.cpu_seconds()).await?;
    let mut figures = vec![(OURS, vec![(RATE, gets)])];
    if programs.with_peers {
        let (handler, address) = bare::start(&programs.load, &region).await?;
        let client = region.client_of(address)?;
        let gets = measured(&client, &paths, || process::cpu_seconds(handler.id())).await?;
        figures.push((BARE, vec![(RATE, gets)]));
    }
    Ok(figures)
}

/// On PostgreSQL, beside `pgbench -S` on the same server. The CPU time of the database counts, with that
/// of the program which uses it.
pub async fn on_postgresql(programs: &FleetPrograms) -> Result<Vec<ProgramFigures>> {
    let wanted = programs.postgres.as_ref().context("no PostgreSQL")?;
    let postgres = Postgres::start(wanted).await?;
    let region = Region::start(&programs.neap, Some(postgres.url())).await?;
    let paths = clusters(&region).await?;
    let cpu = || Ok(region.cpu_seconds()? + postgres.cpu_seconds()?);
    let gets = measured(&region.client()?, &paths, cpu).await?;
    let mut figures = vec![(OURS, vec![(RATE, gets)])];
    if let Some(pgbench) = wanted.pgbench.as_ref().filter(|_| programs.with_peers) {
        let selects = pgbench::selects(pgbench, &postgres, TIME).await?;
        figures.push((PGBENCH, vec![(RATE, selects)]));
    }
    Ok(figures)
}

/// Creates the clusters. Returns their paths.
async fn clusters(region: &Region) -> Result<Arc<[String]>> {
    let mut api = region.client()?.connect().await?;
    let mut paths = Vec::with_capacity(CLUSTERS);
    for number in 1..=CLUSTERS {
        let name = format!("read{number}");
        arm::create(&mut api, &name, number).await?;
        paths.push(arm::cluster_path(&name, ""));
    }
    Ok(paths.into())
}

/// Responses per second of what `cpu` counts.
async fn measured(
    client: &Client,
    paths: &Arc<[String]>,
    cpu: impl Fn() -> Result<f64>,
) -> Result<f64> {
    get_all(client, paths, WARM_UP).await?;
    let before = cpu()?;
    let answers = get_all(client, paths, TIME).await?;
    Ok(answers as f64 / (cpu()? - before))
}

/// GETs on all connections for `time`. Returns their number.
async fn get_all(client: &Client, paths: &Arc<[String]>, time: Duration) -> Result<usize> {
    let mut clients = JoinSet::new();
    for number in 0..CONNECTIONS {
        let (client, paths) = (client.clone(), paths.clone());
        clients.spawn(async move {
            let mut connection = client.connect().await?;
            let (watch, mut answers) = (Stopwatch::start(), 0);
            while watch.elapsed() < time {
                let path = &paths[(number + answers) % paths.len()];
                let answer = connection.send(Method::GET, path, "").await?;
                ensure!(answer.status == 200, "{path}: {}", answer.status);
                answers += 1;
            }
            anyhow::Ok(answers)
        });
    }
    let mut all = 0;
    while let Some(answers) = clients.join_next().await {
        all += answers??;
    }
    Ok(all)
}
