//! Many clusters at once on two backends, one of which is killed again and again.

use std::{fmt, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use serde_json::Value;
use sqlx::{PgPool, Row};
use tokio::{task::JoinSet, time::sleep};

use super::{FleetPrograms, arm, postgres::Postgres, region::Region, takeover};
use crate::{
    client::Client, logged_process::LoggedProcess, rng::SeededRng, server::Server,
    stopwatch::Stopwatch,
};

/// How often the status of an operation is read.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The time in which all operations end.
const DEADLINE: Duration = Duration::from_mins(30);

/// What a run does.
#[derive(Debug, Clone)]
pub struct CrowdOptions {
    /// The programs that take part.
    pub programs: FleetPrograms,
    /// How many clusters are created at once.
    pub clusters: usize,
    /// A backend is killed this often, as long as operations run.
    pub kill_interval: Duration,
    /// The number of kills at most.
    pub max_kills: usize,
    /// How long a cluster takes to settle.
    pub settle: Duration,
    /// Chooses which of two is killed that work on equally many clusters.
    pub seed: u64,
}

/// What came of a run in which nothing was wrong.
#[derive(Debug, Clone, Default)]
pub struct CrowdTally {
    /// Clusters, each of which was created exactly once.
    pub clusters: usize,
    /// Backends that were killed.
    pub kills: usize,
    /// Clusters on which a backend worked when it was killed.
    pub interrupted: usize,
    /// Attempts at steps, and steps.
    pub attempts: u64,
    pub steps: u64,
    /// From the first request to the last end.
    pub took: Duration,
}

impl fmt::Display for CrowdTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} clusters created, each once, in {} s; {} backends killed, work on {} clusters interrupted; {} attempts at {} steps",
            self.clusters,
            self.took.as_secs(),
            self.kills,
            self.interrupted,
            self.attempts,
            self.steps,
        )
    }
}

/// Creates the clusters and kills backends until all operations have ended. An error names what is wrong.
pub async fn crowd(options: &CrowdOptions) -> Result<CrowdTally> {
    let wanted = options.programs.postgres.as_ref();
    let postgres = Postgres::start(wanted.context("no PostgreSQL")?).await?;
    let region = Region::start(&options.programs.neap, Some(postgres.url())).await?;
    let settle = format!("{}ms", options.settle.as_millis());
    let hive = takeover::hive(&options.programs.neap, &settle).await?;
    let mut backends = [region.backend(&hive)?, region.backend(&hive)?];
    let watch = Stopwatch::start();
    let mut ends = create(&region.client()?, options.clusters);
    let mut tally = CrowdTally {
        clusters: options.clusters,
        ..CrowdTally::default()
    };
    let mut rng = SeededRng::new(options.seed);
    let ending = async {
        while let Some(ended) = ends.join_next().await {
            ended??;
        }
        anyhow::Ok(())
    };
    let killing = async {
        while tally.kills < options.max_kills {
            sleep(options.kill_interval).await;
            let (at, interrupted) = busiest(&postgres.pool, &backends, &mut rng).await?;
            tally.interrupted += interrupted;
            backends[at].kill()?;
            tally.kills += 1;
            backends[at] = region.backend(&hive)?;
        }
        std::future::pending::<Result<()>>().await
    };
    tokio::select! {
        ended = ending => ended?,
        failed = killing => failed?,
        () = sleep(DEADLINE) => bail!("the operations have not ended after {DEADLINE:?}"),
    }
    tally.took = watch.elapsed();
    judge(&postgres.pool, &hive, options.clusters).await?;
    (tally.attempts, tally.steps) = steps(&postgres.pool, options.clusters).await?;
    Ok(tally)
}

/// Requests all clusters at once, and waits for the ends of their operations.
fn create(client: &Client, clusters: usize) -> JoinSet<Result<()>> {
    let mut ends = JoinSet::new();
    for number in 1..=clusters {
        let client = client.clone();
        ends.spawn(async move {
            let mut api = client.connect().await?;
            let operation = arm::create(&mut api, &format!("crowd{number}"), number).await?;
            loop {
                let answer = api.send(Method::GET, &operation, "").await?.success()?;
                match answer["status"].as_str().unwrap_or_default() {
                    "Succeeded" => return Ok(()),
                    "Creating" => sleep(POLL_INTERVAL).await,
                    _ => bail!("crowd{number} was not created: {answer}"),
                }
            }
        });
    }
    ends
}

/// The backend that works on most clusters, and on how many, as soon as there is one.
async fn busiest(
    pool: &PgPool,
    backends: &[LoggedProcess; 2],
    rng: &mut SeededRng,
) -> Result<(usize, usize)> {
    loop {
        let first = works_on(pool, &backends[0]).await?;
        let second = works_on(pool, &backends[1]).await?;
        if first + second > 0 {
            let is_second = second > first || first == second && rng.below(2) == 1;
            return Ok((usize::from(is_second), first.max(second)));
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// The number of clusters on which a backend works.
async fn works_on(pool: &PgPool, backend: &LoggedProcess) -> Result<usize> {
    let text = "SELECT count(*) FROM neap_work WHERE owner LIKE $1";
    let owner = format!("{}-%", backend.id());
    let row = sqlx::query(text).bind(owner).fetch_one(pool).await?;
    Ok(usize::try_from(row.get::<i64, _>(0))?)
}

/// Every operation ended once, and nothing was made twice.
async fn judge(pool: &PgPool, hive: &Server, clusters: usize) -> Result<()> {
    let text = "SELECT target, count(*), min(action) FROM neap_audit
        WHERE action LIKE '% ended %' GROUP BY target";
    let ends = sqlx::query(text).fetch_all(pool).await?;
    ensure!(
        ends.len() == clusters,
        "the work on {} of {clusters} clusters has ended",
        ends.len()
    );
    for row in &ends {
        let (cluster, count): (String, i64) = (row.get(0), row.get(1));
        let action: String = row.get(2);
        ensure!(
            count == 1 && action == "Creating ended Succeeded",
            "{cluster}: {action}, {count} times"
        );
    }
    let text = "SELECT count(*) FROM neap_documents WHERE collection = 'Billing'";
    let bills: i64 = sqlx::query(text).fetch_one(pool).await?.get(0);
    ensure!(
        usize::try_from(bills)? == clusters,
        "{bills} clusters are billed"
    );
    let left: i64 = sqlx::query("SELECT count(*) FROM neap_work WHERE queue IS NOT NULL")
        .fetch_one(pool)
        .await?
        .get(0);
    ensure!(left == 0, "{left} clusters still wait for work");
    let mut api = hive.client()?.connect().await?;
    let path = "/apis/hive.openshift.io/v1/clusterdeployments";
    let list = api.send(Method::GET, path, "").await?.success()?;
    let deployments = list["items"].as_array().context("no list")?;
    ensure!(
        deployments.len() == clusters,
        "Hive has {} ClusterDeployments",
        deployments.len()
    );
    Ok(())
}

/// Attempts at steps and steps. Each step of the list has one record.
async fn steps(pool: &PgPool, clusters: usize) -> Result<(u64, u64)> {
    let text = "SELECT body FROM neap_documents WHERE collection = 'OperationTimelines'";
    let rows = sqlx::query(text).fetch_all(pool).await?;
    ensure!(rows.len() == clusters, "{} timelines", rows.len());
    let (mut attempts, mut steps) = (0, 0);
    for row in rows {
        let body: Value = serde_json::from_str(row.try_get(0)?)?;
        let records = body["timeline"]["steps"].as_array();
        let records = records.context("a timeline without steps")?;
        ensure!(
            body["total"] == records.len(),
            "a step is missing, or recorded twice: {body}"
        );
        for record in records {
            match record["state"].as_str().unwrap_or_default() {
                "Succeeded" => {
                    attempts += record["attempts"].as_u64().unwrap_or(1);
                    steps += 1;
                }
                "Skipped" => {}
                state => bail!("{} is {state}: {body}", record["name"]),
            }
        }
    }
    Ok((attempts, steps))
}
