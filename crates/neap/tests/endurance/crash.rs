//! A short run of `cargo xtask crash`.

use neap_load::{
    crash::{CrashOptions, run},
    skip::release_build,
};

use crate::EXCLUSIVE;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_kills_lose_no_acknowledged_write() {
    let Some(neap) = release_build("repeated_kills_lose_no_acknowledged_write") else {
        return;
    };
    let _exclusive = EXCLUSIVE.lock().await;
    let plan = CrashOptions {
        neap,
        kills: 80,
        writers: 16,
        seed: 7,
    };
    let tally = run(&plan, |_| {}).await.unwrap();
    println!("{tally}");
    // The run proves something only if writes and compactions were interrupted.
    assert!(tally.acknowledged > 1000 && tally.unknown > 0, "{tally}");
    assert!(tally.resumed > 0 && tally.compactions > 0, "{tally}");
}
