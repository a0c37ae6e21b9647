//! Backends that are killed while clusters are created, as separate processes over PostgreSQL.

use std::{env, path::PathBuf, time::Duration};

use neap_load::{
    fleet::{CrowdOptions, FleetPrograms, PostgresPrograms, crowd},
    skip::{release_build, skipped},
};

#[tokio::test(flavor = "multi_thread")]
async fn clusters_are_created_once_although_a_backend_is_killed() {
    let test = "clusters_are_created_once_although_a_backend_is_killed";
    let Some(neap) = release_build(test) else {
        return;
    };
    let [Some(initdb), Some(postgres)] = ["NEAP_INITDB", "NEAP_POSTGRES"].map(env::var_os) else {
        skipped(test, "NEAP_INITDB and NEAP_POSTGRES name no PostgreSQL");
        return;
    };
    let options = CrowdOptions {
        programs: FleetPrograms {
            neap,
            load: PathBuf::from(env!("CARGO_BIN_EXE_neap-load")),
            postgres: Some(PostgresPrograms {
                initdb: initdb.into(),
                postgres: postgres.into(),
                pgbench: None,
            }),
            kubectl: None,
            with_peers: false,
        },
        clusters: 4,
        kill_interval: Duration::from_secs(3),
        max_kills: 1,
        // Longer than the time until the kill, so that it comes in the middle of the work.
        settle: Duration::from_secs(8),
        seed: 7,
    };
    let tally = crowd(&options).await.unwrap();
    eprintln!("{tally}");
    // That nothing was made twice proves something only if work was interrupted.
    assert_eq!(tally.kills, 1, "{tally}");
    assert!(tally.interrupted > 0, "{tally}");
}
