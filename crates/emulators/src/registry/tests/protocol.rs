use http::Method;
use serde_json::{Value, json};

use super::{
    Digest, MAX, OCI_INDEX, OCI_MANIFEST, Settings, Stage, body_of, code, descriptor, digest_of,
    image,
};

#[tokio::test(start_paused = true)]
async fn an_image_is_pulled_byte_for_byte_as_it_was_pushed() {
    let stage = Stage::open();
    let digest = stage.push_image("ocp/release", "4.18.0").await;
    for reference in ["4.18.0".to_owned(), digest.to_string()] {
        let path = format!("/v2/ocp/release/manifests/{reference}");
        let pulled = stage.get(&path).await.success().unwrap();
        assert_eq!(Digest::of(&pulled.body), digest);
        assert_eq!(pulled.header("content-type"), Some(OCI_MANIFEST));
        let shown = pulled.header("docker-content-digest").unwrap();
        assert_eq!(shown, digest.to_string());
        let head = stage.head(&path).await;
        assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
        let length = pulled.body.len().to_string();
        assert_eq!(head.header("content-length"), Some(length.as_str()));
    }
    let layer = Digest::of(b"layer");
    let blob = stage.get(&format!("/v2/ocp/release/blobs/{layer}")).await;
    assert_eq!(blob.body, "layer");
    let head = stage.head(&format!("/v2/ocp/release/blobs/{layer}")).await;
    assert_eq!(head.header("content-length"), Some("5"));
}

#[tokio::test(start_paused = true)]
async fn chunks_follow_one_another_and_may_be_resumed() {
    let stage = Stage::open();
    let begun = stage.post("/v2/a/blobs/uploads/").await;
    let place = begun.header("location").unwrap().to_owned();
    let patch = |range: &'static str, body: &'static str| {
        let request = stage.request(Method::PATCH, &place).body(body);
        request.header("content-range", range).fetch(MAX)
    };
    let first = patch("0-3", "0123").await.unwrap();
    assert_eq!(first.status, 202);
    assert_eq!(first.header("range"), Some("0-3"));
    for wrong in ["0-3", "5-8", "4-99", "x", "7-4"] {
        let refused = patch(wrong, "4567").await.unwrap();
        assert_eq!(refused.status, 416, "{wrong}");
        assert_eq!(refused.header("range").unwrap_or("0-3"), "0-3", "{wrong}");
    }
    let status = stage.get(&place).await;
    assert_eq!(status.status, 204);
    assert_eq!(status.header("range"), Some("0-3"));
    let second = patch("4-7", "4567").await.unwrap();
    assert_eq!(second.header("range"), Some("0-7"));
    let digest = Digest::of(b"0123456789");
    let done = stage.put(&format!("{place}?digest={digest}"), "89").await;
    assert_eq!(done.status, 201, "{done:?}");
    let blob = stage.get(&format!("/v2/a/blobs/{digest}")).await;
    assert_eq!(blob.body, "0123456789");
    let again = stage.get(&place).await;
    assert_eq!(
        (again.status.as_u16(), code(&again).as_str()),
        (404, "BLOB_UPLOAD_UNKNOWN")
    );
}

#[tokio::test(start_paused = true)]
async fn a_blob_is_pushed_in_one_request() {
    let stage = Stage::open();
    let digest = Digest::of(b"abc");
    let path = format!("/v2/a/blobs/uploads/?digest={digest}");
    let request = stage.request(Method::POST, &path);
    let pushed = request.body("abc").fetch(MAX).await.unwrap();
    assert_eq!(pushed.status, 201);
    let place = pushed.header("location").unwrap();
    assert_eq!(stage.get(place).await.body, "abc");
    let wrong = format!("/v2/a/blobs/uploads/?digest={}", Digest::of(b"x"));
    let refused = stage.request(Method::POST, &wrong).body("abc");
    let refused = refused.fetch(MAX).await.unwrap();
    assert_eq!(
        (refused.status.as_u16(), code(&refused).as_str()),
        (400, "DIGEST_INVALID")
    );
}

#[tokio::test(start_paused = true)]
async fn a_blob_with_another_digest_is_not_stored() {
    let stage = Stage::open();
    let digest = Digest::of(b"expected");
    let begun = stage.post("/v2/a/blobs/uploads/").await;
    let place = begun.header("location").unwrap();
    let refused = stage
        .put(&format!("{place}?digest={digest}"), "other")
        .await;
    assert_eq!(
        (refused.status.as_u16(), code(&refused).as_str()),
        (400, "DIGEST_INVALID")
    );
    for invalid in ["", "?digest=sha256:12", "?digest=md5:00"] {
        let begun = stage.post("/v2/a/blobs/uploads/").await;
        let place = begun.header("location").unwrap();
        let refused = stage.put(&format!("{place}{invalid}"), "x").await;
        assert_eq!(code(&refused), "DIGEST_INVALID", "{invalid}");
    }
    let missing = stage.get(&format!("/v2/a/blobs/{digest}")).await;
    assert_eq!(
        (missing.status.as_u16(), code(&missing).as_str()),
        (404, "BLOB_UNKNOWN")
    );
}

#[tokio::test(start_paused = true)]
async fn sha512_is_a_digest_too() {
    let stage = Stage::open();
    let begun = stage.post("/v2/a/blobs/uploads/").await;
    let place = begun.header("location").unwrap();
    // printf abc | sha512sum
    let digest = "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                  2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";
    let pushed = stage.put(&format!("{place}?digest={digest}"), "abc").await;
    assert_eq!(pushed.status, 201);
    assert_eq!(
        stage.get(&format!("/v2/a/blobs/{digest}")).await.body,
        "abc"
    );
}

#[tokio::test(start_paused = true)]
async fn parts_of_a_blob_can_be_asked_for() {
    let stage = Stage::open();
    let digest = stage.push_blob("a", b"0123456789").await;
    let path = format!("/v2/a/blobs/{digest}");
    let part = |range: &'static str| stage.request(Method::GET, &path).header("range", range);
    let middle = part("bytes=2-4").fetch(MAX).await.unwrap();
    assert_eq!((middle.status.as_u16(), &*middle.body), (206, &b"234"[..]));
    assert_eq!(middle.header("content-range"), Some("bytes 2-4/10"));
    let end = part("bytes=7-").fetch(MAX).await.unwrap();
    assert_eq!(end.body, "789");
    let beyond = part("bytes=10-").fetch(MAX).await.unwrap();
    assert_eq!(beyond.status, 416);
    assert_eq!(beyond.header("content-range"), Some("bytes */10"));
}

#[tokio::test(start_paused = true)]
async fn a_blob_is_mounted_from_another_repository_or_uploaded() {
    let stage = Stage::open();
    let digest = stage.push_blob("base", b"shared").await;
    let mounted = stage
        .post(&format!("/v2/app/blobs/uploads/?mount={digest}&from=base"))
        .await;
    assert_eq!(mounted.status, 201);
    assert_eq!(
        stage.get(&format!("/v2/app/blobs/{digest}")).await.body,
        "shared"
    );
    assert_eq!(stage.system().size(), 6, "the content exists once");
    let other = Digest::of(b"other");
    for query in [
        format!("mount={other}&from=base"),
        format!("mount={digest}&from=nowhere"),
        format!("mount={digest}"),
    ] {
        let begun = stage.post(&format!("/v2/new/blobs/uploads/?{query}")).await;
        assert_eq!(begun.status, 202, "{query}");
        assert!(begun.header("location").is_some());
    }
    assert_eq!(
        stage.get(&format!("/v2/new/blobs/{digest}")).await.status,
        404
    );
}

#[tokio::test(start_paused = true)]
async fn an_upload_can_be_cancelled() {
    let stage = Stage::open();
    let begun = stage.post("/v2/a/blobs/uploads/").await;
    let place = begun.header("location").unwrap();
    let request = stage.request(Method::PATCH, place).stream(body_of("abc"));
    assert_eq!(request.send().await.unwrap().status(), 202);
    assert_eq!(stage.system().size(), 3);
    assert_eq!(stage.delete(place).await, 204);
    assert_eq!(stage.system().size(), 0);
    assert_eq!(stage.delete(place).await, 404);
    // The upload of another repository is not found by its id.
    let begun = stage.post("/v2/a/blobs/uploads/").await;
    let place = begun
        .header("location")
        .unwrap()
        .replace("/v2/a/", "/v2/b/");
    assert_eq!(stage.get(&place).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_manifest_is_stored_only_if_what_it_names_is_there() {
    let stage = Stage::open();
    let config = stage.push_blob("a", b"{}").await;
    let layer = Digest::of(b"layer");
    let refused = stage.put_manifest("a", "v1", &image(&config, &layer)).await;
    assert_eq!(
        (refused.status.as_u16(), code(&refused).as_str()),
        (404, "MANIFEST_BLOB_UNKNOWN")
    );
    assert!(String::from_utf8_lossy(&refused.body).contains(layer.hex()));
    let child = digest_of(&image(&config, &layer));
    let index = json!({
        "schemaVersion": 2,
        "mediaType": OCI_INDEX,
        "manifests": [descriptor(OCI_MANIFEST, &child, 1)],
    });
    let refused = stage.put_manifest("a", "v1", &index).await;
    assert_eq!(code(&refused), "MANIFEST_BLOB_UNKNOWN");
    assert!(stage.tags("a").await.is_empty(), "no tag was set");
    stage.push_image("a", &child.to_string()).await;
    assert_eq!(stage.put_manifest("a", "v1", &index).await.status, 201);
    assert_eq!(stage.tags("a").await, ["v1"]);
}

#[tokio::test(start_paused = true)]
async fn bad_manifests_are_refused_with_their_reason() {
    let stage = Stage::with(Settings {
        max_manifest_bytes: 2000,
        ..Settings::default()
    });
    let put = |kind: &'static str, body: String| {
        let request = stage.request(Method::PUT, "/v2/a/manifests/v1").body(body);
        request.header("content-type", kind).fetch(MAX)
    };
    let with = |change: fn(&mut Value)| {
        let digest = Digest::of(b"");
        let mut manifest = image(&digest, &digest);
        change(&mut manifest);
        manifest.to_string()
    };
    for (kind, body, reason) in [
        (OCI_MANIFEST, "no JSON".to_owned(), "cannot be parsed"),
        (
            OCI_MANIFEST,
            with(|m| m["schemaVersion"] = 1.into()),
            "schemaVersion 2",
        ),
        (OCI_INDEX, with(|_| ()), "Content-Type"),
        (
            "text/plain",
            with(|m| drop(m.as_object_mut().unwrap().remove("mediaType"))),
            "not the type",
        ),
        (
            OCI_MANIFEST,
            with(|m| m["config"]["digest"] = "sha256:1".into()),
            "hexadecimal",
        ),
        (
            OCI_MANIFEST,
            with(|m| drop(m.as_object_mut().unwrap().remove("config"))),
            "has a config",
        ),
        (
            OCI_MANIFEST,
            with(|m| m["layers"] = json!({})),
            "cannot be parsed",
        ),
    ] {
        let refused = put(kind, body).await.unwrap();
        assert_eq!(
            (refused.status.as_u16(), code(&refused).as_str()),
            (400, "MANIFEST_INVALID")
        );
        let text = String::from_utf8_lossy(&refused.body).into_owned();
        assert!(text.contains(reason), "{reason} is missing in {text}");
    }
    let long = put(OCI_MANIFEST, " ".repeat(2001)).await.unwrap();
    assert_eq!(long.status, 413);
    let other = Digest::of(b"other");
    let path = format!("/v2/a/manifests/{other}");
    let wrong = stage.put(&path, with(|_| ())).await;
    assert_eq!(code(&wrong), "DIGEST_INVALID");
    assert!(stage.system().repositories().is_empty());
}

#[tokio::test(start_paused = true)]
async fn tags_come_in_pages_that_lead_to_the_next() {
    let stage = Stage::open();
    let digest = stage.push_image("a", "v1").await;
    for tag in ["v4", "v2", "v3", "v5"] {
        stage.push_image("a", tag).await;
    }
    let mut path = "/v2/a/tags/list?n=2".to_owned();
    let mut pages = Vec::new();
    loop {
        let page = stage.get(&path).await;
        let tags: Value = page.json().unwrap();
        pages.push(tags["tags"].clone());
        let Some(link) = page.header("link") else {
            break;
        };
        assert!(link.ends_with("; rel=\"next\""), "{link}");
        path = link[1..link.find('>').unwrap()].to_owned();
    }
    assert_eq!(
        pages,
        [json!(["v1", "v2"]), json!(["v3", "v4"]), json!(["v5"])]
    );
    let invalid = stage.get("/v2/a/tags/list?n=many").await;
    assert_eq!(code(&invalid), "PAGINATION_NUMBER_INVALID");
    let unknown = stage.get("/v2/b/tags/list").await;
    assert_eq!(
        (unknown.status.as_u16(), code(&unknown).as_str()),
        (404, "NAME_UNKNOWN")
    );
    let catalog: Value = stage.get("/v2/_catalog").await.json().unwrap();
    assert_eq!(catalog, json!({"repositories": ["a"]}));
    let tags = stage.system().tags(&"a".parse().unwrap());
    assert!(tags.iter().all(|(_, target)| *target == digest));
}

#[tokio::test(start_paused = true)]
async fn tags_manifests_and_blobs_can_be_deleted() {
    let stage = Stage::open();
    let digest = stage.push_image("a", "v1").await;
    stage.push_image("a", "v2").await;
    assert_eq!(stage.delete("/v2/a/manifests/v1").await, 202);
    assert_eq!(stage.tags("a").await, ["v2"]);
    let by_digest = format!("/v2/a/manifests/{digest}");
    assert_eq!(
        stage.get(&by_digest).await.status,
        200,
        "the manifest stays"
    );
    assert_eq!(stage.delete(&by_digest).await, 202);
    assert_eq!(stage.get("/v2/a/manifests/v2").await.status, 404);
    assert!(stage.tags("a").await.is_empty());
    assert_eq!(stage.delete(&by_digest).await, 404);
    let layer = format!("/v2/a/blobs/{}", Digest::of(b"layer"));
    assert_eq!(stage.delete(&layer).await, 202);
    assert_eq!(stage.get(&layer).await.status, 404);

    let fixed = Stage::with(Settings {
        deletion: false,
        ..Settings::default()
    });
    fixed.push_image("a", "v1").await;
    assert_eq!(fixed.delete("/v2/a/manifests/v1").await, 405);
}

#[tokio::test(start_paused = true)]
async fn referrers_of_a_manifest_are_listed_by_type() {
    let stage = Stage::open();
    let subject = stage.push_image("a", "v1").await;
    let path = format!("/v2/a/referrers/{subject}");
    let none: Value = stage.get(&path).await.json().unwrap();
    assert_eq!(none["manifests"], json!([]));
    let config = Digest::of(b"{}");
    for (kind, note) in [
        ("application/sbom", "one"),
        ("application/signature", "two"),
    ] {
        let mut referrer = image(&config, &config);
        referrer["artifactType"] = kind.into();
        referrer["subject"] = descriptor(OCI_MANIFEST, &subject, 1);
        referrer["annotations"] = json!({"note": note});
        let pushed = stage
            .put_manifest("a", &digest_of(&referrer).to_string(), &referrer)
            .await;
        assert_eq!(
            pushed.header("oci-subject"),
            Some(subject.to_string().as_str())
        );
    }
    let all: Value = stage.get(&path).await.json().unwrap();
    assert_eq!(all["manifests"].as_array().unwrap().len(), 2);
    let filtered = stage
        .get(&format!("{path}?artifactType=application/sbom"))
        .await;
    assert_eq!(filtered.header("oci-filters-applied"), Some("artifactType"));
    assert_eq!(filtered.header("content-type"), Some(OCI_INDEX));
    let filtered: Value = filtered.json().unwrap();
    let found = filtered["manifests"].as_array().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["artifactType"], "application/sbom");
    assert_eq!(found[0]["annotations"], json!({"note": "one"}));
}

#[tokio::test(start_paused = true)]
async fn a_manifest_of_a_type_that_the_caller_does_not_accept_is_not_served() {
    let stage = Stage::open();
    stage.push_image("a", "v1").await;
    let accept = |kinds: &'static str| {
        let request = stage.request(Method::GET, "/v2/a/manifests/v1");
        request.header("accept", kinds).fetch(MAX)
    };
    for kinds in [
        "*/*",
        "application/vnd.oci.image.manifest.v1+json;q=0.5, text/plain",
    ] {
        assert_eq!(accept(kinds).await.unwrap().status, 200, "{kinds}");
    }
    assert_eq!(code(&accept(OCI_INDEX).await.unwrap()), "MANIFEST_UNKNOWN");
}

#[tokio::test(start_paused = true)]
async fn every_request_has_an_answer() {
    let stage = Stage::open();
    for (method, path, status) in [
        (Method::GET, "/v2/", 200),
        (Method::GET, "/v2", 200),
        (Method::GET, "/", 404),
        (Method::POST, "/v2/", 405),
        (Method::PATCH, "/v2/a/manifests/v1", 405),
        (Method::GET, "/v2/A/tags/list", 400),
        (Method::PUT, "/v2/a/blobs/uploads/nothing?digest=x", 404),
        (Method::GET, "/token", 405),
    ] {
        let answer = stage
            .request(method.clone(), path)
            .fetch(MAX)
            .await
            .unwrap();
        assert_eq!(answer.status.as_u16(), status, "{method} {path}");
        assert_eq!(
            answer.header("docker-distribution-api-version"),
            Some("registry/2.0")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_registry_refuses_more() {
    let stage = Stage::with(Settings {
        max_bytes: 10,
        ..Settings::default()
    });
    stage.push_blob("a", b"12345678").await;
    let digest = Digest::of(b"abc");
    let path = format!("/v2/a/blobs/uploads/?digest={digest}");
    let refused = stage.request(Method::POST, &path).body("abc");
    let refused = refused.fetch(MAX).await.unwrap();
    assert_eq!(
        (refused.status.as_u16(), code(&refused).as_str()),
        (507, "DENIED")
    );
    assert_eq!(stage.system().size(), 8, "what was refused takes no room");
    // The same content again takes no room of its own.
    stage
        .delete(&format!("/v2/a/blobs/{}", Digest::of(b"12345678")))
        .await;
    let stage = Stage::with(Settings {
        max_bytes: 16,
        ..Settings::default()
    });
    stage.push_blob("a", b"12345678").await;
    stage.push_blob("b", b"12345678").await;
    assert_eq!(stage.system().size(), 8);
}
