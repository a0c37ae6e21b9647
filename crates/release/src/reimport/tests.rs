use std::time::Duration;

use kube::{Api, CustomResourceExt, api::PostParams};
use neap_kit::lease::Leadership;
use neap_pocket::{Options as PocketOptions, Pocket, environment::Environment};
use serde_json::{Value, json};

use super::*;
use crate::api::annotations::{CONFIG, CONFIG_REF};

fn stream(name: &str, configured: bool, tags: &[(&str, &str, &str)]) -> ImageStream {
    let spec: Vec<Value> = tags
        .iter()
        .map(|(tag, image, _)| json!({"name": tag, "from": {"kind": "DockerImage", "name": image}}))
        .collect();
    let status: Vec<Value> = tags
        .iter()
        .map(|(tag, _, status)| json!({"tag": tag, "items": [], "conditions": [{"type": "ImportSuccess", "status": status, "generation": 1}]}))
        .collect();
    let mut object = json!({
        "metadata": {"name": name, "namespace": "ocp", "resourceVersion": "7", "uid": "u"},
        "spec": {"tags": spec}, "status": {"tags": status},
    });
    if configured {
        object["metadata"]["annotations"] = json!({CONFIG: "{}"});
    }
    serde_json::from_value(object).unwrap()
}

fn failing(count: usize, registry: &str) -> Vec<FailedTag> {
    let tags = (0..count).map(|number| FailedTag {
        stream: Key::new("ocp", "4.99"),
        tag: format!("{registry}-{number}"),
        image: format!("{registry}/x:{number}"),
        registry: registry.to_owned(),
        registry_failed: false,
        attempts: None,
        since: None,
    });
    tags.collect()
}

#[test]
fn only_failed_tags_of_configured_streams_are_asked_for() {
    let tags = [
        ("bad", "r.example/a:1", "False"),
        ("good", "r.example/b:1", "True"),
    ];
    let found = failed_tags(&stream("4.99", true, &tags));
    assert_eq!(
        found.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["ocp/4.99:bad from r.example/a:1"]
    );
    let other = stream("other", false, &tags);
    assert_eq!(failed_tags(&other), []);
    assert_eq!(failed::left_out(&other), 1);
    let mut handed_over = other;
    let annotations = [(CONFIG_REF.to_owned(), "a-config-map".to_owned())];
    handed_over.metadata.annotations = Some(annotations.into());
    assert_eq!(failed_tags(&handed_over).len(), 1);
    assert_eq!(failed::left_out(&handed_over), 0);
}

#[test]
fn a_pass_is_bounded_by_number_and_by_registry() {
    let options = ReimportOptions {
        per_pass: 30,
        per_registry: 20,
        ..ReimportOptions::default()
    };
    let failed: Vec<_> = failing(50, "a.example")
        .into_iter()
        .chain(failing(50, "b.example"))
        .collect();
    let chosen = decide(&failed, &Asked::new(&options), &options, Duration::ZERO);
    let of = |registry: &str| chosen.iter().filter(|it| it.registry == registry).count();
    assert_eq!(
        (chosen.len(), of("a.example"), of("b.example")),
        (30, 20, 10)
    );
}

#[test]
fn what_keeps_failing_is_asked_for_less_often_and_others_come_first() {
    let options = ReimportOptions::default();
    let failed = failing(1, "a.example");
    let (mut asked, mut now, mut passes) = (Asked::new(&options), Duration::ZERO, Vec::new());
    for pass in 0..60 {
        asked.learn(&failed, now);
        for chosen in decide(&failed, &asked, &options, now) {
            asked.note(&chosen, now);
            passes.push(pass);
        }
        now += options.interval;
    }
    assert_eq!(passes, [0, 1, 3, 7, 15, 31]);
    let two = failing(2, "a.example");
    now += options.interval * 60;
    asked.learn(&two, now);
    let chosen = decide(&two, &asked, &options, now);
    let tags: Vec<_> = chosen.iter().map(|it| it.tag.as_str()).collect();
    assert_eq!(tags, ["a.example-1", "a.example-0"]);
    asked.learn(&[], now);
    let chosen = decide(&two, &asked, &options, now);
    assert_eq!(chosen, two, "what no longer fails is forgotten");
}

/// The same tags, which fail because their registry does.
fn unreachable(count: usize, registry: &str) -> Vec<FailedTag> {
    let tags = failing(count, registry).into_iter();
    tags.map(|tag| FailedTag {
        registry_failed: true,
        ..tag
    })
    .collect()
}

#[test]
fn a_registry_that_keeps_failing_is_asked_for_one_tag_and_less_often() {
    let options = ReimportOptions::default();
    let mut failed = unreachable(50, "down.example");
    failed.extend(failing(50, "up.example"));
    let (mut asked, mut now) = (Asked::new(&options), Duration::ZERO);
    let mut of_down = Vec::new();
    let mut of_up = 0;
    for pass in 0..30 {
        asked.learn(&failed, now);
        let chosen = decide(&failed, &asked, &options, now);
        let count = |host: &str| chosen.iter().filter(|it| it.registry == host).count();
        of_up += count("up.example");
        if count("down.example") > 0 {
            of_down.push((pass, count("down.example")));
        }
        for it in &chosen {
            asked.note(it, now);
        }
        now += options.interval;
    }
    assert_eq!(of_down, [(0, 20), (2, 1), (5, 1), (10, 1), (19, 1)]);
    assert!(of_up > 200, "{of_up}: the other registry does not wait");
    // It works again, which the tag tells that was asked for last; the others waited for the registry.
    now += options.interval * 40;
    asked.learn(&failed, now);
    let probe = decide(&failed, &asked, &options, now);
    let probe = probe.iter().find(|it| it.registry == "down.example");
    let probe = probe.unwrap().clone();
    asked.note(&probe, now);
    failed.retain(|it| *it != probe);
    now += options.interval;
    asked.learn(&failed, now);
    let chosen = decide(&failed, &asked, &options, now);
    let again = chosen.iter().filter(|it| it.registry == "down.example");
    assert_eq!(again.count(), 20);
}

#[test]
fn single_passes_ask_for_each_tag_in_turn_and_wait_as_the_status_says() {
    let options = ReimportOptions::default();
    let start: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
    let minutes = |passed: u32| start + options.interval * passed;
    let choose = |failed: &[FailedTag], now: Timestamp| {
        let asked = Asked::from_status(failed, &options, now, Duration::ZERO);
        decide(failed, &asked, &options, Duration::ZERO)
    };
    // An API server that tells only since when a tag fails: 60 tags, of which a pass asks for 20.
    let old = failing(60, "a.example").into_iter().map(|tag| FailedTag {
        since: Some(start),
        ..tag
    });
    let old: Vec<_> = old.collect();
    let mut seen = std::collections::BTreeSet::new();
    let mut passes = Vec::new();
    for pass in 0..1000 {
        let chosen = choose(&old, minutes(pass));
        if !chosen.is_empty() {
            passes.push(pass);
        }
        seen.extend(chosen.into_iter().map(|it| it.tag));
    }
    assert_eq!(passes[..7], [0, 1, 3, 7, 15, 31, 35]);
    assert_eq!(seen.len(), 60, "none waits for ever behind others");
    // Our controller counts attempts.
    let counted = |failures, minute| {
        let mut tag = failing(1, "a.example").remove(0);
        tag.attempts = Some((failures, minutes(minute)));
        [tag]
    };
    assert_eq!(choose(&counted(1, 0), start).len(), 0);
    assert_eq!(choose(&counted(1, 0), minutes(1)).len(), 1);
    assert_eq!(choose(&counted(3, 0), minutes(3)).len(), 0);
    assert_eq!(choose(&counted(3, 0), minutes(4)).len(), 1);
    let mut order = failing(3, "a.example");
    for (tag, failures) in order.iter_mut().zip([5, 2, 7]) {
        tag.attempts = Some((failures, start));
    }
    let failures: Vec<_> = choose(&order, minutes(100))
        .iter()
        .map(|it| it.attempts.unwrap().0)
        .collect();
    assert_eq!(failures, [2, 5, 7], "what failed least is first");
    let down = unreachable(30, "down.example");
    assert_eq!(choose(&down, start).len(), 1, "one finds out");
}

#[test]
fn the_annotation_keeps_other_requests_and_has_a_precondition() {
    let mut found = stream(
        "4.99",
        true,
        &[
            ("bad", "r.example/a:1", "False"),
            ("worse", "r.example/b:1", "False"),
        ],
    );
    let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
    let before = r#"{"worse": "2026-01-01T11:59:00Z", "gone": "2026-01-01T11:59:00Z"}"#;
    found
        .metadata
        .annotations
        .as_mut()
        .unwrap()
        .insert(IMPORT_REQUESTED.to_owned(), before.to_owned());
    let failed = &failed_tags(&found)[..1];
    let PlannedChange::Merge {
        metadata, patch, ..
    } = annotation(&found, failed, now)
    else {
        unreachable!()
    };
    assert_eq!(metadata.resource_version.as_deref(), Some("7"));
    let text = patch["metadata"]["annotations"][IMPORT_REQUESTED]
        .as_str()
        .unwrap();
    assert_eq!(
        text,
        r#"{"bad":"2026-01-01T12:00:00Z","worse":"2026-01-01T11:59:00Z"}"#
    );
}

#[test]
fn the_status_says_whether_a_registry_failed_and_when_it_was_tried() {
    let mut found = stream("4.99", true, &[("bad", "r.example/a:1", "False")]);
    let mut reason = |reason: &str| {
        let tag = &mut found.status.as_mut().unwrap().tags[0];
        tag.conditions[0].reason = reason.to_owned();
        failed_tags(&found).remove(0).registry_failed
    };
    for of_registry in ["RegistryUnreachable", "TooManyRequests", "InternalError"] {
        assert!(reason(of_registry), "{of_registry}");
    }
    for of_image in ["NotFound", "Unauthorized", "DigestMismatch", ""] {
        assert!(!reason(of_image), "{of_image}");
    }
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let tag = &mut found.status.as_mut().unwrap().tags[0];
    tag.import = serde_json::from_value(
        json!({"source": "r.example/a:1", "attemptedAt": "2026-01-01T12:00:00Z", "failures": 3}),
    )
    .unwrap();
    let attempts = |found: &ImageStream| failed_tags(found).remove(0).attempts;
    assert_eq!(attempts(&found), Some((3, at("2026-01-01T12:00:00Z"))));
    let asked = r#"{"bad": "2026-01-01T12:30:00Z"}"#.to_owned();
    let annotations = found.metadata.annotations.as_mut().unwrap();
    annotations.insert(IMPORT_REQUESTED.to_owned(), asked);
    assert_eq!(attempts(&found), Some((3, at("2026-01-01T12:30:00Z"))));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_the_api_server_refuses_does_not_count() {
    let pocket = Pocket::open(PocketOptions::new(Environment::simulated(7)))
        .await
        .unwrap();
    let api = Client::new(pocket.service(), "default");
    let clock = Clock::starting_at("2026-01-01T12:00:00Z".parse().unwrap());
    let definitions = Api::all(api.clone());
    definitions
        .create(&PostParams::default(), &ImageStream::crd())
        .await
        .unwrap();
    clock.sleep(Duration::from_secs(1)).await;
    let tags = [
        ("a", "r.example/a:1", "False"),
        ("b", "r.example/b:1", "False"),
    ];
    let mut bad = stream("4.99", true, &tags);
    bad.metadata.namespace = Some("default".to_owned());
    (bad.metadata.resource_version, bad.metadata.uid) = (None, None);
    let streams: Api<ImageStream> = Api::namespaced(api.clone(), "default");
    let mut created = streams.create(&PostParams::default(), &bad).await.unwrap();
    created.status = bad.status.clone();
    streams
        .replace_status("4.99", &PostParams::default(), &created)
        .await
        .unwrap();
    // A patch of a type that the server does not know.
    let unknown = |mut request: http::Request<kube::client::Body>| {
        if request.method() == http::Method::PATCH {
            let kind = http::HeaderValue::from_static("text/plain");
            request.headers_mut().insert("content-type", kind);
        }
        request
    };
    let reimporter = |api: &Client| {
        let leadership = Leadership::without_election(clock);
        let writer = Writer::new(api.clone(), "reimport", leadership, clock);
        let options = ReimportOptions {
            namespaces: vec!["default".to_owned()],
            ..ReimportOptions::default()
        };
        Reimporter::new(writer, clock, options)
    };
    let closed = tower::ServiceExt::map_request(pocket.service(), unknown);
    let closed = Client::new(closed, "default");
    let mut refused = reimporter(&closed);
    for _ in 0..2 {
        let report = refused.pass(&api).await.unwrap();
        assert_eq!((report.asked.len(), report.refused), (0, 2), "{report:?}");
        assert_eq!((report.problems.len(), report.waiting()), (1, 0));
    }
    let mut open = reimporter(&api);
    let report = open.pass(&api).await.unwrap();
    assert_eq!(report.asked.len(), 2, "{report:?}");
    let stream = streams.get("4.99").await.unwrap();
    let requests = failed::requests(&stream);
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["a", "b"]);
    let report = open.pass(&api).await.unwrap();
    assert_eq!((report.asked.len(), report.waiting()), (0, 2));
}
