//! The worked example of the payload format, and what must hold for any inputs.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    oci::{
        digest::{self, sha256},
        layer::{self, Limits},
        manifest::Manifest,
    },
    payload_image::image::{self, Base, ImageConfig},
};

const CREATED: &str = "2026-01-02T03:05:10Z";
const REFERENCES: &str = "kind: ImageStream
apiVersion: image.openshift.io/v1
spec:
  tags:
  - name: demo-operator
    from: {kind: DockerImage, name: quay.io/ex/demo-operator:latest}
  - name: cli
    from: {kind: DockerImage, name: quay.io/ex/cli}
";
const DEPLOYMENT: &str = "kind: Deployment
apiVersion: apps/v1
image: quay.io/ex/demo-operator:latest
a:
  value: \"quay.io/ex/cli:v4\"
b:
  value: \"0.0.1-snapshot\"
c:
  value: \"0.0.1-snapshot-kubernetes\"
d:
  value: \"0.0.1-snapshot-kubectl\"
";
const NAMESPACE: &str = "kind: Namespace\napiVersion: v1\n";

pub(super) fn component(name: &str, path: &str, labels: &[(&str, &str)]) -> Component {
    let digest = sha256(path.as_bytes());
    Component {
        name: name.to_owned(),
        pull_spec: format!("reg.example/ocp/{path}@{digest}"),
        labels: labels
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        ..Component::default()
    }
}

fn file(name: &str, content: &str) -> ManifestFile {
    ManifestFile {
        name: name.to_owned(),
        mtime: 1_700_000_000,
        content: content.into(),
    }
}

fn example() -> Vec<Component> {
    let operator = Component {
        manifests: vec![
            file("00_namespace.yaml", NAMESPACE),
            file("0000_30_demo-operator_02_deployment.yaml", DEPLOYMENT),
            file("image-references", REFERENCES),
        ],
        ..component(
            "demo-operator",
            "demo",
            &[
                (labels::COMMIT_ID, "bbb2"),
                (labels::OPERATOR, "true"),
                (labels::VERSIONS, "kubernetes=1.35.2+b1"),
                (labels::DISPLAY_NAMES, "kubernetes=Kubernetes"),
            ],
        )
    };
    vec![
        component("unused", "x", &[]),
        operator,
        component(
            "cluster-version-operator",
            "cvo",
            &[(labels::COMMIT_ID, "ccc3")],
        ),
        component(
            "cli",
            "cli",
            &[
                (labels::COMMIT_ID, "aaa1"),
                (labels::COMMIT_REF, "main"),
                (labels::SOURCE_LOCATION, "https://github.com/ex/cli"),
                (labels::VERSIONS, "kubectl=1.35.2"),
            ],
        ),
    ]
}

fn release() -> Release {
    let metadata = json!({"description": "demo"});
    Release {
        name: "4.99.0-ci.7".to_owned(),
        created: CREATED.parse().unwrap(),
        previous: vec!["4.98.7".to_owned()],
        metadata: metadata.as_object().unwrap().clone(),
        annotations: BTreeMap::from([(
            "release.openshift.io/from-image-stream".to_owned(),
            "ocp/4.99-snap".to_owned(),
        )]),
        base: Some("cluster-version-operator".to_owned()),
        ..Release::default()
    }
}

fn entries(contents: &Contents) -> Vec<String> {
    let layer = contents.to_layer().unwrap();
    let limits = Limits::for_manifests(layer.bytes.len() as u64);
    let found = layer::read(&*layer.bytes, limits, |_| true).unwrap();
    found.into_iter().map(|entry| entry.head.name).collect()
}

#[test]
fn the_worked_example_gives_the_documented_layer() {
    let made = assemble(example(), &release()).unwrap();
    assert_eq!(made.warnings, Vec::<String>::new());
    assert_eq!(
        entries(&made.contents),
        [
            "release-manifests",
            "release-manifests/image-references",
            "release-manifests/release-metadata",
            "release-manifests/0000_30_demo-operator_02_deployment.yaml",
            "release-manifests/0000_50_demo-operator_00_namespace.yaml",
        ]
        .map(str::to_owned)
    );
    let deployment = &made.contents.manifests()["0000_30_demo-operator_02_deployment.yaml"].content;
    let deployment = String::from_utf8(deployment.clone()).unwrap();
    let (demo, cli) = (sha256(b"demo"), sha256(b"cli"));
    for line in [
        format!("image: reg.example/ocp/demo@{demo}"),
        format!("value: \"reg.example/ocp/cli@{cli}\""),
        "value: \"4.99.0-ci.7\"".to_owned(),
        "value: \"1.35.2\"".to_owned(),
    ] {
        assert!(deployment.contains(&line), "{line} in {deployment}");
    }
    let metadata = String::from_utf8(made.contents.metadata_bytes().unwrap().unwrap()).unwrap();
    let expected = "{\n  \"kind\": \"cincinnati-metadata-v0\",\n  \"version\": \"4.99.0-ci.7\",\n  \"previous\": [\n    \"4.98.7\"\n  ],\n  \"metadata\": {\n    \"description\": \"demo\"\n  }\n}";
    assert_eq!(metadata, expected);
}

#[test]
fn the_worked_example_gives_the_documented_list_of_images() {
    let made = assemble(example(), &release()).unwrap();
    let bytes = made.contents.references_bytes().unwrap();
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    let names: Vec<_> = made
        .contents
        .references
        .spec
        .tags
        .iter()
        .map(|tag| tag.name.as_str())
        .collect();
    assert_eq!(names, ["cli", "cluster-version-operator", "demo-operator"]);
    assert_eq!(value["metadata"]["creationTimestamp"], CREATED);
    assert_eq!(
        value["metadata"]["annotations"]["release.openshift.io/from-image-stream"],
        "ocp/4.99-snap"
    );
    assert_eq!(
        value["spec"]["tags"][0],
        json!({
            "name": "cli",
            "annotations": {
                "io.openshift.build.commit.id": "aaa1",
                "io.openshift.build.commit.ref": "main",
                "io.openshift.build.source-location": "https://github.com/ex/cli",
                "io.openshift.build.version-display-names": "",
                "io.openshift.build.versions": "kubectl=1.35.2",
            },
            "from": {"kind": "DockerImage", "name": format!("reg.example/ocp/cli@{}", sha256(b"cli"))},
            "generation": null,
            "importPolicy": {},
            "referencePolicy": {"type": ""},
        })
    );
    let annotations = &value["spec"]["tags"][1]["annotations"];
    assert_eq!(
        annotations.as_object().unwrap().len(),
        3,
        "no versions: {annotations}"
    );
}

#[test]
fn the_image_has_the_documented_configuration() {
    let base_config = json!({
        "architecture": "amd64", "os": "linux", "variant": "v2", "created": "2020-01-01T00:00:00Z",
        "config": {"Env": ["PATH=/usr/bin"], "Entrypoint": ["/usr/bin/cluster-version-operator"], "Labels": {"old": "1"}},
        "rootfs": {"type": "layers", "diff_ids": [sha256(b"base").to_string()]},
        "history": [{"comment": "a"}, {"comment": "b", "empty_layer": true}],
    });
    let base = json!({
        "schemaVersion": 2, "mediaType": crate::oci::media_type::DOCKER_MANIFEST,
        "config": {"mediaType": crate::oci::media_type::DOCKER_CONFIG, "size": 1, "digest": sha256(b"c").to_string()},
        "layers": [{"mediaType": crate::oci::media_type::OCI_LAYER, "size": 100, "digest": sha256(b"l").to_string()}],
    });
    let base = Base {
        manifest: Manifest::read(base.to_string().into(), None, None).unwrap(),
        config: ImageConfig::read(base_config.to_string().as_bytes()).unwrap(),
    };
    let layer = assemble(example(), &release())
        .unwrap()
        .contents
        .to_layer()
        .unwrap();
    let built = image::build(Some(&base), &layer, "4.99.0-ci.7", CREATED.parse().unwrap()).unwrap();
    let config: Value = serde_json::from_slice(&built.config).unwrap();
    assert_eq!(
        config,
        json!({
            "id": "", "created": CREATED, "container_config": {},
            "config": {
                "Env": ["PATH=/usr/bin"], "Entrypoint": ["/usr/bin/cluster-version-operator"],
                "Labels": {
                    "io.openshift.release": "4.99.0-ci.7",
                    "io.openshift.release.base-image-digest": base.manifest.digest.to_string(),
                },
            },
            "architecture": "amd64", "size": 100 + layer.bytes.len(), "os": "linux", "variant": "v2",
            "rootfs": {"type": "layers", "diff_ids": [sha256(b"base").to_string(), layer.diff_id.to_string()]},
            "history": [{"created": CREATED, "comment": "Release image for OpenShift"}, {"created": CREATED}],
        })
    );
    let text = String::from_utf8(built.config.to_vec()).unwrap();
    assert!(
        text.starts_with(
            r#"{"id":"","created":"2026-01-02T03:05:10Z","container_config":{},"config":{"#
        ),
        "{text}"
    );
    // The base mixed both families; the payload does not.
    let manifest = built.manifest.image().unwrap();
    let kinds: Vec<_> = manifest
        .layers()
        .iter()
        .map(|it| it.media_type().to_string())
        .collect();
    assert_eq!(kinds, [crate::oci::media_type::DOCKER_LAYER; 2]);
    digest::verify(&built.manifest.bytes, &built.manifest.digest).unwrap();
}

fn refused(change: impl FnOnce(&mut Vec<Component>, &mut Release)) -> String {
    let (mut components, mut release) = (example(), release());
    change(&mut components, &mut release);
    let error = assemble(components, &release).unwrap_err();
    neap_kit::why::chain(&error)
}

fn operator(components: &mut [Component]) -> &mut Component {
    components
        .iter_mut()
        .find(|it| it.name == "demo-operator")
        .unwrap()
}

#[test]
fn bad_input_is_refused_with_component_file_and_reason() {
    let twice = refused(|components, _| components.push(component("cli", "other", &[])));
    assert!(
        twice.contains("cli is given twice") && twice.contains("ocp/other@"),
        "{twice}"
    );
    let no_base = refused(|_, release| release.base = Some("cvo".to_owned()));
    assert!(no_base.contains("--to-image-base-tag"), "{no_base}");
    let unresolved = refused(|components, _| components.retain(|it| it.name != "cli"));
    assert!(
        unresolved.contains("demo-operator") && unresolved.contains("\"cli\""),
        "{unresolved}"
    );
    let broken =
        refused(|components, _| operator(components).manifests[0].content = b"a: [".to_vec());
    assert!(
        broken.contains("demo-operator/00_namespace.yaml"),
        "{broken}"
    );
    let kindless =
        refused(|components, _| operator(components).manifests[0].content = b"a: b".to_vec());
    assert!(kindless.contains("no kind"), "{kindless}");
    let version = refused(|components, _| {
        operator(components).manifests[0].content =
            b"kind: A\napiVersion: 0.0.1-snapshot-crio\n".to_vec();
    });
    assert!(
        version.contains("00_namespace.yaml") && version.contains("crio"),
        "{version}"
    );
    let references =
        refused(|components, _| operator(components).manifests[2].content = b"kind: List".to_vec());
    assert!(
        references.contains("demo-operator") && references.contains("image-references"),
        "{references}"
    );
    let label = refused(|components, _| {
        operator(components)
            .labels
            .insert(labels::VERSIONS.to_owned(), "kubernetes=1".to_owned());
    });
    assert!(
        label.contains("demo-operator") && label.contains("semantic"),
        "{label}"
    );
    let disagree = refused(|components, _| {
        let cli = components.iter_mut().find(|it| it.name == "cli").unwrap();
        cli.labels
            .insert(labels::VERSIONS.to_owned(), "kubernetes=1.34.0".to_owned());
    });
    assert!(
        disagree.contains("cli has 1.34.0, demo-operator has 1.35.2"),
        "{disagree}"
    );
    assert!(refused(|components, _| components.clear()).contains("no images"));
    assert!(refused(|_, release| release.name = "4.99".to_owned()).contains("semantic"));
}

#[test]
fn equal_versions_of_two_images_are_no_conflict() {
    let mut components = example();
    let cli = components.iter_mut().find(|it| it.name == "cli").unwrap();
    let both = "kubectl=1.35.2,kubernetes=1.35.2";
    cli.labels
        .insert(labels::VERSIONS.to_owned(), both.to_owned());
    assert!(assemble(components, &release()).is_ok());
}

#[test]
fn what_is_excluded_included_or_missing_follows_the_options() {
    let mut wanted = release();
    wanted.include.insert("unused".to_owned());
    wanted.exclude.insert("cli".to_owned());
    wanted.allow_missing_images = true;
    let mut components = example();
    operator(&mut components).manifests[1].content =
        b"kind: A\napiVersion: quay.io/ex/cli:v4\n".to_vec();
    let made = assemble(components, &wanted).unwrap();
    let names: Vec<_> = made
        .contents
        .references
        .spec
        .tags
        .iter()
        .map(|tag| tag.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["cluster-version-operator", "demo-operator", "unused"]
    );
    let kept = &made.contents.manifests()["0000_30_demo-operator_02_deployment.yaml"].content;
    assert_eq!(kept, b"kind: A\napiVersion: quay.io/ex/cli:v4\n");
}

#[test]
fn an_operator_without_manifests_is_reported() {
    let mut components = example();
    operator(&mut components).manifests.clear();
    let made = assemble(components, &release()).unwrap();
    assert!(
        made.warnings[0].contains("demo-operator"),
        "{:?}",
        made.warnings
    );
}

prop_compose! {
    fn any_components()(
        names in prop::collection::btree_set("[a-z]{1,6}", 1..6),
        files in prop::collection::vec(("(0000_[0-9]{2}_)?[a-z]{1,4}\\.(yaml|txt)", "[a-z ]{0,12}"), 0..5),
        operators in any::<u8>(),
    ) -> Vec<Component> {
        names.iter().enumerate().map(|(number, name)| {
            let operator = operators & (1 << number) != 0;
            let labels: &[_] = if operator { &[(labels::OPERATOR, "true")] } else { &[] };
            let mut seen = BTreeSet::new();
            let manifests = files.iter().filter(|(file, _)| seen.insert(file.clone()));
            let manifests = manifests.map(|(name, text)| file(name, &format!("kind: A\napiVersion: v1\ntext: {text:?}\n")));
            Component { manifests: manifests.collect(), ..component(name, name, labels) }
        }).collect()
    }
}

proptest! {
    #[test]
    fn any_order_of_inputs_gives_one_digest(components in any_components(), seed in any::<u64>()) {
        let wanted = Release { base: None, ..release() };
        let mut shuffled = components.clone();
        let length = shuffled.len();
        for at in 0..length {
            let other = (seed.rotate_left(at as u32 * 7) as usize) % length;
            shuffled.swap(at, other);
            shuffled[at].manifests.reverse();
        }
        let one = assemble(components, &wanted).unwrap().contents.to_layer().unwrap();
        let other = assemble(shuffled, &wanted).unwrap().contents.to_layer().unwrap();
        prop_assert_eq!(one.digest, other.digest);
    }

    #[test]
    fn every_file_of_every_operator_is_found_again(components in any_components()) {
        let wanted = Release { base: None, ..release() };
        let made = assemble(components.clone(), &wanted).unwrap().contents;
        let layer = made.to_layer().unwrap();
        let limits = Limits::for_manifests(layer.bytes.len() as u64);
        let read = Contents::from_entries(layer::read(&*layer.bytes, limits, Contents::is_part).unwrap()).unwrap();
        prop_assert_eq!(&read.files, &made.files);
        prop_assert_eq!(&read.references, &made.references);
        prop_assert_eq!(&read.metadata, &made.metadata);
        let mut given: Vec<_> = components.iter().filter(|it| labels::is_operator(&it.labels)).flat_map(|it| &it.manifests).map(|it| &it.content).collect();
        let mut found: Vec<_> = read.files.iter().map(|it| &it.content).collect();
        given.sort();
        found.sort();
        prop_assert_eq!(given, found);
    }
}

#[test]
fn a_name_that_leads_out_of_a_folder_is_no_component() {
    for wrong in ["d/../../../pwned", "..", "\u{1b}[31m", "", &"a".repeat(129)] {
        let mut components = example();
        components.push(component(wrong, "x", &[]));
        let refused = assemble(components, &release());
        let said = refused.unwrap_err();
        assert!(
            matches!(&said, Error::Name(name) if name == wrong),
            "{said}"
        );
        assert!(!said.to_string().contains('\u{1b}'), "{said}");
    }
}
