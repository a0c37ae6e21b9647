//! Releases in `neap up`: the example, and what its users do about its releases.

mod release_server;

use neap_release::{image_stream::api::ImageStream, payload::Phase};
use serde_json::json;

use self::release_server::{NAMESPACE, ReleaseServer, STREAM};
use crate::{command_output::CommandOutput, skip::skip};

fn contains(output: &CommandOutput, texts: &[&str]) {
    assert_eq!(output.code, Some(0), "{output:?}");
    for text in texts {
        assert!(output.stdout.contains(text), "{text:?}: {output:?}");
    }
}

#[tokio::test]
async fn a_release_is_accepted_and_a_broken_one_rejected_with_its_reason() {
    let server = ReleaseServer::up().await;
    let accepted = server.release_in(Phase::Accepted, &[]).await;
    server.publishes(&accepted).await;
    contains(
        &server.neap(&["release", "plan", STREAM]),
        &["UpToDate", "nothing to write"],
    );
    contains(
        &server.neap(&["release", "jobs", &accepted, "-o", "name"]),
        &["job/images", "job/web"],
    );
    contains(
        &server.neap(&["release", "replay", &accepted]),
        &["is Accepted, and the recorded facts mean the same"],
    );
    contains(
        &server.neap(&["release", "shadow"]),
        &["No verdict would differ; 1 releases were compared."],
    );

    contains(
        &server.neap_anywhere(&["demo", "reject"]),
        &["is Rejected", "blocking jobs failed: web", "has no file"],
    );
    let rejected = server.release_in(Phase::Rejected, &[]).await;
    contains(
        &server.neap(&["explain", &format!("releasepayload/{rejected}")]),
        &["blocking jobs failed: web"],
    );
    assert_eq!(server.published().await.as_deref(), Some(accepted.as_str()));

    let reason = "the web operator is not needed today";
    let refused = server.neap(&["release", "accept", &rejected]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    contains(
        &server.neap(&["release", "accept", &rejected, "--reason", reason]),
        &[reason],
    );
    server.release_is(&rejected, Phase::Accepted).await;
    contains(
        &server.neap(&["release", "show", &rejected]),
        &["Override  Accepted", reason],
    );
    server.publishes(&rejected).await;
    contains(
        &server.neap(&["release", "accept", &rejected, "--clear"]),
        &["is decided by its jobs again"],
    );
    server.release_is(&rejected, Phase::Rejected).await;
    // What was published stays, and the release says so.
    let published = "4.21 still points to it";
    contains(&server.neap(&["release", "list"]), &[published]);
    contains(&server.neap(&["release", "show", &rejected]), &[published]);
    contains(
        &server.neap_anywhere(&["demo", "repair"]),
        &["is Accepted", "all 2 blocking jobs passed"],
    );
    server.stop();
}

/// The same by kubectl alone: the example is applied, a release is overridden and its Events are read.
#[tokio::test]
async fn kubectl_applies_a_stream_waits_for_its_verdict_and_overrides_it() {
    let name = "kubectl_applies_a_stream_waits_for_its_verdict_and_overrides_it";
    let Some(kubectl) = std::env::var_os("NEAP_KUBECTL") else {
        return skip(name, "NEAP_KUBECTL is not set; run cargo xtask test");
    };
    let server = ReleaseServer::empty().await;
    let run = |arguments: &[&str]| server.run(&kubectl, arguments);
    let file = server.example_file();
    contains(&run(&["apply", "-f", &file]), &["4.21-latest created"]);
    let accepted = server.release_in(Phase::Accepted, &[]).await;
    let condition = "--for=condition=PayloadAccepted";
    contains(
        &run(&["wait", condition, &format!("rp/{accepted}")]),
        &["condition met"],
    );
    server.publishes(&accepted).await;
    contains(&run(&["get", "rp"]), &["ACCEPTED", STREAM, &accepted]);
    contains(&run(&["get", "prowjobs"]), &[&format!("{accepted}-web")]);
    let reject = json!({"spec": {"payloadOverride": {"override": "Rejected", "reason": "a bug"}}});
    let patch = [
        "patch",
        "rp",
        &accepted,
        "--type=merge",
        "-p",
        &reject.to_string(),
    ];
    contains(&run(&patch), &["patched"]);
    let condition = "--for=condition=PayloadRejected";
    contains(
        &run(&["wait", condition, &format!("rp/{accepted}")]),
        &["condition met"],
    );
    let described = run(&["describe", "rp", &accepted]);
    contains(&described, &["ReleasePayloadManuallyRejected", "a bug"]);
    let of_release = format!("releasepayload/{accepted}");
    server
        .until("both verdicts are Events", async || {
            let events = run(&["events", "--for", &of_release]).stdout;
            let both = ["PayloadAccepted", "PayloadRejected"];
            both.iter().all(|it| events.contains(it)).then_some(())
        })
        .await;
    // What was published stays, and the stream says so.
    assert_eq!(server.published().await.as_deref(), Some(accepted.as_str()));
    server.stop();
}

#[tokio::test]
async fn a_stream_is_handed_over_and_back() {
    let server = ReleaseServer::up().await;
    server.release_in(Phase::Accepted, &[]).await;
    let over = server.neap(&["release", "hand-over", STREAM, "--wait", "0s"]);
    contains(
        &over,
        &["neap release controller owns releases/4.21-latest"],
    );
    contains(
        &server.neap(&["release", "plan", STREAM]),
        &["UpToDate", "nothing to write"],
    );
    contains(&server.neap_anywhere(&["demo", "reject"]), &["is Rejected"]);
    let back = server.neap(&["release", "hand-back", STREAM, "--wait", "0s"]);
    contains(
        &back,
        &["OpenShift's release-controller owns releases/4.21-latest"],
    );
    contains(&server.neap_anywhere(&["demo", "repair"]), &["is Accepted"]);
    let unknown = server.neap(&["release", "hand-over", "none", "--wait", "0s"]);
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
    server.stop();
}

#[tokio::test]
async fn a_flaky_job_passes_on_retry_upgrades_start_from_the_last_release_and_old_releases_go() {
    let server = ReleaseServer::up().await;
    let first = server.release_in(Phase::Accepted, &[]).await;
    // It passes if it is tried again.
    let flaky = "case \"$PROW_JOB_ID\" in *-1) exit 0;; *) exit 1;; esac";
    let upgrade = "test \"$RELEASE_IMAGE_INITIAL\" != \"$RELEASE_IMAGE_LATEST\"";
    server
        .add_jobs(&[("periodic-flaky", flaky), ("periodic-upgrade", upgrade)])
        .await;
    server.configure(&json!({
        "name": STREAM, "to": "release", "maxUnreadyReleases": 1, "expires": "1s",
        "verify": {
            "flaky": {"prowJob": {"name": "periodic-flaky"}, "maxRetries": 1},
            "upgrade": {"prowJob": {"name": "periodic-upgrade"}, "upgrade": true},
        },
    }));
    server.change_image(0).await;
    let second = server.release_in(Phase::Accepted, &[&first]).await;
    let jobs = server.neap(&["release", "jobs", &second]);
    contains(
        &jobs,
        &[
            &format!("{second}-flaky "),
            &format!("{second}-flaky-1"),
            &format!("{second}-upgrade"),
        ],
    );
    let mut known = vec![first, second];
    for change in 1..6 {
        server.change_image(change).await;
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        known.push(server.release_in(Phase::Accepted, &names).await);
    }
    // The newest five stay, and the one that is still published.
    known.remove(1);
    assert_eq!(server.kept(6).await, known);
    server.stop();
}

#[tokio::test]
async fn a_tag_of_a_stable_stream_becomes_a_release_under_its_own_name() {
    let server = ReleaseServer::up().await;
    let candidate = server.release_in(Phase::Accepted, &[]).await;
    let image = format!("{}/{NAMESPACE}/release:{candidate}", server.registry());
    let config = json!({
        "name": "4-stable", "as": "Stable",
        "verify": {"images": {"prowJob": {"name": "periodic-verify"}}},
    });
    server
        .create(&json!({
            "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
            "metadata": {
                "name": "stable", "namespace": NAMESPACE,
                "annotations": {"release.openshift.io/config": config.to_string()},
            },
            "spec": {"tags": [{"name": "4.21.0", "from": {"kind": "DockerImage", "name": image}}]},
        }))
        .await;
    server.release_is("4.21.0", Phase::Accepted).await;
    let mirror: ImageStream = server.get("4.21.0").await;
    let components: Vec<_> = mirror
        .spec
        .tags
        .iter()
        .map(|tag| tag.name.as_str())
        .collect();
    assert!(components.contains(&"web-operator"), "{components:?}");
    let assembled = format!("{}/{NAMESPACE}/stable:4.21.0", server.registry());
    contains(
        &server.neap_anywhere(&["release", "info", &assembled]),
        &["4.21.0"],
    );
    server.stop();
}
