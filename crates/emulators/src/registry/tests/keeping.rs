//! What is kept in a folder, over restarts, and what is collected.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use http::Method;
use serde_json::json;

use super::{Digest, MAX, Settings, Stage, body_of, clock, image};
use crate::registry::{Collected, Registry};

async fn in_folder(folder: &tempfile::TempDir) -> Stage {
    let clock = clock();
    let registry = Registry::in_folder(Settings::default(), clock, folder.path()).await;
    Stage::of(registry.unwrap(), clock)
}

#[tokio::test]
async fn a_registry_in_a_folder_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = in_folder(&folder).await;
    let digest = first.push_image("ocp/release", "v1").await;
    first.push_image("ocp/release", "gone").await;
    first.push_image("ocp/release/nested", "v1").await;
    assert_eq!(first.delete("/v2/ocp/release/manifests/gone").await, 202);
    let begun = first.post("/v2/ocp/release/blobs/uploads/").await;
    let place = begun.header("location").unwrap().to_owned();
    let request = first.request(Method::PATCH, &place).stream(body_of("half"));
    request.send().await.unwrap();
    let size = first.system().size();
    drop(first);

    let second = in_folder(&folder).await;
    assert_eq!(
        second.system().size(),
        size - 4,
        "the upload was left unfinished"
    );
    assert_eq!(second.tags("ocp/release").await, ["v1"]);
    assert_eq!(second.tags("ocp/release/nested").await, ["v1"]);
    let pulled = second.get("/v2/ocp/release/manifests/v1").await;
    assert_eq!(Digest::of(&pulled.body), digest);
    let layer = Digest::of(b"layer");
    let blob = second.get(&format!("/v2/ocp/release/blobs/{layer}")).await;
    assert_eq!(blob.body, "layer");
    let request = second.request(Method::GET, &format!("/v2/ocp/release/blobs/{layer}"));
    let part = request
        .header("range", "bytes=1-2")
        .fetch(MAX)
        .await
        .unwrap();
    assert_eq!(part.body, "ay");
    assert_eq!(second.get(&place).await.status, 404);
    let by_digest = format!("/v2/ocp/release/manifests/{digest}");
    assert_eq!(second.delete(&by_digest).await, 202);
    drop(second);
    let third = in_folder(&folder).await;
    assert!(third.tags("ocp/release").await.is_empty());
}

#[tokio::test]
async fn what_has_lost_its_content_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let digest = {
        let stage = in_folder(&folder).await;
        stage.push_image("a", "v1").await
    };
    let (beginning, _) = digest.hex().split_at(2);
    let file = folder
        .path()
        .join("blobs/sha256")
        .join(beginning)
        .join(digest.hex());
    std::fs::remove_file(file).unwrap();
    let stage = in_folder(&folder).await;
    assert_eq!(stage.get("/v2/a/manifests/v1").await.status, 404);
    stage.push_image("a", "v1").await;
    assert_eq!(stage.get("/v2/a/manifests/v1").await.status, 200);
}

#[tokio::test]
async fn a_long_blob_goes_through_a_folder_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let stage = in_folder(&folder).await;
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let digest = Digest::of(&content);
    let begun = stage.post("/v2/a/blobs/uploads/").await;
    let place = begun.header("location").unwrap().to_owned();
    let pushed = stage
        .put(&format!("{place}?digest={digest}"), content.clone())
        .await;
    assert_eq!(pushed.status, 201);
    let path = format!("/v2/a/blobs/{digest}");
    let mut blob = stage.request(Method::GET, &path).send().await.unwrap();
    let (mut read, mut parts) = (Vec::new(), 0);
    while let Some(part) = blob.chunk().await.unwrap() {
        assert!(part.len() <= 128 << 10, "{}", part.len());
        read.extend_from_slice(&part);
        parts += 1;
    }
    assert!(read == content && parts > 10);
}

#[tokio::test(start_paused = true)]
async fn only_what_no_manifest_names_is_collected_and_only_after_a_while() {
    let stage = Stage::open();
    stage.push_image("a", "v1").await;
    let orphan = stage.push_blob("a", b"orphan").await;
    let registry = stage.system();
    assert_eq!(registry.collect().await.unwrap(), Collected::default());
    stage.clock.sleep(Duration::from_hours(5)).await;
    let young = stage.push_blob("a", b"young").await;
    stage.clock.sleep(Duration::from_hours(2)).await;
    let collected = registry.collect().await.unwrap();
    let expected = Collected {
        unlinked: 1,
        contents: 1,
        bytes: 6,
        uploads: 0,
    };
    assert_eq!(collected, expected);
    let status = async |digest: &Digest| stage.get(&format!("/v2/a/blobs/{digest}")).await.status;
    assert_eq!(status(&orphan).await, 404);
    assert_eq!(status(&young).await, 200);
    assert_eq!(status(&Digest::of(b"layer")).await, 200);

    // A deleted manifest frees what it named, once the blobs are old.
    let digest = super::digest_of(&image(&Digest::of(b"{}"), &Digest::of(b"layer")));
    stage.delete(&format!("/v2/a/manifests/{digest}")).await;
    stage.clock.sleep(Duration::from_hours(7)).await;
    registry.collect().await.unwrap();
    assert_eq!(registry.size(), 0);
    assert!(registry.repositories().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_blob_that_a_push_has_asked_for_is_kept_for_it() {
    let stage = Stage::open();
    let layer = stage.push_blob("a", b"layer").await;
    stage.clock.sleep(Duration::from_hours(7)).await;
    // The push finds the layer, so that it does not send it.
    assert_eq!(
        stage.head(&format!("/v2/a/blobs/{layer}")).await.status,
        200
    );
    stage.system().collect().await.unwrap();
    let config = stage.push_blob("a", b"{}").await;
    let pushed = stage.put_manifest("a", "v1", &image(&config, &layer)).await;
    assert_eq!(pushed.status, 201);
}

#[tokio::test(start_paused = true)]
async fn an_upload_without_data_is_given_up() {
    let stage = Stage::open();
    let begun = stage.post("/v2/a/blobs/uploads/").await;
    let place = begun.header("location").unwrap();
    let append = || {
        stage
            .request(Method::PATCH, place)
            .stream(body_of("x"))
            .send()
    };
    append().await.unwrap();
    stage.clock.sleep(Duration::from_hours(4)).await;
    append().await.unwrap();
    stage.clock.sleep(Duration::from_hours(4)).await;
    assert_eq!(stage.system().collect().await.unwrap().uploads, 0);
    stage.clock.sleep(Duration::from_hours(4)).await;
    assert_eq!(stage.system().collect().await.unwrap().uploads, 1);
    assert_eq!(stage.get(place).await.status, 404);
    assert_eq!(stage.system().size(), 0);
}

/// Carries out a request until it has waited this number of times; then its client disconnects.
async fn disconnect_after(waits: u32, request: impl Future) {
    let mut request = pin!(request);
    let mut left = waits;
    poll_fn(|context| {
        if left == 0 || request.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        left -= 1;
        Poll::Pending
    })
    .await;
}

#[tokio::test]
async fn a_client_that_disconnects_keeps_no_manifest_from_being_pushed() {
    let folder = tempfile::tempdir().unwrap();
    let stage = in_folder(&folder).await;
    let config = stage.push_blob("a", b"{}").await;
    let layer = stage.push_blob("a", b"layer").await;
    let mut expected = stage.system().size();
    for waits in 0..20 {
        let mut manifest = image(&config, &layer);
        manifest["annotations"] = json!({"number": waits.to_string()});
        disconnect_after(waits, stage.put_manifest("a", "v1", &manifest)).await;
        let pushed = stage.put_manifest("a", "v1", &manifest).await;
        assert_eq!(pushed.status, 201, "after {waits}: {pushed:?}");
        expected += manifest.to_string().len() as u64;
        assert_eq!(stage.system().size(), expected, "after {waits}");
    }
}
