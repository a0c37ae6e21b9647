use serde_json::json;

use super::*;

const D: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn image(media_type: &str) -> serde_json::Value {
    json!({
        "schemaVersion": 2, "mediaType": media_type,
        "config": {"mediaType": media_type::DOCKER_CONFIG, "size": 2, "digest": D},
        "layers": [{"mediaType": media_type::DOCKER_LAYER, "size": 3, "digest": D}],
    })
}

fn read(value: &serde_json::Value, content_type: Option<&str>) -> Result<Manifest, Error> {
    Manifest::read(value.to_string().into(), content_type, None)
}

#[test]
fn docker_and_oci_manifests_are_read() {
    let docker = read(&image(DOCKER_MANIFEST), Some(DOCKER_MANIFEST)).unwrap();
    assert_eq!(docker.family(), Family::Docker);
    assert_eq!(docker.descriptors().count(), 2);
    let mut nameless = image(OCI_MANIFEST);
    nameless.as_object_mut().unwrap().remove("mediaType");
    let nameless = read(&nameless, Some("application/json; charset=utf-8")).unwrap();
    assert_eq!(nameless.media_type, OCI_MANIFEST);
    let list = json!({"schemaVersion": 2, "mediaType": DOCKER_LIST, "manifests": [
        {"mediaType": DOCKER_MANIFEST, "size": 1, "digest": D, "platform": {"os": "linux", "architecture": "arm64"}},
    ]});
    assert!(read(&list, None).unwrap().list().is_some());
}

#[test]
fn what_is_no_usable_manifest_is_refused() {
    let reason = |result: Result<Manifest, Error>| result.unwrap_err().to_string();
    let huge = Bytes::from(vec![b' '; MAX_MANIFEST + 1]);
    assert!(reason(Manifest::read(huge, None, None)).contains("at most"));
    assert!(reason(read(&json!([1]), None)).contains("cannot be read"));
    assert!(reason(read(&json!({"schemaVersion": 1}), None)).contains("schema 1"));
    assert!(reason(read(&json!({"schemaVersion": 2}), Some("text/html"))).contains("text/html"));
    assert!(reason(read(&image(DOCKER_MANIFEST), Some(OCI_MANIFEST))).contains("calls itself"));
    let mut both = image(OCI_MANIFEST);
    both["manifests"] = json!([]);
    assert!(reason(read(&both, None)).contains("not supported"));
    let wanted = digest::parse(D).unwrap();
    let other = Manifest::read(image(OCI_MANIFEST).to_string().into(), None, Some(&wanted));
    assert!(reason(other).contains(D));
}
