//! Which streams a change of a target concerns, and which releases upgrades may start from.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::{image_stream::api::TagReference, stream::controller::streams_of_changed_tags};

fn tags(all: &[(&str, &str, &str)]) -> Vec<TagReference> {
    let tag = |(name, stream, phase): &(&str, &str, &str)| -> Value {
        json!({"name": name, "annotations": {annotations::NAME: stream, annotations::PHASE: phase}})
    };
    let all: Vec<_> = all.iter().map(tag).collect();
    serde_json::from_value(json!(all)).unwrap()
}

#[test]
fn a_change_concerns_the_streams_of_the_tags_that_differ() {
    let before = tags(&[
        ("a", "nightly", "Ready"),
        ("b", "ci", "Ready"),
        ("c", "stable", "Ready"),
    ]);
    let streams = |after: &[(&str, &str, &str)]| -> Vec<String> {
        let after = tags(after);
        let changed: BTreeSet<_> = streams_of_changed_tags(&before, &after);
        changed.into_iter().cloned().collect()
    };
    let (a, b, c) = (
        ("a", "nightly", "Ready"),
        ("b", "ci", "Ready"),
        ("c", "stable", "Ready"),
    );
    assert_eq!(streams(&[c, a, b]), [""; 0], "the order does not matter");
    assert_eq!(streams(&[a, ("b", "ci", "Accepted"), c]), ["ci"]);
    assert_eq!(streams(&[a, c]), ["ci"], "one is gone");
    assert_eq!(streams(&[a, b, c, ("d", "okd", "Ready")]), ["okd"]);
    let moved = ("b", "nightly", "Ready");
    assert_eq!(streams(&[a, moved, c]), ["ci", "nightly"], "of both");
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_starts_from_what_a_change_of_another_target_has_accepted() {
    let cluster = TestCluster::open(&periodics(&["e2e-aws"])).await;
    let from = json!({"candidate": {"stream": "nightly", "version": "4.20"}});
    let verify = json!({"verify": {"aws": {
        "prowJob": {"name": "e2e-aws"}, "upgrade": true, "upgradeFromRelease": from,
    }}});
    let earlier = |phase: &str| {
        json!([{"name": "4.20.0-0.nightly-2026-01-01-000000", "annotations": {
            annotations::NAME: "4.20.0-0.nightly", annotations::PHASE: phase,
        }}])
    };
    let older = json!({
        "metadata": {"name": "older", "annotations": {annotations::HAS_RELEASES: "true"}},
        "spec": {"tags": earlier("Ready")},
    });
    cluster.declare_object(&older).await;
    cluster.declare(&integration(verify)).await;
    cluster.pass(SECOND * 5).await;
    let payload: ReleasePayload = cluster.get(TAG).await.unwrap();
    let jobs =
        |payload: &ReleasePayload| payload.spec.payload_verification_config.blocking_jobs.len();
    assert_eq!(jobs(&payload), 0, "nothing is accepted yet");
    cluster.end_job(TAG, true).await;
    cluster.set_tags("older", earlier("Accepted")).await;
    cluster.new_image(1).await;
    cluster.pass(MINUTE).await;
    let newest = cluster.state().await.newest.unwrap();
    assert_ne!(newest, TAG);
    let payload: ReleasePayload = cluster.get(&newest).await.unwrap();
    assert_eq!(jobs(&payload), 1);
}
