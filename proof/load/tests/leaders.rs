//! Leaders that are paused, killed and terminated, as separate processes.

use std::path::PathBuf;

use neap_load::{
    leaders::{ElectionRunOptions, TimingsPreset, run},
    skip::release_build,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_stopped_past_its_lease_writes_nothing_more() {
    let Some(neap) = release_build("a_leader_that_was_stopped_past_its_lease_writes_nothing_more")
    else {
        return;
    };
    let plan = ElectionRunOptions {
        neap,
        load: PathBuf::from(env!("CARGO_BIN_EXE_neap-load")),
        pace: TimingsPreset::Short,
        stops: 4,
        kills: 1,
        ends: 1,
        seed: 11,
    };
    let tally = run(&plan, |_| {}).await.unwrap();
    // That no promise was broken proves something only if the promises were tested.
    assert!(tally.after_stops.len() >= 2, "{tally}");
    assert!(tally.fenced >= tally.after_stops.len(), "{tally}");
    assert!(tally.terms > tally.after_stops.len(), "{tally}");
    assert!(tally.written > 0, "{tally}");
}
