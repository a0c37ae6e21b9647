#![expect(clippy::needless_pass_by_value, reason = "literals are passed")]

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::{image_stream::api::ImageStream, oci::digest::sha256};

fn stream(spec: serde_json::Value, tags: serde_json::Value, public: &str) -> ImageStream {
    let object = json!({
        "metadata": {"name": "4.99", "namespace": "ocp"},
        "spec": {"tags": spec},
        "status": {
            "dockerImageRepository": "registry.svc:5000/ocp/4.99",
            "publicDockerImageRepository": public,
            "tags": tags,
        },
    });
    serde_json::from_value(object).unwrap()
}

fn item(location: &str, seed: &str, generation: i64) -> serde_json::Value {
    let image = sha256(seed.as_bytes()).to_string();
    json!({"created": "2026-01-01T00:00:00Z", "dockerImageReference": location, "image": image, "generation": generation})
}

fn specs(resolved: &Resolved) -> Vec<(&str, &str)> {
    let components = resolved.components.iter();
    components
        .map(|it| (it.name.as_str(), it.pull_spec.as_str()))
        .collect()
}

fn resolve(stream: &ImageStream, mode: ReferenceMode) -> Result<Resolved, Error> {
    from_stream(stream, mode, &BTreeSet::from(["left-out".to_owned()]))
}

#[test]
fn the_mode_decides_which_location_is_named() {
    let tags = json!([
        {"tag": "cli", "items": [item("quay.example/ex/cli:v1", "cli", 1)]},
        {"tag": "inside", "items": [item("registry.svc:5000/ocp/4.99@sha256:00", "in", 1)]},
        {"tag": "left-out", "items": []},
    ]);
    let tags = tags
        .to_string()
        .replace("@sha256:00", &format!("@{}", sha256(b"in")));
    let found = stream(
        json!([]),
        serde_json::from_str(&tags).unwrap(),
        "public.example/ocp/4.99",
    );
    let (cli, inside) = (sha256(b"cli"), sha256(b"in"));
    let source = resolve(&found, ReferenceMode::Source).unwrap();
    let expected = [
        ("cli", format!("quay.example/ex/cli@{cli}")),
        ("inside", format!("public.example/ocp/4.99@{inside}")),
    ];
    assert_eq!(
        specs(&source),
        expected
            .each_ref()
            .map(|(name, spec)| (*name, spec.as_str()))
    );
    let public = resolve(&found, ReferenceMode::Public).unwrap();
    assert_eq!(
        specs(&public)[0].1,
        format!("public.example/ocp/4.99@{cli}")
    );
    let private = stream(json!([]), serde_json::from_str(&tags).unwrap(), "");
    assert!(matches!(
        resolve(&private, ReferenceMode::Public),
        Err(Error::NoPublicRepository(_))
    ));
    let source = resolve(&private, ReferenceMode::Source).unwrap();
    assert_eq!(source.components.len(), 1);
    assert!(source.skipped[0].contains("inside"), "{:?}", source.skipped);
}

#[test]
fn a_tag_that_was_not_imported_since_it_changed_is_an_error() {
    let spec = json!([{"name": "cli", "generation": 5, "from": {"kind": "DockerImage", "name": "quay.example/ex/cli:v2"}}]);
    let tags = json!([{"tag": "cli", "items": [item("quay.example/ex/cli:v1", "cli", 4)]}]);
    let found = stream(spec.clone(), tags, "");
    assert!(matches!(
        resolve(&found, ReferenceMode::Source),
        Err(Error::NotImported {
            spec: 5,
            status: 4,
            ..
        })
    ));
    let tags = json!([{"tag": "cli", "items": [item("quay.example/ex/cli@x", "cli", 5)]}]);
    let skipped = resolve(&stream(spec.clone(), tags, ""), ReferenceMode::Source).unwrap();
    assert!(
        skipped.skipped[0].contains("no location"),
        "reported, not dropped silently"
    );
    let failed = json!([{"tag": "cli", "items": [], "conditions": [{"type": "ImportSuccess", "status": "False", "message": "401"}]}]);
    let failed = resolve(&stream(spec, failed, ""), ReferenceMode::Source);
    assert!(matches!(failed, Err(Error::ImportFailed { message, .. }) if message == "401"));
}

#[test]
fn a_tag_by_digest_needs_no_import_and_keeps_its_annotations() {
    let digest = sha256(b"x");
    let spec = json!([{
        "name": "cli", "annotations": {"a": "1"},
        "from": {"kind": "DockerImage", "name": format!("quay.example/ex/cli@{digest}")},
    }]);
    let found = resolve(&stream(spec, json!([]), ""), ReferenceMode::Source).unwrap();
    assert_eq!(found.components[0].annotations["a"], "1");
    assert_eq!(
        found.components[0].pull_spec,
        format!("quay.example/ex/cli@{digest}")
    );
}

#[test]
fn mappings_replace_whole_components() {
    let text = "cli=quay.example/ex/cli:mine # a comment\n# another\nnew=quay.example/ex/new:v1\n";
    let given = mappings(text).unwrap();
    let known = Component {
        name: "cli".to_owned(),
        annotations: [("a".to_owned(), "1".to_owned())].into(),
        ..Component::default()
    };
    let mut components = vec![known];
    override_with(&mut components, given.clone()).unwrap();
    assert_eq!(components.len(), 2);
    assert!(
        components
            .iter()
            .all(|it| it.replaced && it.annotations.is_empty())
    );
    let twice = given.iter().cloned().chain(given.clone()).collect();
    assert_eq!(
        override_with(&mut components, twice),
        Err(Error::MappedTwice("cli".to_owned()))
    );
    for wrong in ["cli", "=x", "cli=", "cli=UPPER CASE"] {
        assert!(mapping(wrong).is_err(), "{wrong}");
    }
    for wrong in ["d/../../../pwned=r.example/a/b", "\u{1b}[31m=r.example/a/b"] {
        let said = mapping(wrong).unwrap_err();
        assert!(matches!(said, Error::Name { .. }), "{said}");
        assert!(!said.to_string().contains('\u{1b}'), "{said}");
    }
}
