//! A sample of `cargo xtask orphans`: nothing of a pod is left when `neap up` is killed, whatever
//! its pods were doing.

use neap_load::orphans::{Moment, Plan, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_pod_outlives_a_killed_neap_up() {
    let plan = Plan {
        neap: env!("CARGO_BIN_EXE_neap").into(),
        tries: Moment::ALL.len(),
        seed: 5,
    };
    let tally = run(&plan, |_| {}).await.unwrap();
    assert!(tally.left.is_empty(), "{tally}");
    // Had nothing been at stake, nothing would have been shown.
    assert_eq!(tally.tries(), 3);
    assert!(tally.at_stake(Moment::Running) > 10, "{tally}");
}
