//! PUTs of distinct clusters, beside `pgbench` that writes the same rows.

use std::{fmt::Write, time::Duration};

use anyhow::{Context, Result};
use sqlx::{AssertSqlSafe, PgPool, Row};
use tokio::task::JoinSet;

use super::{
    CONNECTIONS, FleetPrograms, OURS, PGBENCH, ProgramFigures, arm, percentile, pgbench,
    postgres::Postgres, region::Region,
};
use crate::{client::Client, stopwatch::Stopwatch};

/// PUTs on each connection.
const PUTS: usize = 150;
/// PUTs on each connection that are not counted.
const WARM_UP: usize = 10;
/// The cluster whose rows are written.
const MODEL: &str = "model";

/// The tables that a PUT writes, and their columns.
const TABLES: [(&str, &[&str]); 6] = [
    (
        "neap_documents",
        &["collection", "part", "id", "revision", "body", "updated_at"],
    ),
    (
        "neap_unique",
        &["collection", "part", "name", "value", "id"],
    ),
    (
        "neap_work",
        &[
            "collection",
            "part",
            "id",
            "queue",
            "not_before",
            "queued_at",
            "fence",
            "expires_at",
            "dequeues",
        ],
    ),
    (
        "neap_changes",
        &[
            "collection",
            "part",
            "id",
            "txn",
            "revision",
            "deleted",
            "changed_at",
        ],
    ),
    ("neap_outbox", &["topic", "body", "at"]),
    ("neap_audit", &["actor", "action", "target", "detail", "at"]),
];
/// Columns in which rows of one table must differ.
const DISTINCT: [&str; 2] = ["id", "value"];

/// The 99th percentile on PostgreSQL, and that of pgbench.
pub async fn writes(programs: &FleetPrograms) -> Result<Vec<ProgramFigures>> {
    let wanted = programs.postgres.as_ref().context("no PostgreSQL")?;
    let postgres = Postgres::start(wanted).await?;
    let region = Region::start(&programs.neap, Some(postgres.url())).await?;
    let client = region.client()?;
    let before = last_numbers(&postgres.pool).await?;
    arm::create(&mut client.connect().await?, MODEL, 999_999).await?;
    let script = script(&postgres.pool, &before).await?;
    put_all(&client, "warm", WARM_UP, 100_000).await?;
    let took = put_all(&client, "put", PUTS, 0).await?;
    let key = "p99 of a put";
    let mut figures = vec![(OURS, vec![(key, percentile(&took, 99))])];
    if let Some(program) = wanted.pgbench.as_ref().filter(|_| programs.with_peers) {
        pgbench::script_p99(program, &postgres, &script, WARM_UP).await?;
        let p99 = pgbench::script_p99(program, &postgres, &script, PUTS).await?;
        figures.push((PGBENCH, vec![(key, p99)]));
    }
    Ok(figures)
}

/// Creates distinct clusters on all connections. Returns how long each took, in ascending order.
async fn put_all(
    client: &Client,
    prefix: &'static str,
    count: usize,
    first: usize,
) -> Result<Vec<Duration>> {
    let mut clients = JoinSet::new();
    for connection in 0..CONNECTIONS {
        let client = client.clone();
        clients.spawn(async move {
            let mut api = client.connect().await?;
            let mut took = Vec::with_capacity(count);
            for number in 0..count {
                let number = first + 1 + connection * count + number;
                let watch = Stopwatch::start();
                arm::create(&mut api, &format!("{prefix}{number}"), number).await?;
                took.push(watch.elapsed());
            }
            anyhow::Ok(took)
        });
    }
    let mut all = Vec::new();
    while let Some(took) = clients.join_next().await {
        all.extend(took??);
    }
    all.sort_unstable();
    Ok(all)
}

/// The greatest revision, and the greatest numbers of outbox and audit.
async fn last_numbers(pool: &PgPool) -> Result<[i64; 3]> {
    let text = "SELECT (SELECT coalesce(max(revision), 0) FROM neap_changes),
        (SELECT coalesce(max(number), 0) FROM neap_outbox),
        (SELECT coalesce(max(number), 0) FROM neap_audit)";
    let row = sqlx::query(text).fetch_one(pool).await?;
    Ok([row.get(0), row.get(1), row.get(2)])
}

/// A script of pgbench that writes in one transaction the rows that were written after `before`, under
/// other keys.
async fn script(pool: &PgPool, before: &[i64; 3]) -> Result<String> {
    let mut script = "\\set neap_n random(1, 1000000000000)\nBEGIN;\n".to_owned();
    for (table, columns) in TABLES {
        let newer = newer(table, before);
        let text = columns.iter().map(|column| format!("{column}::text"));
        let text = text.collect::<Vec<_>>().join(", ");
        let select = AssertSqlSafe(format!("SELECT {text} FROM {table} WHERE {newer}"));
        let rows = sqlx::query(select).fetch_all(pool).await?;
        anyhow::ensure!(!rows.is_empty(), "a PUT writes nothing to {table}");
        for row in rows {
            let values = columns.iter().enumerate().map(|(at, column)| {
                let value: Option<String> = row.try_get(at)?;
                Ok(literal(column, value.as_deref()))
            });
            let values: Result<Vec<_>, sqlx::Error> = values.collect();
            let (names, values) = (columns.join(", "), values?.join(", "));
            // Writing to a string does not fail.
            let _ = writeln!(script, "INSERT INTO {table} ({names}) VALUES ({values});");
        }
    }
    script += "COMMIT;\n";
    Ok(script)
}

/// Which rows of a table the cluster has written.
fn newer(table: &str, [revision, outbox, audit]: &[i64; 3]) -> String {
    match table {
        "neap_outbox" => format!("number > {outbox}"),
        "neap_audit" => format!("number > {audit}"),
        "neap_documents" | "neap_changes" => format!("revision > {revision}"),
        _ => format!("id LIKE '%/{MODEL}'"),
    }
}

/// A value in a statement of pgbench.
fn literal(column: &str, value: Option<&str>) -> String {
    let Some(value) = value else {
        return "NULL".to_owned();
    };
    match column {
        "revision" => "nextval('neap_revision')".to_owned(),
        "txn" => "CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)".to_owned(),
        _ => {
            let value = value.replace('\'', "''");
            let distinct = if DISTINCT.contains(&column) {
                "-:client_id-:neap_n"
            } else {
                ""
            };
            format!("'{value}{distinct}'")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_and_keys_differ() {
        assert_eq!(literal("body", Some("it's")), "'it''s'");
        assert_eq!(literal("id", Some("a")), "'a-:client_id-:neap_n'");
        assert_eq!(literal("owner", None), "NULL");
        assert_eq!(literal("revision", Some("7")), "nextval('neap_revision')");
    }
}
