use super::*;
use crate::payload_image::{image_references::Tag, info::tests::payload};

fn targets(to: &str, options: &MirrorOptions) -> Vec<String> {
    let found = payload("4.99.1", &[("cli", "1", &[]), ("demo", "2", &[])]);
    let mirror = plan(&found, &Target::parse(to).unwrap(), options).unwrap();
    mirror
        .images
        .iter()
        .chain(&mirror.payload)
        .map(|it| it.target.to_string())
        .collect()
}

#[test]
fn components_are_named_in_tags() {
    let none = MirrorOptions::default();
    assert_eq!(
        targets("m.example/ocp", &none),
        [
            "m.example/ocp:4.99.1-x86_64-cli",
            "m.example/ocp:4.99.1-x86_64-demo",
            "m.example/ocp:4.99.1-x86_64"
        ]
    );
    assert_eq!(
        targets("m.example/o:${version}.${component}", &none),
        [
            "m.example/o:4.99.1.cli-x86_64",
            "m.example/o:4.99.1.demo-x86_64",
            "m.example/o:4.99.1.release-x86_64"
        ]
    );
    let apart = MirrorOptions {
        release_image: Some("m.example/rel:x".parse().unwrap()),
        ..none.clone()
    };
    assert_eq!(
        targets("m.example/ocp", &apart).last().unwrap(),
        "m.example/rel:x"
    );
    let without = MirrorOptions {
        skip_release_image: true,
        ..none
    };
    assert_eq!(targets("m.example/ocp", &without).len(), 2);
}

#[test]
fn targets_that_would_mix_images_up_are_refused() {
    for to in [
        "m.example/ocp:tag",
        "m.example/${component}:x",
        "m.example/o:${version}",
        "m.example/o:${component}${component}",
        "UPPER",
    ] {
        assert!(Target::parse(to).is_err(), "{to}");
    }
}

#[test]
fn an_image_by_tag_is_refused() {
    let mut found = payload("4.99.1", &[("cli", "1", &[])]);
    found.contents.references.spec.tags.push(Tag {
        name: "by-tag".to_owned(),
        from: Some(crate::image_stream::api::ImageSource::image(
            "reg.example/x:latest",
        )),
        ..Tag::default()
    });
    let target = Target::parse("m.example/ocp").unwrap();
    let error = plan(&found, &target, &MirrorOptions::default()).unwrap_err();
    assert!(matches!(error, Error::NoDigest { component, .. } if component == "by-tag"));
}

#[test]
fn clusters_are_told_about_each_repository_once() {
    let found = payload("4.99.1", &[("cli", "1", &[]), ("demo", "2", &[])]);
    let mirror = plan(
        &found,
        &Target::parse("m.example/ocp").unwrap(),
        &MirrorOptions::default(),
    )
    .unwrap();
    let text = instructions(&mirror, Instructions::Idms);
    assert!(
        text.starts_with("apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\n"),
        "{text}"
    );
    assert_eq!(text.matches("source: reg.example/ocp/cli\n").count(), 1);
    assert!(instructions(&mirror, Instructions::Icsp).contains("repositoryDigestMirrors"));
    assert_eq!(instructions(&mirror, Instructions::None), "");
}

#[test]
fn a_folder_is_no_source_that_clusters_ask() {
    let found = payload("4.99.1", &[("cli", "1", &[])]);
    let target = Target::parse("m.example/ocp").unwrap();
    let mut mirror = plan(&found, &target, &MirrorOptions::default()).unwrap();
    mirror.payload.as_mut().unwrap().source = "openshift/release:4.99.1".parse().unwrap();
    let text = instructions(&mirror, Instructions::Idms);
    assert!(text.contains("source: reg.example/ocp/cli\n"), "{text}");
    assert!(!text.contains("source: openshift/release"), "{text}");
    mirror.images.clear();
    assert_eq!(instructions(&mirror, Instructions::Idms), "");
}
