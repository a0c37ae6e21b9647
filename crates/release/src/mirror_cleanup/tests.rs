use neap_emulators::{
    fault_book::CallMatcher,
    network::Network,
    registry::{Registry, Settings},
    system::Emulator,
};
use neap_kit::{
    client::{Client, Fault, Refusal},
    clock::Clock,
};
use serde_json::json;

use super::*;
use crate::{
    oci::{client::Options as ClientOptions, credentials::Credentials},
    payload_image::sample,
};

fn stream(name: &str, config: &str, tags: &[&str]) -> ImageStream {
    let tags: Vec<_> = tags
        .iter()
        .map(|tag| json!({"tag": tag, "items": []}))
        .collect();
    let object = json!({"metadata": {"name": name, "namespace": "ocp", "annotations": {CONFIG: config}}, "spec": {}, "status": {"tags": tags}});
    serde_json::from_value(object).unwrap()
}

const STABLE: &str = r#"{"name": "4-stable", "as": "Stable", "alternateImageRepository": "reg.example.com/mirror/release"}"#;

#[test]
fn tags_of_stable_streams_are_kept_and_unreadable_streams_stop_everything() {
    let found = scope(&[
        stream("release", STABLE, &["4.99.0"]),
        stream("plain", r#"{"name": "x", "to": "y"}"#, &["other"]),
    ]);
    assert_eq!(found.valid, BTreeSet::from(["4.99.0".to_owned()]));
    assert_eq!(
        found.repositories,
        BTreeSet::from(["reg.example.com/mirror/release".to_owned()])
    );
    assert_eq!(scope(&[stream("broken", "{", &[])]).unreadable.len(), 1);
}

#[test]
fn only_old_images_without_a_stream_expire() {
    let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
    let valid = BTreeSet::from(["kept".to_owned()]);
    let options = CleanupOptions::default();
    let old = Some("2026-01-01T00:00:00Z".parse().unwrap());
    let young = Some("2026-05-20T00:00:00Z".parse().unwrap());
    assert!(is_expired("gone", old, &valid, &options, now));
    assert!(!is_expired("kept", old, &valid, &options, now));
    assert!(!is_expired("gone", young, &valid, &options, now));
    assert!(!is_expired("gone", None, &valid, &options, now));
}

#[tokio::test(start_paused = true)]
async fn a_pass_deletes_what_expired_up_to_its_limit_and_leaves_failing_registries_alone() {
    let clock = Clock::starting_at("2026-06-01T00:00:00Z".parse().unwrap());
    let registry = Emulator::new(Registry::in_memory(Settings::default(), clock), clock);
    let network = Network::default();
    network.mount("reg.example.com", registry.transport());
    let http = Client::builder("registry", clock)
        .transport(network.transport())
        .build()
        .unwrap();
    let client = RegistryClient::new(http, Credentials::none(), ClientOptions::default());
    let built = sample::release().remove(1).build().unwrap();
    for tag in ["4.99.0", "4.98.0", "4.97.0", "4.96.0"] {
        let target: ImageRef = format!("reg.example.com/mirror/release:{tag}")
            .parse()
            .unwrap();
        sample::push(&client, &built, &target).await.unwrap();
    }
    let repository: ImageRef = "reg.example.com/mirror/release".parse().unwrap();
    let wanted = scope(&[stream("release", STABLE, &["4.99.0"])]);
    let dry = CleanupOptions {
        dry_run: true,
        ..CleanupOptions::default()
    };
    assert_eq!(pass(&client, &wanted, &dry).await.deleted.len(), 3);
    let two = CleanupOptions {
        per_pass: 2,
        ..CleanupOptions::default()
    };
    let report = pass(&client, &wanted, &two).await;
    assert!(report.limited && report.deleted.len() == 2, "{report:?}");
    assert_eq!(client.tags(&repository).await.unwrap().len(), 2);
    let refusal = Refusal {
        status: http::StatusCode::TOO_MANY_REQUESTS,
        retry_after: Some(3600),
    };
    registry.faults().inject(
        CallMatcher::path("/v2/mirror/release/manifests/*").times(1),
        Fault::Refused(refusal),
    );
    let report = pass(&client, &wanted, &CleanupOptions::default()).await;
    assert!(
        report.deleted.is_empty() && report.problems.len() == 1,
        "{report:?}"
    );
    assert_eq!(registry.faults().unused(), [""; 0]);
    clock.sleep(Duration::from_hours(2)).await;
    let report = pass(&client, &wanted, &CleanupOptions::default()).await;
    assert_eq!(report.deleted, ["reg.example.com/mirror/release:4.98.0"]);
    assert_eq!(
        client.tags(&repository).await.unwrap(),
        ["4.99.0"],
        "the image that they shared is still there"
    );
    client
        .manifest(&repository.with_tag("4.99.0").unwrap())
        .await
        .unwrap();
}
