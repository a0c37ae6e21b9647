//! A sample of `cargo xtask crash`.

use neap_load::{
    crash::{Plan, run},
    skip::release_build,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_again_and_again_keeps_its_promises() {
    let Some(neap) = release_build("a_server_that_is_killed_again_and_again_keeps_its_promises")
    else {
        return;
    };
    let plan = Plan {
        neap,
        kills: 80,
        writers: 16,
        seed: 7,
    };
    let tally = run(&plan, |_| {}).await.unwrap();
    println!("{tally}");
    // Had nothing been at stake, nothing would have been shown.
    assert!(tally.acknowledged > 1000 && tally.unknown > 0, "{tally}");
    assert!(tally.resumed > 0 && tally.compactions > 0, "{tally}");
}
