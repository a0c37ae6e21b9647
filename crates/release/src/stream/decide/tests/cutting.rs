//! When a release is cut, and why not.

use super::*;

/// The reason and the message of the stream.
fn why(facts: &Facts) -> (String, String) {
    let state = decide(facts).state;
    (state.reason, state.message)
}

fn is_cut(facts: &Facts) -> bool {
    let changes = decide(facts).changes;
    changes
        .iter()
        .any(|change| matches!(change, StreamChange::CreateMirror(_)))
}

#[test]
fn new_images_are_released_with_a_mirror_that_pins_them() {
    let facts = facts(&json!({}), &[release(10, "Accepted")]);
    let decision = decide(&facts);
    let StreamChange::CreateMirror(mirror) = &decision.changes[1] else {
        panic!("{:?}", decision.changes);
    };
    let from: Vec<_> = mirror
        .spec
        .tags
        .iter()
        .map(|tag| tag.from.as_ref().unwrap().name.as_str())
        .collect();
    assert_eq!(
        from,
        [
            "reg.example/ocp/cli@sha256:aaa",
            "reg.example/ocp/etcd@sha256:bbb"
        ]
    );
    let tags = tags_after(&facts, &decision);
    assert_eq!(tags[1].name, format!("{STREAM}-2026-01-02-040000"));
    assert_eq!(tags[1].annotations[annotations::HASH], hash());
    assert_eq!(decision.state.reason, "CreatingRelease");
}

#[test]
fn a_stream_says_why_nothing_is_cut() {
    let same = |phase: &str| with_annotation(release(10, phase), annotations::HASH, &hash());
    for (config, releases, reason, message) in [
        (
            json!({}),
            vec![same("Accepted")],
            "UpToDate",
            "has the same images and is Accepted",
        ),
        (
            json!({}),
            vec![same("Ready")],
            "UpToDate",
            "has the same images and is Ready",
        ),
        (
            json!({}),
            vec![same("Rejected")],
            "UpToDate",
            "neap release retry",
        ),
        (
            json!({}),
            vec![same("Failed")],
            "UpToDate",
            "neap release retry",
        ),
        (
            json!({"maxUnreadyReleases": 2}),
            vec![release(10, "Ready"), release(20, "Ready")],
            "TooManyUnreadyReleases",
            "2 releases have no verdict, and maxUnreadyReleases is 2",
        ),
        (
            json!({"minCreationIntervalSeconds": 3600}),
            vec![release(10, "Accepted")],
            "WaitingForInterval",
            "the next release may be cut at 2026-01-02T04:50:00Z",
        ),
        (
            json!({"endOfLife": true}),
            vec![],
            "EndOfLife",
            "nothing is created any more",
        ),
    ] {
        let facts = facts(&config, &releases);
        let (found, text) = why(&facts);
        assert_eq!(found, reason);
        assert!(text.contains(message), "{text}");
        assert!(!is_cut(&facts), "{reason}");
    }
    let creating = facts(&json!({}), &[release(1, "Pending")]);
    assert_eq!(why(&creating).0, "CreatingRelease");
}

#[test]
fn users_pause_a_stream_and_try_the_same_images_again() {
    let mut paused = facts(&json!({}), &[]);
    assert!(is_cut(&paused));
    annotate(&mut paused, annotations::PAUSED, "maintenance");
    assert_eq!(
        why(&paused),
        ("Paused".to_owned(), "maintenance".to_owned())
    );
    let rejected = with_annotation(release(10, "Rejected"), annotations::HASH, &hash());
    let same = facts(&json!({}), std::slice::from_ref(&rejected));
    assert_eq!(why(&same).0, "UpToDate");
    for (annotation, value) in [
        (annotations::PAUSED, "maintenance"),
        (annotations::MODE, "locked"),
    ] {
        for before in [facts(&json!({}), &[]), same.clone()] {
            let mut before = before;
            annotate(&mut before, annotation, value);
            assert_eq!(why(&before).0, "Paused", "{annotation}");
        }
    }
    let mut retried = facts(&json!({}), std::slice::from_ref(&rejected));
    annotate(
        &mut retried,
        annotations::RETRY,
        rejected["name"].as_str().unwrap(),
    );
    assert!(is_cut(&retried));
}

#[test]
fn a_pinned_release_of_the_same_images_is_one() {
    let kept = with_annotation(release(10, "Accepted"), annotations::KEEP, "yes");
    let same = with_annotation(kept.clone(), annotations::HASH, &hash());
    assert!(is_cut(&facts(&json!({}), &[kept])));
    assert!(!is_cut(&facts(&json!({}), &[same])));
}

#[test]
fn images_that_are_missing_or_not_imported_are_waited_for() {
    let mut empty = facts(&json!({}), &[]);
    empty.source = Arc::new(image_stream(
        "4.21-latest",
        &json!({}),
        &json!([]),
        &json!([]),
    ));
    assert_eq!(why(&empty).0, "NoImages");
    let ahead = json!([{
        "name": "cli", "generation": 2, "from": {"kind": "DockerImage", "name": "reg.example/ocp/cli:2"},
    }]);
    let mut behind = facts(&json!({}), &[]);
    let status = json!([imported("cli", "aaa")]);
    behind.source = Arc::new(image_stream("4.21-latest", &json!({}), &ahead, &status));
    assert_eq!(
        why(&behind),
        (
            "ImagesNotImported".to_owned(),
            "the tag cli of ocp/4.21-latest has not been imported yet".to_owned()
        )
    );
}

#[test]
fn a_configuration_that_cannot_be_used_is_explained_and_the_stream_keeps_its_name() {
    let large = "m".repeat(ANNOTATION_LIMIT);
    for (config, message) in [
        (
            json!({"message": large}),
            "release config must be less than 16k",
        ),
        (
            json!({"verify": {"aws": {"prowJob": {}}}}),
            "verify.aws.prowJob.name",
        ),
        (json!({"name": ""}), "name: a stream has a name"),
    ] {
        let mut facts = facts(&config, &[]);
        let known = json!({"stream": STREAM, "reason": "UpToDate", "message": ""});
        annotate(&mut facts, annotations::STREAM_STATE, &known.to_string());
        let decision = decide(&facts);
        assert_eq!(decision.state.reason, "InvalidReleaseDefinition");
        assert_eq!(decision.state.stream, STREAM);
        assert!(
            decision.state.message.contains(message),
            "{}",
            decision.state.message
        );
        let [event] = &decision.events[..] else {
            panic!("{:?}", decision.events);
        };
        assert_eq!(event.reason, "InvalidReleaseDefinition");
        let [StreamChange::UpdateStream { tags: None, .. }] = &decision.changes[..] else {
            panic!("only the state is written: {:?}", decision.changes);
        };
        let state = serde_json::to_string(&decision.state).unwrap();
        annotate(&mut facts, annotations::STREAM_STATE, &state);
        let again = decide(&facts);
        assert!(
            again.changes.is_empty() && again.events.is_empty(),
            "it is said once"
        );
    }
    let mut lost = facts(&json!({}), &[]);
    lost.target = None;
    assert_eq!(
        why(&lost),
        (
            "TargetNotFound".to_owned(),
            "the target ImageStream ocp/release does not exist".to_owned()
        )
    );
}

#[test]
fn a_clock_that_jumped_back_delays_the_next_release_until_it_has_caught_up() {
    let ahead = release(-90, "Accepted");
    let facts = facts(&json!({}), &[ahead]);
    let decision = decide(&facts);
    assert_eq!(decision.state.reason, "ClockBehind");
    assert!(
        decision
            .state
            .message
            .ends_with("may be cut at 2026-01-02T05:30:00Z, or once the tag is deleted"),
        "{}",
        decision.state.message
    );
    assert_eq!(
        decision.requeue_after,
        Some(facts.options.look_again),
        "it looks again before"
    );
}

#[test]
fn of_two_releases_in_one_second_the_second_waits_for_the_next() {
    let facts = facts(&json!({}), &[release(0, "Accepted")]);
    let decision = decide(&facts);
    assert_eq!(decision.state.reason, "WaitingForInterval");
    assert_eq!(decision.requeue_after, Some(Duration::from_secs(1)));
    assert!(!is_cut(&facts));
}

#[test]
fn a_second_look_at_unchanged_facts_writes_nothing() {
    let mut facts = facts(
        &json!({"expires": "1h"}),
        &[release(10, "Accepted"), release(20, "Rejected")],
    );
    annotate(&mut facts, annotations::PAUSED, "quiet");
    let first = decide(&facts);
    let mut target = ImageStream::clone(facts.target.as_ref().unwrap());
    target.spec.tags = tags_after(&facts, &first);
    facts.target = Some(Arc::new(target));
    let state = serde_json::to_string(&first.state).unwrap();
    annotate(&mut facts, annotations::STREAM_STATE, &state);
    let second = decide(&facts);
    assert!(second.changes.is_empty(), "{:?}", second.changes);
    assert!(second.events.is_empty(), "{:?}", second.events);
}
