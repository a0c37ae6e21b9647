//! Programs from a registry in memory.

use neap_kit::why;

use super::{
    table::{Systems, select},
    *,
};
use crate::{
    oci::transfer::Progress,
    payload_image::{
        builder::{
            self,
            tests::{Lab, reference, request},
        },
        reader,
        sample::SampleImage,
    },
};

const OC: &str = "an ELF header\0_RELEASE_VERSION_LOCATION_\0XXXXXXXXXXXXXXXXXXXX\0and code";

fn one(command: &str) -> Tool {
    let systems = Systems::parse("linux").unwrap();
    select(Some(command), &systems, "amd64")[0]
}

/// A payload whose client has these files.
async fn payload(lab: &Lab, files: &[(&str, &str)]) -> Payload {
    lab.push(&SampleImage::new("cli", &[], files)).await;
    let mut wanted = request();
    wanted.release.include.insert("cli".to_owned());
    let built = lab.build(wanted).await.unwrap();
    let (target, progress) = (reference("ocp/release"), Progress::default());
    let pushed = builder::push(&lab.client, &built, &target, &progress).await;
    reader::read(&lab.client, &pushed.unwrap(), &[])
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_program_gets_the_version_of_its_release() {
    let lab = Lab::open().await;
    let payload = payload(&lab, &[("usr/bin/oc", OC), ("usr/bin/other", "x")]).await;
    let program = extract(&lab.client, &payload, &one("oc")).await.unwrap();
    let text = String::from_utf8(program.content).unwrap();
    assert!(text.starts_with("an ELF header4.99.0-ci.7\0"), "{text:?}");
    assert_eq!((text.len(), program.warnings.len()), (OC.len(), 0));
}

#[tokio::test(start_paused = true)]
async fn a_program_without_a_place_is_extracted_with_a_warning() {
    let lab = Lab::open().await;
    let payload = payload(&lab, &[("usr/bin/oc", "no place")]).await;
    let program = extract(&lab.client, &payload, &one("oc")).await.unwrap();
    assert_eq!(program.content, b"no place");
    assert!(program.warnings[0].contains("version"), "{program:?}");
}

#[tokio::test(start_paused = true)]
async fn missing_files_and_images_are_named() {
    let lab = Lab::open().await;
    let payload = payload(&lab, &[("usr/bin/other", "x")]).await;
    let error = extract(&lab.client, &payload, &one("oc"))
        .await
        .unwrap_err();
    let text = why::chain(&error);
    for part in [
        "component cli",
        "reg.example.com/ocp/cli@sha256:",
        "usr/bin/oc",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let error = extract(&lab.client, &payload, &one("openshift-install")).await;
    let text = why::chain(&error.unwrap_err());
    assert!(text.contains("image of installer"), "{text}");
}
