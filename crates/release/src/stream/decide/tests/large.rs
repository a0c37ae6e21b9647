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

#[test]
fn no_more_runs_are_launched_in_one_look_than_the_limit_allows() {
    const JOBS: usize = 60;
    let job = |at: usize| format!("e2e-{at:02}");
    let verify: serde_json::Map<String, Value> = (0..JOBS)
        .map(|at| (format!("v{at:02}"), json!({"prowJob": {"name": job(at)}})))
        .collect();
    let ready = release(1, "Ready");
    let name = ready["name"].as_str().unwrap().to_owned();
    let mut facts = facts(&json!({"verify": verify}), &[ready]);
    let results: Vec<_> = (0..JOBS)
        .map(|at| json!({"ciConfigurationName": format!("v{at:02}"), "ciConfigurationJobName": job(at)}))
        .collect();
    let created = json!({
        "type": "PayloadCreated", "status": "True", "reason": "ReleasePayloadCreated", "message": "",
        "lastTransitionTime": NOW,
    });
    let status = json!({"conditions": [created], "blockingJobResults": results});
    let mut payload = crate::payload::samples::payload(&json!({}));
    payload.metadata.name = Some(name.clone());
    payload.status = serde_json::from_value(status).unwrap();
    facts.payloads.insert(name.clone(), Arc::new(payload));
    facts.proved.insert(name.clone());
    let periodics = (0..JOBS).map(|at| crate::stream::prow_config::Periodic {
        name: job(at),
        cluster: "build01".to_owned(),
        ..Default::default()
    });
    facts.prow = Arc::new(crate::stream::prow_config::ProwConfig {
        periodics: periodics.map(|one| (one.name.clone(), one)).collect(),
        scheduler_enabled: false,
    });
    let launched = |facts: &Facts| -> BTreeSet<String> {
        let decision = decide(facts);
        let runs = decision
            .changes
            .iter()
            .filter(|change| change.kind() == "ProwJob");
        runs.map(|change| change.key().name().to_owned()).collect()
    };
    let first = launched(&facts);
    assert_eq!(first.len(), facts.options.max_launches);
    assert_eq!(decide(&facts).requeue_after, Some(Duration::from_secs(1)));
    facts.runs.insert(name.clone(), first);
    assert_eq!(launched(&facts).len(), JOBS - facts.options.max_launches);
}
