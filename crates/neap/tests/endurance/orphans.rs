//! A short run of `cargo xtask orphans`: no process of a pod survives a killed `neap up`, whatever its
//! pods were doing.

use neap_load::orphans::{KillPhase, OrphanRunOptions, run};

use crate::EXCLUSIVE;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_process_of_a_pod_survives_a_killed_neap_up() {
    let _exclusive = EXCLUSIVE.lock().await;
    let plan = OrphanRunOptions {
        neap: env!("CARGO_BIN_EXE_neap").into(),
        tries: KillPhase::ALL.len(),
        seed: 5,
    };
    let tally = run(&plan, |_| {}).await.unwrap();
    assert!(tally.left.is_empty(), "{tally}");
    // The run proves something only if pods were running.
    assert_eq!(tally.tries(), 3);
    assert!(tally.at_stake(KillPhase::Running) > 10, "{tally}");
}
