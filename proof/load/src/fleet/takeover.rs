//! How soon another backend continues the work of one that was killed.
//!
//! A kill is followed by the rest of a lease, so twenty of them one after the other take minutes. They are
//! spread over regions that know nothing of each other: each has its own database, frontend and two
//! backends, so that in every region one backend is killed and one other may take over.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use http::Method;
use sqlx::{PgPool, Row};
use tokio::{task::JoinSet, time::sleep};

use super::{
    FleetPrograms, OURS, ProgramFigures, WAIT_TIMEOUT, arm, postgres::Postgres, region::Region,
};
use crate::{
    client::Client, logged_process::LoggedProcess, measure::milliseconds, rng::SeededRng,
    server::Server, stopwatch::Stopwatch,
};

/// Leases are renewed this often: a kill comes at any moment between two renewals.
const RENEWAL: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The regions in which backends are killed side by side.
const REGIONS: usize = 4;

/// The longest of `times` take-overs, and their median.
pub async fn takeover(programs: &FleetPrograms, times: usize) -> Result<Vec<ProgramFigures>> {
    let wanted = programs.postgres.as_ref().context("no PostgreSQL")?;
    let postgres = Postgres::start(wanted).await?;
    // Clusters never settle, so that their installation is in work until the end.
    let hive = hive(&programs.neap, "10h").await?;
    let hive = Arc::new(hive);
    let regions = times.clamp(1, REGIONS);
    let mut measured = JoinSet::new();
    for number in 0..regions {
        let (url, pool) = postgres.database(&format!("region{number}")).await?;
        let region = Region::start(&programs.neap, Some(url)).await?;
        let kills = times / regions + usize::from(number < times % regions);
        measured.spawn(kill_in(region, pool, hive.clone(), number, kills));
    }
    let mut took = Vec::with_capacity(times);
    while let Some(of_region) = measured.join_next().await {
        took.extend(of_region??);
    }
    took.sort_unstable();
    let longest = took.last().copied().context("nothing was measured")?;
    let figures = vec![
        ("longest", milliseconds(longest)),
        ("median", milliseconds(took[took.len() / 2])),
    ];
    Ok(vec![(OURS, figures)])
}

/// The times of `kills` take-overs in a region, one after the other.
async fn kill_in(
    region: Region,
    pool: PgPool,
    hive: Arc<Server>,
    number: usize,
    kills: usize,
) -> Result<Vec<Duration>> {
    let mut backends = [region.backend(&hive)?, region.backend(&hive)?];
    let client = region.client()?;
    let mut rng = SeededRng::new(u64::try_from(number)? + 7);
    let mut took = Vec::new();
    for kill in 1..=kills {
        let name = format!("taken{number}-{kill}");
        // A connection of its own: the frontend closes one that is idle during a take-over.
        arm::create(&mut client.connect().await?, &name, kill).await?;
        let cluster = arm::cluster_path(&name, "");
        let id = cluster.split('?').next().unwrap_or_default().to_lowercase();
        let owner = other_owner(&pool, &id, "").await?;
        // It has begun: the work goes on, and is not only about to be claimed.
        sleep(RENEWAL + rng.duration_below(RENEWAL)).await;
        let owner = other_owner(&pool, &id, "").await.unwrap_or(owner);
        let killed = backends
            .iter_mut()
            .find(|backend| owner.starts_with(&format!("{}-", backend.id())))
            .with_context(|| format!("{owner} is no backend"))?;
        killed.kill()?;
        let watch = Stopwatch::start();
        other_owner(&pool, &id, &owner).await?;
        took.push(watch.elapsed());
        *killed = region.backend(&hive)?;
        ready(killed)?;
    }
    Ok(took)
}

fn ready(backend: &mut LoggedProcess) -> Result<()> {
    ensure!(!backend.has_ended(), "{}", backend.last_output()?);
    Ok(())
}

/// Waits until a backend other than `owner` works on a cluster. Returns which.
async fn other_owner(pool: &PgPool, id: &str, owner: &str) -> Result<String> {
    let text = "SELECT owner FROM neap_work WHERE id = $1 AND owner IS NOT NULL";
    let watch = Stopwatch::start();
    loop {
        let row = sqlx::query(text).bind(id).fetch_optional(pool).await?;
        if let Some(found) = row.map(|row| row.get::<String, _>(0))
            && found != owner
        {
            return Ok(found);
        }
        ensure!(watch.elapsed() < WAIT_TIMEOUT, "no backend works on {id}");
        sleep(POLL_INTERVAL).await;
    }
}

/// A `neap up` whose Hive installs clusters that settle after a time, once it works.
pub(super) async fn hive(neap: &Path, settle: &str) -> Result<Server> {
    let neap = neap.to_owned();
    let settle = settle.to_owned();
    let start = move || Server::start_whole_with(&neap, &["--fleet-settle", &settle]);
    let server = tokio::task::spawn_blocking(start).await??;
    // Hive starts with the first request to the provider beside it.
    let mut api = provider(&server).await?.connect().await?;
    let clusters = arm::clusters_path();
    let answer = api.send(Method::GET, &clusters, "").await?;
    answer.success().context("the provider of neap up")?;
    Ok(server)
}

/// A client of the provider of `neap up`.
pub(super) async fn provider(server: &Server) -> Result<Client> {
    let mut api = server.client()?.connect().await?;
    let path = "/api/v1/namespaces/default/configmaps/neap-fleet";
    let watch = Stopwatch::start();
    let map = loop {
        let answer = api.send(Method::GET, path, "").await?;
        if answer.status == 200 {
            break answer.json()?;
        }
        ensure!(watch.elapsed() < WAIT_TIMEOUT, "no provider");
        sleep(POLL_INTERVAL).await;
    };
    let data = |name: &str| map["data"][name].as_str().context("no address");
    let address = data("url")?.trim_start_matches("https://");
    Client::to(address, data("ca.crt")?.as_bytes(), "")
}
