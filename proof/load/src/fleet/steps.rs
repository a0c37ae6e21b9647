//! What a step costs the database.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use sqlx::{PgPool, Row};

use super::{
    FleetPrograms, OURS, ProgramFigures, arm, postgres::Postgres, region::Region, takeover,
};

/// Installations; the first one is not counted.
const INSTALLATIONS: usize = 4;

/// Counts the versions of timelines, in the transactions that write them.
const COUNTER: [&str; 4] = [
    "CREATE TABLE bench_saves (number BIGINT)",
    "INSERT INTO bench_saves VALUES (0)",
    "CREATE FUNCTION bench_save() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN UPDATE bench_saves SET number = number + 1; RETURN NULL; END $$",
    "CREATE TRIGGER bench_save AFTER INSERT OR UPDATE ON neap_documents FOR EACH ROW
        WHEN (NEW.collection = 'OperationTimelines') EXECUTE FUNCTION bench_save()",
];

/// Durable writes per step of an installation, by the engine and of all kinds: the latter are the
/// transactions of the database that wrote something, from the request to the end, with those of the
/// steps themselves and with claims and renewals of leases. Steps that were skipped do not count.
pub async fn steps(programs: &FleetPrograms) -> Result<Vec<ProgramFigures>> {
    let wanted = programs.postgres.as_ref().context("no PostgreSQL")?;
    let postgres = Postgres::start(wanted).await?;
    let region = Region::start(&programs.neap, Some(postgres.url())).await?;
    let hive = takeover::hive(&programs.neap, "0s").await?;
    let _backend = region.backend(&hive)?;
    for statement in COUNTER {
        sqlx::query(statement).execute(&postgres.pool).await?;
    }
    let mut api = region.client()?.connect().await?;
    let (mut saves, mut writes, mut steps) = (0, 0, 0);
    for number in 0..INSTALLATIONS {
        let before = counted(&postgres.pool).await?;
        let operation = arm::create(&mut api, &format!("steps{number}"), number + 1).await?;
        arm::succeeded(&mut api, &operation).await?;
        if number > 0 {
            let after = counted(&postgres.pool).await?;
            writes += after.0 - before.0;
            saves += after.1 - before.1;
            steps += run_steps(&postgres.pool, arm::operation_id(&operation)?).await?;
        }
    }
    Ok(vec![(
        OURS,
        vec![
            ("writes per step", saves as f64 / steps as f64),
            ("all writes per step", writes as f64 / steps as f64),
            ("steps", steps as f64 / (INSTALLATIONS - 1) as f64),
        ],
    )])
}

/// The number of the next transaction that writes, as those that only read have none, and the number of
/// versions of timelines so far.
async fn counted(pool: &PgPool) -> Result<(i64, i64)> {
    let text = "SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT),
        (SELECT number FROM bench_saves)";
    let row = sqlx::query(text).fetch_one(pool).await?;
    Ok((row.get(0), row.get(1)))
}

/// How many steps of an operation ran.
async fn run_steps(pool: &PgPool, operation: &str) -> Result<usize> {
    let text = "SELECT body FROM neap_documents
        WHERE collection = 'OperationTimelines' AND id = $1";
    let row = sqlx::query(text).bind(operation).fetch_one(pool).await?;
    let body: Value = serde_json::from_str(row.try_get(0)?)?;
    let steps = body["timeline"]["steps"].as_array();
    let steps = steps.context("a timeline without steps")?.iter();
    let ran = steps.filter(|step| step["state"] != "Skipped").count();
    ensure!(ran > 0, "no step ran");
    Ok(ran)
}
