use serde_json::json;

use super::*;
use crate::{
    image_stream::api::ImageSource,
    oci::digest::sha256,
    payload_image::{contents::Contents, image_references::Metadata},
};

/// Name, seed of the digest, annotations.
type SampleTag<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

pub(in crate::payload_image) fn payload(name: &str, tags: &[SampleTag<'_>]) -> Payload {
    let tags = tags.iter().map(|&(name, seed, annotations)| Tag {
        name: name.to_owned(),
        annotations: annotations
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        from: Some(ImageSource::image(format!(
            "reg.example/ocp/{name}@{}",
            sha256(seed.as_bytes())
        ))),
        ..Tag::default()
    });
    let metadata = Metadata {
        name: name.to_owned(),
        creation_timestamp: Some("2026-01-02T03:05:10Z".parse().unwrap()),
        ..Metadata::default()
    };
    let references = ImageReferences::new(metadata, tags.collect());
    let previous = ["4.98.7".to_owned(), "4.98.10".to_owned()];
    let metadata = ReleaseMetadata::new(name, &previous, &[], serde_json::Map::new()).unwrap();
    let contents = Contents::new(references, metadata, Vec::new());
    let layer = contents.to_layer().unwrap();
    let created = "2026-01-02T03:05:10Z".parse().unwrap();
    let built = crate::payload_image::image::build(None, &layer, name, created).unwrap();
    Payload {
        image: format!("reg.example/ocp/release:{name}").parse().unwrap(),
        config: ImageConfig::read(&built.config).unwrap(),
        manifest: built.manifest,
        list: None,
        contents,
    }
}

fn example() -> Payload {
    payload(
        "4.99.0-ci.7",
        &[
            (
                "cli",
                "c1",
                &[(VERSIONS, "kubectl=1.35.2"), (DISPLAY_NAMES, "")],
            ),
            (
                "demo-operator",
                "c3",
                &[
                    (VERSIONS, "kubernetes=1.35.2+b1"),
                    (DISPLAY_NAMES, "kubernetes=Kubernetes"),
                ],
            ),
        ],
    )
}

#[test]
fn the_document_has_the_documented_keys_in_their_order() {
    let text = info(&example(), None).to_json().unwrap();
    let keys: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("  \"")?.split_once('"'))
        .map(|(key, _)| key.to_owned())
        .collect();
    let expected = [
        "image",
        "digest",
        "contentDigest",
        "listDigest",
        "config",
        "metadata",
        "references",
        "versions",
        "displayVersions",
        "versionsTags",
        "images",
        "warnings",
    ];
    assert_eq!(keys, expected);
    assert!(text.ends_with("}\n"), "a final newline");
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["image"], "reg.example/ocp/release:4.99.0-ci.7");
    assert_eq!(
        value["displayVersions"],
        json!({"kubectl": {"Version": "1.35.2", "DisplayName": ""}, "kubernetes": {"Version": "1.35.2", "DisplayName": "Kubernetes"}})
    );
    assert_eq!(
        value["versionsTags"],
        json!({"kubectl": "cli", "kubernetes": "demo-operator"})
    );
    assert_eq!(
        value["config"]["config"]["Labels"]["io.openshift.release"],
        "4.99.0-ci.7"
    );
    for null in ["versions", "images", "warnings"] {
        assert_eq!(value[null], Value::Null);
    }
}

#[test]
fn versions_that_disagree_are_a_warning_and_name_and_version_belong_together() {
    let found = payload(
        "4.99.0",
        &[
            (
                "a",
                "1",
                &[
                    (VERSIONS, "machine-os=2.0.0,crio=1.0.0"),
                    (DISPLAY_NAMES, "machine-os=New OS"),
                ],
            ),
            (
                "b",
                "2",
                &[
                    (VERSIONS, "machine-os=1.0.0,crio=1.1.0"),
                    (DISPLAY_NAMES, "machine-os=Zeta OS"),
                ],
            ),
            ("c", "3", &[(VERSIONS, "kubectl=1.0.0")]),
            ("d", "4", &[(VERSIONS, "not a version")]),
        ],
    );
    let found = info(&found, None);
    let shown = found.display_versions.unwrap();
    let os = DisplayVersion {
        version: "1.0.0".to_owned(),
        display_name: "Zeta OS".to_owned(),
    };
    assert_eq!(shown["machine-os"], os);
    assert!(!shown.contains_key("kubectl"), "only from cli");
    let warnings = found.warnings.unwrap();
    assert!(
        warnings
            .iter()
            .any(|it| it == "multiple versions reported for crio"),
        "{warnings:?}"
    );
    assert!(
        warnings.iter().any(|it| it.starts_with("component d")),
        "{warnings:?}"
    );
    assert_eq!(found.versions_tags["machine-os"], "b");
}
