//! What is removed, published and created again.

use super::*;
use crate::payload::samples::payload;

#[test]
fn old_releases_are_removed_and_the_newest_five_of_each_phase_stay() {
    let accepted = (0..7).map(|at| release(10 + at * 10, "Accepted"));
    let rejected = (0..7).map(|at| release(11 + at, "Rejected"));
    let older = [release(500, "Rejected"), release(510, "Failed")];
    let all: Vec<_> = accepted.chain(rejected).chain(older).collect();
    let all_names: Vec<_> = all
        .iter()
        .map(|tag| tag["name"].as_str().unwrap().to_owned())
        .collect();
    let mut facts = facts(&json!({"expires": "1h"}), &all);
    annotate(&mut facts, annotations::PAUSED, "quiet");
    let left = tags_after(&facts, &decide(&facts));
    let mut wanted: Vec<_> = all_names[..6].iter().chain(&all_names[7..12]).collect();
    wanted.sort_unstable();
    let mut left = names(&left);
    left.sort_unstable();
    // The sixth accepted one is beyond the newest five, and is not an hour old yet.
    assert_eq!(left, wanted);
    let unlimited = self::facts(&json!({}), &all[..7]);
    assert!(
        names(&tags_after(&unlimited, &decide(&unlimited))).len() >= 7,
        "nothing expires"
    );
}

#[test]
fn what_is_published_is_not_removed_and_soft_deletion_only_marks() {
    let mut all: Vec<_> = (0..6).map(|at| release(100 + at, "Accepted")).collect();
    let oldest = all[5]["name"].clone();
    let config = json!({"expires": "1h"});
    let soft = |facts: &mut Facts| {
        let mut options = StreamOptions::clone(&facts.options);
        options.soft_delete = true;
        facts.options = Arc::new(options);
    };
    let mut marked = facts(&config, &all);
    annotate(&mut marked, annotations::PAUSED, "quiet");
    soft(&mut marked);
    let tags = tags_after(&marked, &decide(&marked));
    assert_eq!(tags.len(), 6);
    assert_eq!(tags[5].annotations[annotations::SOFT_DELETE], NOW);
    all.push(json!({"name": "4.21", "from": {"kind": "ImageStreamTag", "name": oldest}}));
    let mut published = facts(&config, &all);
    annotate(&mut published, annotations::PAUSED, "quiet");
    assert_eq!(tags_after(&published, &decide(&published)).len(), 7);
}

#[test]
fn a_published_tag_follows_the_newest_accepted_release_and_never_goes_back() {
    let config = json!({"publish": {"latest": {"tagRef": {"name": "4.21"}}}});
    let (newer, older) = (release(10, "Accepted"), release(20, "Accepted"));
    let published = |releases: &[Value]| {
        let mut facts = facts(&config, releases);
        annotate(&mut facts, annotations::PAUSED, "quiet");
        let decision = decide(&facts);
        let tags = tags_after(&facts, &decision);
        let tag = tags.iter().find(|tag| tag.name == "4.21").cloned();
        (
            tag.and_then(|tag| tag.from).map(|from| from.name),
            decision.state.problems,
        )
    };
    let name = |release: &Value| release["name"].as_str().map(str::to_owned);
    let stands_for = |release: &Value| json!({"name": "4.21", "from": {"kind": "ImageStreamTag", "name": release["name"]}});
    assert_eq!(
        published(&[older.clone(), newer.clone()]),
        (name(&newer), vec![])
    );
    let moved = published(&[older.clone(), newer.clone(), stands_for(&older)]);
    assert_eq!(moved, (name(&newer), vec![]));
    // The newer one was rejected after it was published.
    let rejected = with_annotation(newer.clone(), annotations::PHASE, "Rejected");
    let (stays, problems) = published(&[older.clone(), rejected.clone(), stands_for(&newer)]);
    assert_eq!(stays, name(&newer));
    assert!(problems[0].starts_with("4.21 stays at"), "{problems:?}");
    assert_eq!(
        published(&[release(5, "Rejected")]),
        (None, vec![]),
        "nothing is accepted"
    );
}

#[test]
fn a_job_that_was_deleted_by_hand_is_created_again_while_the_image_does_not_exist() {
    let pending = release(1, "Pending");
    let name = pending["name"].as_str().unwrap().to_owned();
    let mut facts = facts(&json!({}), &[pending]);
    let mut made = payload(&json!({}));
    made.metadata.name = Some(name.clone());
    let mirror = facts.mirror_name(facts.config.as_ref().unwrap(), &name);
    let of_mirror = json!({annotations::HASH: "sha256:other"});
    let mirrored = image_stream(&mirror, &of_mirror, &json!([]), &json!([]));
    facts.mirrors.insert(mirror, Arc::new(mirrored));
    let jobs = |facts: &Facts| -> Vec<String> {
        let changes = decide(facts).changes;
        let jobs = changes.iter().filter(|change| change.kind() == "Job");
        jobs.map(|change| change.key().name().to_owned()).collect()
    };
    assert_eq!(jobs(&facts), [""; 0], "first the payload");
    facts.payloads.insert(name.clone(), Arc::new(made.clone()));
    facts.proved.insert(name.clone());
    assert_eq!(jobs(&facts), std::slice::from_ref(&name));
    // Its image exists: the Job may be collected.
    let created = json!({
        "type": "PayloadCreated", "status": "True", "reason": "ReleasePayloadCreated", "message": "",
        "lastTransitionTime": NOW,
    });
    made.status = serde_json::from_value(json!({"conditions": [created]})).unwrap();
    facts.payloads.insert(name, Arc::new(made));
    assert_eq!(jobs(&facts), [""; 0]);
}

#[test]
fn of_several_releases_that_are_created_the_newest_goes_on() {
    let newest = with_annotation(release(1, "Pending"), annotations::HASH, &hash());
    let facts = facts(&json!({}), &[release(5, "Pending"), newest]);
    let tags = tags_after(&facts, &decide(&facts));
    assert_eq!(tags[0].annotations[annotations::PHASE], "Failed");
    assert_eq!(tags[0].annotations[annotations::REASON], "Aborted");
    assert_eq!(tags[1].annotations[annotations::PHASE], "Pending");
}

#[test]
fn a_release_that_lost_its_mirror_gets_the_same_images_or_fails() {
    let mirrors = |facts: &Facts| -> Vec<String> {
        let changes = decide(facts).changes;
        let mirrors = changes
            .iter()
            .filter(|change| matches!(change, StreamChange::CreateMirror(_)));
        mirrors
            .map(|change| change.key().name().to_owned())
            .collect()
    };
    let same = with_annotation(release(1, "Pending"), annotations::HASH, &hash());
    let made = mirrors(&facts(&json!({}), &[same]));
    assert_eq!(made, ["4.21-latest-2026-01-02-035900"]);
    // The images of then are not known any more.
    let facts = facts(&json!({}), &[release(1, "Pending")]);
    assert_eq!(mirrors(&facts), [""; 0]);
    let tags = tags_after(&facts, &decide(&facts));
    assert_eq!(tags[0].annotations[annotations::PHASE], "Failed");
    assert_eq!(tags[0].annotations[annotations::REASON], "InputsChanged");
}

#[test]
fn jobs_with_our_own_program_need_no_root() {
    let pending = with_annotation(release(1, "Pending"), annotations::HASH, "sha256:other");
    let name = pending["name"].as_str().unwrap().to_owned();
    let mut facts = facts(&json!({}), &[pending]);
    let mut made = payload(&json!({}));
    made.metadata.name = Some(name.clone());
    facts.payloads.insert(name.clone(), Arc::new(made));
    facts.proved.insert(name.clone());
    let mirror = facts.mirror_name(facts.config.as_ref().unwrap(), &name);
    let mirrored = json!({annotations::HASH: "sha256:other"});
    let mirrored = image_stream(&mirror, &mirrored, &json!([]), &json!([]));
    facts.mirrors.insert(mirror, Arc::new(mirrored));
    let user = |facts: &Facts| {
        let changes = decide(facts).changes;
        let job = changes.iter().find_map(|change| match change {
            StreamChange::CreateJob(job) => Some(job.clone()),
            _ => None,
        });
        let pod = job.unwrap().spec.unwrap().template.spec.unwrap();
        let context = pod.containers[0].security_context.clone();
        context.map(|it| (it.run_as_non_root, it.run_as_user))
    };
    assert_eq!(user(&facts), Some((Some(true), Some(65_532))));
    // OpenShift chooses the user by the namespace.
    let mut source = ImageStream::clone(&facts.source);
    let status = source.status.as_mut().unwrap();
    status.docker_image_repository = "registry.svc:5000/ocp/4.21".to_owned();
    facts.source = Arc::new(source);
    assert_eq!(user(&facts), None);
}

#[test]
fn a_periodic_that_would_run_all_the_time_is_invalid_and_others_run() {
    let job = |name: &str| json!({"name": name});
    let periodic = json!({
        "bad": {"interval": "1ns", "prowJob": job("bad")},
        "seconds": {"cron": "* * * * * *", "prowJob": job("seconds")},
        "good": {"interval": "1h", "prowJob": job("good")},
    });
    let mut facts = facts(&json!({"periodic": periodic}), &[release(10, "Accepted")]);
    let known = ["bad", "seconds", "good"].map(|name| crate::stream::prow_config::Periodic {
        name: name.to_owned(),
        cluster: "build01".to_owned(),
        ..Default::default()
    });
    facts.prow = Arc::new(crate::stream::prow_config::ProwConfig {
        periodics: known.map(|one| (one.name.clone(), one)).into(),
        scheduler_enabled: false,
    });
    let decision = decide(&facts);
    let runs = decision.changes.iter().filter(|it| it.kind() == "ProwJob");
    let runs: Vec<_> = runs.map(|it| it.key().name().to_owned()).collect();
    assert_eq!(runs, [format!("{STREAM}-good-first")]);
    let problems = &decision.state.problems;
    assert!(
        problems[0].starts_with("periodic.bad.interval: "),
        "{problems:?}"
    );
    assert!(
        problems[1].starts_with("periodic.seconds.cron: "),
        "{problems:?}"
    );
    let reasons: Vec<_> = decision.events.iter().map(|event| event.reason).collect();
    assert!(reasons.contains(&"InvalidReleaseDefinition"), "{reasons:?}");
}
