//! Both controllers of releases on a real kube-apiserver: `cargo xtask streams`.
//!
//! These tests need `NEAP_RELEASE_SERVER`, the kubeconfig of a disposable server without controllers: the tests do
//! what Jobs and Prow would do. Each has a namespace and a process of its own.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "this is a test, and its controllers are a process"
)]

mod server;

use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::api::{ListParams, Patch, PatchParams};
use neap_release::{
    api::{ProwJob, ReleasePayload, annotations},
    image_stream::api::ImageStream,
    payload::Phase,
    replay::replay,
};
use serde_json::{Value, json};

use self::server::{Releases, SOURCE, STREAM, imported};

#[tokio::test]
async fn a_release_is_accepted_and_published_and_at_rest_nothing_is_written() {
    let server = Releases::start("accepted", &["e2e-aws"]).await;
    server
        .declare_nightly(json!({
            "verify": {"aws": {"prowJob": {"name": "e2e-aws"}, "maxRetries": 1}},
            "publish": {"latest": {"tagRef": {"name": "4.21"}}},
        }))
        .await;
    let name = server.next_release(&[]).await;
    server.end_job(&name).await;
    server.end_run(&format!("{name}-aws"), "failure").await;
    server.end_run(&format!("{name}-aws-1"), "success").await;
    server.is(&name, Phase::Accepted).await;
    server
        .until("it is published", async || {
            let tags = server.tags().await;
            let published = tags.into_iter().find(|(tag, _)| tag == "4.21")?;
            (published.1.as_deref() == Some(&*name)).then_some(())
        })
        .await;
    let payload = server.api::<ReleasePayload>().get(&name).await.unwrap();
    assert!(replay(&payload).holds());
    // The last writes follow the publication, later where the server is busy with other tests.
    server
        .until("it is at rest", async || {
            let before = server.versions().await;
            server.clock.sleep(Duration::from_secs(3)).await;
            (server.versions().await == before).then_some(())
        })
        .await;
    let before = server.versions().await;
    server.clock.sleep(Duration::from_secs(10)).await;
    assert_eq!(server.versions().await, before);
}

#[tokio::test]
async fn a_release_is_rejected_overridden_and_its_events_say_so() {
    let server = Releases::start("rejected", &["e2e-aws"]).await;
    let verify = json!({"verify": {"aws": {"prowJob": {"name": "e2e-aws"}}}});
    server.declare_nightly(verify).await;
    let name = server.next_release(&[]).await;
    server.end_job(&name).await;
    server.end_run(&format!("{name}-aws"), "failure").await;
    server.is(&name, Phase::Rejected).await;
    let payloads = server.api::<ReleasePayload>();
    let decision = json!({"override": "Accepted", "reason": "it is known"});
    let patch = Patch::Merge(json!({"spec": {"payloadOverride": decision}}));
    payloads
        .patch(&name, &PatchParams::default(), &patch)
        .await
        .unwrap();
    server.is(&name, Phase::Accepted).await;
    let reasons = async || {
        let events = server
            .api::<Event>()
            .list(&ListParams::default())
            .await
            .unwrap();
        let reasons = events.items.into_iter().filter_map(|event| event.reason);
        let reasons: Vec<_> = reasons.collect();
        let both = ["PayloadRejected", "PayloadAccepted"];
        both.iter()
            .all(|one| reasons.iter().any(|it| it == one))
            .then_some(())
    };
    server.until("both verdicts are Events", reasons).await;
    let shown = server.neap(&["release", "show", &name]);
    assert!(shown.contains("Override  Accepted: it is known"), "{shown}");
    server.neap(&["release", "pause", STREAM, "--reason", "a freeze"]);
    server.neap(&["release", "pause", STREAM, "--resume"]);
    let told = async || {
        let parameters = ListParams::default();
        let events = server.api::<Event>().list(&parameters).await.unwrap();
        let reasons = events.items.into_iter().filter_map(|event| event.reason);
        let reasons: Vec<_> = reasons.collect();
        ["PayloadOverridden", "StreamPaused", "StreamResumed"]
            .iter()
            .all(|one| reasons.iter().any(|it| it == one))
            .then_some(())
    };
    server.until("each act of a user is an Event", told).await;
    // What the definition forbids.
    let source = json!({"payloadVerificationDataSource": "ImageStreamTagAnnotation"});
    let patch = Patch::Merge(json!({"spec": {"payloadVerificationConfig": source}}));
    let refused = payloads
        .patch(&name, &PatchParams::default(), &patch)
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("immutable"), "{refused}");
}

#[tokio::test]
async fn users_change_a_target_while_releases_are_cut() {
    let server = Releases::start("changed", &[]).await;
    server
        .declare_nightly(json!({"publish": {"latest": {"tagRef": {"name": "4.21"}}}}))
        .await;
    let streams = server.api::<ImageStream>();
    let mut known: Vec<String> = Vec::new();
    for number in 2..7 {
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        let name = server.next_release(&names).await;
        for note in 0..20 {
            let notes = json!({"example.com/note": format!("{number}-{note}")});
            let patch = Patch::Merge(json!({"metadata": {"annotations": notes}}));
            for stream in ["release", SOURCE] {
                streams
                    .patch(stream, &PatchParams::default(), &patch)
                    .await
                    .unwrap();
            }
        }
        server.end_job(&name).await;
        server.is(&name, Phase::Accepted).await;
        known.push(name);
        server.new_image(number).await;
    }
    let tags = server.tags().await;
    let names: Vec<_> = tags.iter().map(|(name, _)| name.clone()).collect();
    assert!(
        known.iter().all(|name| names.contains(name)),
        "{names:?} {known:?}"
    );
    let target = streams.get("release").await.unwrap();
    let all = target.metadata.annotations.unwrap();
    assert_eq!(all["example.com/note"], "6-19", "what users write stays");
}

#[tokio::test]
async fn a_target_that_the_server_refuses_as_too_large_is_told() {
    let server = Releases::start("large", &[]).await;
    let notes = |count: usize| {
        let tag = |at: usize| json!({"name": format!("note-{at}"), "annotations": {"example.com/note": "n".repeat(15_000)}});
        (0..count).map(tag).collect::<Vec<_>>()
    };
    server.declare_nightly(json!({})).await;
    let first = server.next_release(&[]).await;
    server.end_job(&first).await;
    server.is(&first, Phase::Accepted).await;
    let streams = server.api::<ImageStream>();
    let target = streams.get("release").await.unwrap();
    let kept = serde_json::to_value(&target.spec.tags).unwrap();
    // As large as it can be: each tag that does not fit is left out.
    let mut count = 110;
    loop {
        let mut tags = kept.as_array().unwrap().clone();
        tags.extend(notes(count));
        let patch = Patch::Merge(json!({"spec": {"tags": tags}}));
        if streams
            .patch("release", &PatchParams::default(), &patch)
            .await
            .is_ok()
        {
            break;
        }
        count -= 1;
        assert!(count > 10, "the server refuses small objects");
    }
    let fill = async |bytes: usize| {
        let padding = json!({"example.com/padding": "p".repeat(bytes)});
        let patch = Patch::Merge(json!({"metadata": {"annotations": padding}}));
        streams
            .patch("release", &PatchParams::default(), &patch)
            .await
            .is_ok()
    };
    let mut padding = 15_000;
    while !fill(padding).await {
        padding -= 50;
    }
    server.new_image(2).await;
    let told = async || {
        let events = server
            .api::<Event>()
            .list(&ListParams::default())
            .await
            .unwrap();
        let mut events = events.items.into_iter();
        events
            .find(|event| event.reason.as_deref() == Some("WriteRefused"))?
            .message
    };
    let message = server.until("the refusal is an Event", told).await;
    assert!(
        message.ends_with("remove tags that are not needed, or set expires"),
        "{message}"
    );
    server.clock.sleep(Duration::from_secs(10)).await;
    let all = streams.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(all.len(), 3, "no attempt leaves a mirror");
    let patch = Patch::Merge(json!({"spec": {"tags": kept}}));
    streams
        .patch("release", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let second = server.next_release(&[&first]).await;
    server.end_job(&second).await;
    server.is(&second, Phase::Accepted).await;
}

#[tokio::test]
async fn tags_of_a_stable_stream_are_adopted() {
    let server = Releases::start("stable", &["e2e-aws"]).await;
    let config = json!({
        "name": "4-stable", "as": "Stable", "verify": {"aws": {"prowJob": {"name": "e2e-aws"}}},
    });
    // What its image is called was decided before; there is no registry to ask.
    let tag = json!({
        "name": "4.21.0", "from": {"kind": "DockerImage", "name": "reg.example/ocp/release:4.21.0"},
        "annotations": {annotations::REWRITE: "false"},
    });
    let stream: Value = json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
        "metadata": {"name": "release", "annotations": {annotations::CONFIG: config.to_string()}},
        "spec": {"tags": [tag]}, "status": {"tags": [imported("4.21.0", 1)]},
    });
    server.declare(stream).await;
    let name = server.next_release(&[]).await;
    assert_eq!(name, "4.21.0");
    server.end_job(&name).await;
    server.end_run("4.21.0-aws", "success").await;
    server.is("4.21.0", Phase::Accepted).await;
}

#[tokio::test]
async fn accepted_releases_expire_and_the_newest_five_stay() {
    let server = Releases::start("expired", &[]).await;
    server.declare_nightly(json!({"expires": "1s"})).await;
    let mut known: Vec<String> = Vec::new();
    for number in 2..9 {
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        let name = server.next_release(&names).await;
        server.end_job(&name).await;
        server.is(&name, Phase::Accepted).await;
        known.push(name);
        if known.len() < 7 {
            server.new_image(number).await;
        }
    }
    let kept = known.split_off(2);
    server
        .until("the oldest two are removed", async || {
            let tags = server.tags().await;
            let names: Vec<_> = tags.into_iter().map(|(name, _)| name).collect();
            (names == kept).then_some(())
        })
        .await;
}

#[tokio::test]
async fn an_upgrade_starts_from_the_release_before_and_the_first_is_accepted_without() {
    let server = Releases::start("upgraded", &["e2e-upgrade"]).await;
    let upgrade = json!({"prowJob": {"name": "e2e-upgrade"}, "upgrade": true});
    server
        .declare_nightly(json!({"verify": {"upgrade": upgrade}}))
        .await;
    let first = server.next_release(&[]).await;
    server.end_job(&first).await;
    server.is(&first, Phase::Accepted).await;
    let shown = server.neap(&["release", "show", &first]);
    let why = "job upgrade: no accepted release matches";
    assert!(shown.contains(why), "{shown}");
    server.new_image(2).await;
    let second = server.next_release(&[&first]).await;
    server.end_job(&second).await;
    let run = format!("{second}-upgrade");
    server.end_run(&run, "success").await;
    server.is(&second, Phase::Accepted).await;
    let run = server.api::<ProwJob>().get(&run).await.unwrap();
    let from = &run.metadata.annotations.unwrap()[annotations::FROM_TAG];
    assert_eq!(*from, first);
}

#[tokio::test]
async fn a_stream_is_handed_over_and_back_and_only_its_owner_cuts_releases() {
    let server = Releases::start_with("handed", &[], &["--handed-over-only"]).await;
    server.declare_nightly(json!({})).await;
    let hand_over = ["release", "hand-over", STREAM, "--wait", "1s"];
    let printed = server.neap(&hand_over);
    assert!(
        printed.contains("neap release controller owns"),
        "{printed}"
    );
    let first = server.next_release(&[]).await;
    server.end_job(&first).await;
    server.is(&first, Phase::Accepted).await;
    let printed = server.neap(&["release", "hand-back", STREAM, "--wait", "1s"]);
    assert!(
        printed.contains("OpenShift's release-controller owns"),
        "{printed}"
    );
    let source = server.api::<ImageStream>().get(SOURCE).await.unwrap();
    let all = source.metadata.annotations.unwrap();
    assert!(all.contains_key(annotations::CONFIG), "{all:?}");
    // Not ours any more: these images are released only after the stream is ours again, with those that follow.
    server.new_image(2).await;
    server.clock.sleep(Duration::from_secs(5)).await;
    server.new_image(3).await;
    server.neap(&hand_over);
    let second = server.next_release(&[&first]).await;
    server.end_job(&second).await;
    server.is(&second, Phase::Accepted).await;
    assert_eq!(server.tags().await.len(), 2, "nothing was cut in between");
}
