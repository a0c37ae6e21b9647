//! Streams with thousands of tags.

use super::*;

const MANY: usize = 5_000;

#[test]
fn thousands_of_images_are_pinned_and_thousands_of_releases_removed_in_one_look() {
    let releases: Vec<_> = (0..MANY)
        .map(|at| release(100 + i64::try_from(at).unwrap(), "Accepted"))
        .collect();
    let mut facts = facts(&json!({"expires": "1h"}), &releases);
    let status: Vec<_> = (0..MANY)
        .map(|at| imported(&format!("c{at}"), &format!("{at:064x}")))
        .collect();
    let spec: Vec<_> = (0..MANY)
        .map(|at| {
            let name = format!("reg.example/ocp/c{at}:latest");
            json!({"name": format!("c{at}"), "from": {"kind": "DockerImage", "name": name}})
        })
        .collect();
    facts.source = Arc::new(image_stream(
        "4.21-latest",
        &json!({}),
        &json!(spec),
        &json!(status),
    ));
    let decision = decide(&facts);
    let mirror = decision.changes.iter().find_map(|change| match change {
        StreamChange::CreateMirror(mirror) => Some(mirror),
        _ => None,
    });
    assert_eq!(mirror.unwrap().spec.tags.len(), MANY);
    // The newest five, and the one that is cut.
    assert_eq!(tags_after(&facts, &decision).len(), 6);
}

#[test]
fn thousands_of_tags_of_a_stable_stream_become_releases_in_steps() {
    let tag = |at: usize| format!("4.21.{at}");
    let spec: Vec<_> = (0..MANY)
        .map(|at| {
            let annotations = json!({
                annotations::NAME: "4-stable", annotations::SOURCE: "ocp/release",
                annotations::PHASE: "Pending", annotations::REWRITE: "false",
            });
            let from =
                json!({"kind": "DockerImage", "name": format!("reg.example/r@sha256:{at:064x}")});
            json!({"name": tag(at), "annotations": annotations, "from": from})
        })
        .collect();
    let status: Vec<_> = (0..MANY)
        .map(|at| imported(&tag(at), &format!("{at:064x}")))
        .collect();
    let mut facts = facts(&json!({"name": "4-stable", "as": "Stable", "to": ""}), &[]);
    let has_releases = json!({annotations::HAS_RELEASES: "true"});
    let stream = image_stream("release", &has_releases, &json!(spec), &json!(status));
    facts.source = Arc::new(stream);
    facts.target = Some(facts.source.clone());
    let decision = decide(&facts);
    let mirrors = decision
        .changes
        .iter()
        .filter(|change| matches!(change, StreamChange::CreateMirror(_)));
    assert_eq!(mirrors.count(), facts.options.max_launches);
    assert_eq!(
        decision.requeue_after,
        Some(Duration::from_secs(1)),
        "the others follow"
    );
}
